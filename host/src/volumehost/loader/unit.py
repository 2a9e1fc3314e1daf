"""The bookkeeping of loading: what is wanted, what is loaded, what failed and when to try again."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from volumehost.errors import DuplicatePluginError, PluginDeniedError, PluginError
from volumehost.loader.backoff import Backoff
from volumehost.loader.guard import still_running

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.origin import Origin
    from volumehost.loader.sources import PluginSource
    from volumehost.loader.trust import TrustPolicy

logger = logging.getLogger(__name__)


class Entry:
    """One plugin of a unit: loaded, failed, or excluded by the trust policy (``denied`` says why)."""

    __slots__ = ("backoff", "denied", "error", "label", "make", "origin", "plugin")

    def __init__(self, label: str, origin: Origin, make: Callable[[], object], denied: str = "") -> None:
        self.label = label
        self.origin = origin
        self.make = make
        self.denied = denied
        self.plugin: LoadedPlugin | None = None
        self.error: PluginError | None = None
        self.backoff = Backoff()

    def may_try(self, now: float) -> bool:
        """Whether to load it now: not loaded, not excluded, due, and no earlier try still stuck."""
        return self.plugin is None and not self.denied and self.backoff.due(now) and not still_running(self.error)

    def loaded(self, plugin: LoadedPlugin) -> None:
        """Note that it worked."""
        self.plugin, self.error = plugin, None

    def failed(self, error: PluginError, now: float) -> None:
        """Note a failed try, and when the next one makes sense."""
        self.error = error
        self.backoff.failed(now)
        if isinstance(error, DuplicatePluginError):
            self.backoff.next_at = math.inf  # until the name is free
        elif isinstance(error, PluginDeniedError) and error.plugin:
            self.denied = error.reason  # a policy on names, which are known only after the import
        logger.warning("%s", error)

    def awaits(self, name: str) -> bool:
        """Whether it could not be loaded because another plugin has this name."""
        return isinstance(self.error, DuplicatePluginError) and self.error.plugin == name

    def due(self) -> float:
        """When it is to be tried again."""
        return math.inf if self.error is None or self.denied else self.backoff.next_at


class Unit:
    """Plugins that come, change and go together: those of a distribution, or one that was handed over.

    ``wanted`` is what should be loaded, None once it was removed; ``current`` is what the loaded plugins came from.
    The two differ while a newer version waits for the last user of the loaded one. ``given``: by the embedding
    program, for good.
    """

    def __init__(self, key: str, wanted: PluginSource, *, given: bool = False) -> None:
        self.key = key
        self.given = given
        self.wanted: PluginSource | None = wanted
        self.current: PluginSource | None = None
        self.entries: list[Entry] = []
        self.removed_at = 0.0
        self.update_error: PluginError | None = None
        self.update_backoff = Backoff()

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

    def want(self, source: PluginSource) -> None:
        """Note what is installed now."""
        self.wanted = source
        self.update_error = None
        self.update_backoff = Backoff()
        if self.current is None:
            self.entries = []

    def remove(self, now: float) -> None:
        """Note that it was removed."""
        if self.wanted is not None:
            self.wanted = None
            self.removed_at = now

    def update_failed(self, error: PluginError, now: float) -> None:
        """Note why the wanted version could not replace the loaded one."""
        self.update_error = error
        self.update_backoff.failed(now)
        logger.warning("%s", error)

    def retry_now(self) -> None:
        """Let what failed be tried again at once."""
        self.update_backoff.retry_now()
        for entry in self.entries:
            if entry.error is not None:
                entry.backoff.retry_now()

    def due(self, settle: float) -> float:
        """When there is something to do for it, unless something happens before."""
        if self.given:
            return math.inf
        if self.wanted is None:
            return math.inf if self.in_use else self.removed_at + settle
        if self.outdated:
            return math.inf if self.in_use else self.update_backoff.next_at
        return min((entry.due() for entry in self.entries), default=math.inf)


def entries_of(source: PluginSource, trust: TrustPolicy) -> list[Entry]:
    """An entry for each plugin of a source, those excluded that the policy does not want imported."""
    return [
        Entry(
            label,
            origin,
            make,
            denied=trust.reason_not_to_import(origin.distribution, label) if origin.distribution else "",
        )
        for label, origin, make in source.candidates()
    ]
