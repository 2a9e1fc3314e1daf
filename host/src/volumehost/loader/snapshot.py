"""The immutable view that look-ups work on: replaced as a whole when the set of plugins changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.spec import Spec

    #: A plugin's ``can_support`` and the plugin.
    Ask = tuple[Callable[[Spec], bool], LoadedPlugin]


class Snapshot:
    """Plugins by name, and those to ask by kind of source.

    ``proven`` is a memo: for a kind of source, the plugins to ask, all of which have answered for it before. It is
    filled by whole tuples, so that readers need no lock.
    """

    __slots__ = ("_by_source", "_undeclared", "by_name", "proven", "translators")

    def __init__(self, plugins: Iterable[LoadedPlugin] = ()) -> None:
        self.by_name = {plugin.name: plugin for plugin in plugins}
        offered = [plugin for plugin in self.by_name.values() if plugin.offered]
        kinds = {source for plugin in offered for source in plugin.sources or ()}
        self._undeclared = tuple(plugin for plugin in offered if plugin.sources is None)
        self._by_source = {
            source: tuple(plugin for plugin in offered if plugin.sources is None or source in plugin.sources)
            for source in kinds
        }
        self.proven: dict[str, tuple[Ask, ...]] = {}
        #: Kind of source to the plugins that take it over.
        self.translators: dict[str, tuple[LoadedPlugin, ...]] = {}
        for plugin in offered:
            for source in plugin.translators:
                self.translators[source] = (*self.translators.get(source, ()), plugin)

    def candidates(self, source: str) -> tuple[LoadedPlugin, ...]:
        """The plugins to ask for a kind of source, in the order in which they were loaded.

        A spec without a source is for those that do not declare theirs.
        """
        return self._by_source.get(source, self._undeclared)

    def remember_proven(self, source: str) -> None:
        """From now on the plugins for this kind of source can be asked without a guard."""
        self.proven[source] = tuple((plugin.can_support, plugin) for plugin in self.candidates(source))
