"""Loads, updates and unloads plugins as their sources come, change and go (DESIGN section 4).

The manager owns one and calls it under its lock.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from volumehost.errors import DuplicatePluginError, PluginError
from volumehost.loader.events import ProbeOperation
from volumehost.loader.guard import still_running
from volumehost.loader.import_path import ImportCaches
from volumehost.loader.origin import Origin
from volumehost.loader.roster import retire_all
from volumehost.loader.sources import DistributionSource, ObjectSource, PluginSource
from volumehost.loader.unit import Entry, Unit, entries_of

if TYPE_CHECKING:
    from volumehost.loader.events import ProbeEvent
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.loading import PluginLoader
    from volumehost.loader.roster import Roster
    from volumehost.loader.trust import TrustPolicy

logger = logging.getLogger(__name__)


class Lifecycle:
    """The units of one manager, and the steps that bring what is loaded in line with what is installed.

    ``next_due`` is when there will be something to do, on the clock given, unless a prober reports something before.

    :param settle: seconds after which a removed unit is unloaded.
    :param import_ahead: import all submodules of a plugin's distribution once a volume uses it.
    """

    def __init__(
        self,
        roster: Roster,
        loader: PluginLoader,
        trust: TrustPolicy,
        *,
        clock: Callable[[], float],
        settle: float,
        import_ahead: bool,
    ) -> None:
        self.units: dict[str, Unit] = {}
        self.next_due = math.inf
        self._roster = roster
        self._loader = loader
        self._trust = trust
        self._clock = clock
        self._settle = settle
        self._import_ahead = import_ahead
        self._caches = ImportCaches()
        #: Whether the import system sees what is installed. At first it does: it has only just been filled, and if
        #: something slipped in meanwhile, the import fails and is tried again.
        self._caches_are_fresh = True
        self._given = 0
        self._again = False

    # --- what is wanted ---

    def give(self, plugin: object) -> PluginError | None:
        """Load an object that the embedding program hands over; it is tried once."""
        self._given += 1
        unit = Unit(f"given {self._given}", ObjectSource(plugin), given=True)
        self.units[unit.key] = unit
        self._load(unit, self._clock())
        error = unit.entries[0].error
        if isinstance(error, DuplicatePluginError):
            del self.units[unit.key]  # the caller is told, and what is loaded stays
        return error

    def apply(self, event: ProbeEvent) -> None:
        """Note what a prober reports; :meth:`reconcile` then acts on it."""
        operation: int = event.operation  # a prober of whomever may give any number
        if event.distribution is not None or event.installed:
            key = f"distribution {event.plugin_name}"
        else:
            key = f"probed {event.plugin_name}"
        if operation == ProbeOperation.REMOVE:
            if key in self.units:  # unknown names are fine (MGR-PROBE-04)
                self.units[key].remove(self._clock())
        elif operation != ProbeOperation.ADD_OR_UPDATE or (event.plugin is None and event.distribution is None):
            logger.error("a prober reports nonsense: operation=%r, plugin=%s", operation, event.plugin_name)
        elif event.distribution is not None:
            self._want(key, DistributionSource(event.distribution, verify=self._trust.verify_records))
        else:
            self._want(*self._own_name(key, event))

    def _own_name(self, key: str, event: ProbeEvent) -> tuple[str, PluginSource]:
        """A probed object counts under the name that it gives itself, not the event's (MGR-PROBE-03)."""
        try:
            plugin = self._loader.prepare(lambda: event.plugin, Origin(), event.plugin_name)
        except PluginError:
            return key, ObjectSource(event.plugin, event.plugin_name)  # loading it fails again, and tells
        return f"probed {plugin.name}", ObjectSource(plugin.plugin, plugin.name)

    def _want(self, key: str, source: PluginSource) -> None:
        if key in self.units:
            self.units[key].want(source)
        else:
            self.units[key] = Unit(key, source)

    # --- bringing it about ---

    @property
    def awaits_idle(self) -> bool:
        """Whether any plugin is to be updated or unloaded once nobody uses it."""
        return any(unit.loaded and (unit.wanted is None or unit.outdated) for unit in list(self.units.values()))

    def reconcile(self, *, retry_failed: bool = False) -> None:
        """Load what is wanted, update what is free, unload what is gone and no longer used.

        :param retry_failed: the environment changed, so what failed may work now.
        """
        changing = [unit for unit in self.units.values() if not unit.given]
        if retry_failed:
            for unit in changing:
                unit.retry_now()
        self._again = True
        while self._again:  # a name that became free lets another plugin have it at once
            self._again = False
            for unit in changing:
                if unit.key in self.units:
                    self._reconcile_alone(unit)
        self._caches_are_fresh = False
        self.next_due = min((unit.due(self._settle) for unit in self.units.values()), default=math.inf)

    def _reconcile_alone(self, unit: Unit) -> None:
        """One unit; what goes wrong with it concerns no other."""
        now = self._clock()
        try:
            self._reconcile(unit, now)
        except Exception as error:
            logger.exception("keeping up with a distribution failed: unit=%s", unit.key)
            unit.update_error = PluginError(f"unexpected: {error!r}", action=f"keeping up with {unit.key}")
            unit.update_backoff.failed(now)

    def _reconcile(self, unit: Unit, now: float) -> None:
        if unit.wanted is None:
            settled = now >= unit.removed_at + self._settle or self._is_awaited(unit)
            if not unit.loaded or (settled and self._unload(unit)):
                del self.units[unit.key]
            else:
                self._roster.offer(unit.loaded, offered=False)
            return
        self._roster.offer(unit.loaded, offered=True)
        if not unit.outdated:
            unit.update_error = None
            self._load(unit, now)
        elif not unit.in_use and unit.update_backoff.due(now):
            self._update(unit, unit.wanted, now)

    def _load(self, unit: Unit, now: float) -> None:
        """Load the plugins of a unit that are not loaded yet and may be tried."""
        source = unit.wanted
        if source is None:
            return
        if not unit.entries:
            unit.entries = entries_of(source, self._trust)
        due = [entry for entry in unit.entries if entry.may_try(now)]
        if not due:
            return
        self._see_new_files()
        before = frozenset(sys.modules)
        for entry in due:
            try:
                source.check()
                self._roster.admit(entry, self._roster.start(entry))
            except PluginError as error:
                entry.failed(error, self._clock())
        if unit.loaded:
            unit.current = source
            self._ahead(source, unit)
        elif not any(still_running(entry.error) for entry in due):
            # What the failed try imported may be mended on the disk before the next one.
            source.take_out(keep=before)

    def _update(self, unit: Unit, source: PluginSource, now: float) -> None:
        """Replace the loaded version by another, or leave everything as it was."""
        current, old = unit.current, unit.loaded
        reason = current.why_not_afresh() if current is not None else ""
        if current is None or reason:
            unit.update_failed(_cannot_update(unit, source, reason), now)
            unit.update_backoff.next_at = math.inf
            return
        entries = entries_of(source, self._trust)
        started: list[tuple[Entry, LoadedPlugin]] = []
        taken = current.take_out()
        replaced = False
        try:
            self._see_new_files()
            source.check()
            self._start_all(entries, old, started)
            replaced = retire_all(old)  # False when somebody took hold of one meanwhile
        except PluginError as error:
            unit.update_failed(error, self._clock())
        finally:
            if not replaced:
                self._shut_down(plugin for _, plugin in started)
                current.put_back(taken)
        if replaced:
            self._let_go(old)
            unit.entries, unit.current = entries, source
            for entry, plugin in started:
                try:
                    self._roster.admit(entry, plugin)
                except PluginError as error:
                    entry.failed(error, self._clock())
            self._shut_down(old)
            self._ahead(source, unit)

    def _start_all(
        self, entries: list[Entry], old: list[LoadedPlugin], started: list[tuple[Entry, LoadedPlugin]]
    ) -> None:
        """Start every plugin of a new version. One that the old version did not have may fail on its own.

        :raises PluginError: a plugin that the old version had would get lost.
        """
        before = {plugin.origin.entry_point for plugin in old}
        for entry in entries:
            if entry.denied:
                continue
            try:
                started.append((entry, self._roster.start(entry, replaced=old)))
            except PluginError as error:
                if entry.origin.entry_point in before:
                    raise
                entry.failed(error, self._clock())

    def _unload(self, unit: Unit) -> bool:
        """Unload a removed unit, unless it is in use; whether it was done."""
        plugins = unit.loaded
        if not retire_all(plugins):
            return False
        self._let_go(plugins)
        self._shut_down(plugins)
        if unit.current is not None:
            unit.current.take_out()
        return True

    def _let_go(self, plugins: list[LoadedPlugin]) -> None:
        """Drop plugins; others that were waiting for their names may have them now (BR-09)."""
        for plugin in plugins:
            self._roster.drop(plugin)
            for entry in self._entries():
                if entry.awaits(plugin.name):
                    entry.backoff.retry_now()
                    self._again = True

    def _is_awaited(self, unit: Unit) -> bool:
        """Whether another plugin waits for a name of this unit."""
        return any(entry.awaits(plugin.name) for plugin in unit.loaded for entry in self._entries())

    def _entries(self) -> list[Entry]:
        return [entry for unit in self.units.values() for entry in unit.entries]

    def _see_new_files(self) -> None:
        """Drop the import system's caches, once in each reconciliation."""
        if not self._caches_are_fresh:
            self._caches.invalidate()
            self._caches_are_fresh = True

    def _ahead(self, source: PluginSource, unit: Unit) -> None:
        """Have the rest of its modules imported when the first volume uses it.

        From then on it must work although its files may go; until then it is unloaded when they do. Which files are
        its own is found out now: later the disk may tell of another version.
        """
        if not self._import_ahead:
            return
        denied = [entry.label for entry in unit.entries if entry.denied]
        run = source.ahead(denied)
        for plugin in unit.loaded:
            plugin.when_held(partial(self._loader.import_ahead, run, unit.key))

    def _shut_down(self, plugins: Iterable[LoadedPlugin]) -> list[PluginError]:
        return [error for plugin in plugins if (error := self._roster.shut_down(plugin)) is not None]

    def close(self) -> list[PluginError]:
        """Shut every plugin down, the last one first; what fails is collected (BR-18)."""
        plugins = list(reversed(self._roster.plugins.values()))
        self.units.clear()
        for plugin in plugins:
            self._roster.drop(plugin)
        return self._shut_down(plugins)


def _cannot_update(unit: Unit, source: PluginSource, reason: str) -> PluginError:
    origin = unit.entries[0].origin
    return PluginError(
        f"{source.version} is installed, but {reason or 'the loaded one cannot be replaced'}",
        plugin=unit.entries[0].label,
        distribution=origin.distribution,
        version=origin.version,
        action=f"updating the volume plugins of {origin}",
        hint="restart the host",
    )
