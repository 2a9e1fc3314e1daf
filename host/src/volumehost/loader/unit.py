"""The bookkeeping of loading: what is wanted, what is loaded, what failed and when to try again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.loader.backoff import Backoff
from volumehost.loader.guard import still_running

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.errors import PluginError
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.origin import Origin
    from volumehost.loader.sources import PluginSource


@dataclass(slots=True, eq=False)
class Entry:
    """One plugin of a unit: loaded, failed, or excluded by the trust policy (``denied`` says why)."""

    label: str
    origin: Origin
    make: Callable[[], object]
    denied: str = ""
    plugin: LoadedPlugin | None = None
    error: PluginError | None = None
    backoff: Backoff = field(default_factory=Backoff)

    def may_try(self, now: float) -> bool:
        """Whether to load it now: not loaded, not excluded, due, and no earlier try still stuck."""
        return self.plugin is None and not self.denied and self.backoff.due(now) and not still_running(self.error)

    def failed(self, error: PluginError, now: float) -> None:
        """Note a failed try."""
        self.error = error
        self.backoff.failed(now)


@dataclass(slots=True, eq=False)
class Unit:
    """Plugins that come, change and go together: those of a distribution, or one that was handed over.

    ``wanted`` is what should be loaded, None once it was removed; ``current`` is what the loaded plugins came from.
    The two differ while a newer version waits for the last user of the loaded one.
    """

    key: str
    wanted: PluginSource | None
    current: PluginSource | None = None
    entries: list[Entry] = field(default_factory=list)
    removed_at: float = 0.0
    given: bool = False
    update_error: PluginError | None = None
    update_backoff: Backoff = field(default_factory=Backoff)

    @property
    def loaded(self) -> list[LoadedPlugin]:
        """Its loaded plugins."""
        return [entry.plugin for entry in self.entries if entry.plugin is not None]

    @property
    def in_use(self) -> bool:
        """Whether anybody holds one of them."""
        return any(plugin.in_use for plugin in self.loaded)

    @property
    def outdated(self) -> bool:
        """Whether something else is installed than what is loaded."""
        return self.current is not None and self.wanted is not None and self.wanted != self.current
