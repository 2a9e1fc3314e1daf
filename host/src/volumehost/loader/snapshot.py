"""The immutable view that look-ups work on: replaced as a whole when the set of plugins changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.spec import Spec

    Ask = tuple[Callable[[Spec], bool], LoadedPlugin]


class Snapshot:
    """Plugins by name, and those to ask by kind of source.

    ``proven`` is a memo: for a kind of source, the plugins to ask, all of which have answered for that kind before.
    It is filled by assignment of whole tuples, so that readers need no lock.
    """

    __slots__ = ("_by_source", "_undeclared", "by_name", "plugins", "proven")

    def __init__(self, plugins: Iterable[LoadedPlugin] = (), sources: dict[str, frozenset[str] | None] | None = None):
        self.plugins = tuple(plugins)
        self.by_name = {plugin.name: plugin for plugin in self.plugins}
        declared = sources or {}
        self._undeclared = tuple(
            plugin for plugin in self.plugins if plugin.offered and declared.get(plugin.name) is None
        )
        self._by_source: dict[str, list[LoadedPlugin]] = {}
        for plugin in self.plugins:
            if plugin.offered:
                for source in declared.get(plugin.name) or ():
                    self._by_source.setdefault(source, []).append(plugin)
        self.proven: dict[str, tuple[Ask, ...]] = {}

    def candidates(self, source: str) -> list[LoadedPlugin]:
        """The plugins to ask for a kind of source, in the order in which they were loaded."""
        indexed = self._by_source.get(source)
        if not indexed:
            return list(self._undeclared)
        wanted = {*indexed, *self._undeclared}
        return [plugin for plugin in self.plugins if plugin in wanted]
