"""Loads, updates and unloads plugins as their sources come, change and go (DESIGN section 4).

The manager owns one and calls it under its lock.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import DuplicatePluginError, PluginContractError, PluginDeniedError, PluginError
from volumehost.loader.events import ProbeOperation
from volumehost.loader.guard import still_running
from volumehost.loader.import_path import ImportCaches
from volumehost.loader.origin import Origin
from volumehost.loader.sources import DistributionSource, ObjectSource, PluginSource
from volumehost.loader.unit import Entry, Unit

if TYPE_CHECKING:
    from volumehost.loader.events import ProbeEvent
    from volumehost.loader.guard import Guard
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.loading import PluginLoader
    from volumehost.loader.trust import TrustPolicy
    from volumehost.volume_host import VolumeHost

logger = logging.getLogger(__name__)


class Lifecycle:
    """The units of one manager, and the steps that bring what is loaded in line with what is installed.

    ``plugins`` are the loaded ones by name, in the order in which they were loaded. ``changed`` is set when that, or
    which of them are offered, changed; the manager clears it. ``next_due`` is when there will be something to do.
    """

    def __init__(
        self,
        loader: PluginLoader,
        guard: Guard,
        trust: TrustPolicy,
        *,
        clock: Callable[[], float],
        settle: float,
        timeout: float,
        inspect_only: bool,
    ) -> None:
        self.units: dict[str, Unit] = {}
        self.plugins: dict[str, LoadedPlugin] = {}
        self.changed = False
        self.next_due = math.inf
        self.host: VolumeHost | None = None
        #: Called for each plugin right after it was loaded, before anybody can find it.
        self.on_loaded: Callable[[LoadedPlugin], None] | None = None
        self._loader = loader
        self._guard = guard
        self._trust = trust
        self._clock = clock
        self._settle = settle
        self._timeout = timeout
        self._inspect_only = inspect_only
        self._caches = ImportCaches()
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
            # It is a mistake of the caller, who is told; nobody takes over from anybody.
            del self.units[unit.key]
        return error

    def apply(self, event: ProbeEvent) -> None:
        """Note what a prober reports; :meth:`reconcile` then acts on it."""
        installed = event.installed or event.distribution is not None
        key = f"{'distribution' if installed else 'probed'} {event.plugin_name}"
        operation: int = event.operation  # a prober of whomever may give any number
        if operation == ProbeOperation.REMOVE:
            self._remove(key, event.plugin_name)
        elif operation != ProbeOperation.ADD_OR_UPDATE or (event.plugin is None and event.distribution is None):
            logger.error(
                "a prober reports an unknown operation: operation=%r, plugin=%s", event.operation, event.plugin_name
            )
        elif event.distribution is not None:
            self._want(key, DistributionSource(event.distribution, verify=self._trust.verify_records))
        else:
            source = ObjectSource(event.plugin, event.plugin_name)
            try:
                # It counts under the name that it gives itself (MGR-PROBE-03).
                plugin = self._loader.prepare(lambda: event.plugin, Origin(), event.plugin_name)
            except PluginError:
                self._want(key, source)  # loading it will fail again, and tell
            else:
                self._want(f"probed {plugin.name}", ObjectSource(plugin.plugin, plugin.name))

    def _want(self, key: str, source: PluginSource) -> None:
        unit = self.units.get(key)
        if unit is None:
            self.units[key] = Unit(key, source)
            return
        unit.wanted = source
        unit.update_error = None
        unit.update_backoff.retry_now()
        if unit.current is None:
            unit.entries = []

    def _remove(self, key: str, name: str) -> None:
        unit = self.units.get(key)
        if unit is None:  # a prober may know its plugin by the name that the plugin gives itself (MGR-PROBE-04)
            unit = next(
                (
                    each
                    for each in self.units.values()
                    if not each.given
                    and key.startswith("probed")
                    and any(plugin.name == name for plugin in each.loaded)
                ),
                None,
            )
        if unit is not None and unit.wanted is not None:
            unit.wanted = None
            unit.removed_at = self._clock()

    # --- bringing it about ---

    def reconcile(self, *, retry_failed: bool = False) -> None:
        """Load what is wanted, update what is free, unload what is gone and no longer used.

        :param retry_failed: the environment changed, so what failed may work now.
        """
        if retry_failed:
            for unit in self.units.values():
                _retry_now(unit)
        self._again = True
        while self._again:  # a name that became free lets another plugin have it at once
            self._again = False
            now = self._clock()
            for unit in list(self.units.values()):
                if not unit.given:
                    self._reconcile(unit, now)
        self.next_due = min((self._due(unit) for unit in self.units.values()), default=math.inf)

    def _reconcile(self, unit: Unit, now: float) -> None:
        if unit.wanted is None:
            settled = now >= unit.removed_at + self._settle or self._is_awaited(unit)
            if not unit.loaded or (settled and self._unload(unit)):
                del self.units[unit.key]
            else:
                self._offer(unit, offered=False)
            return
        self._offer(unit, offered=True)
        if not unit.outdated:
            self._load(unit, now)
        elif not unit.in_use and unit.update_backoff.due(now):
            self._update(unit, now)

    def _due(self, unit: Unit) -> float:
        if unit.given:
            return math.inf
        if unit.wanted is None:
            return math.inf if unit.in_use else unit.removed_at + self._settle
        if unit.outdated:
            return math.inf if unit.in_use else unit.update_backoff.next_at
        return min((each.backoff.next_at for each in unit.entries if each.error and not each.denied), default=math.inf)

    def _load(self, unit: Unit, now: float) -> None:
        """Load the plugins of a unit that are not loaded yet and may be tried."""
        source = unit.wanted
        if source is None:
            return
        if not unit.entries:
            unit.entries = self._entries(source)
        due = [entry for entry in unit.entries if entry.may_try(now)]
        if not due:
            return
        self._caches.invalidate()
        before = frozenset(sys.modules)
        for entry in due:
            try:
                source.check()
                self._commit(entry, self._start(entry, replaced=()))
            except PluginError as error:
                self._failed(entry, error)
        if unit.loaded:
            unit.current = source
            self._import_ahead(source, unit.key)
        elif not any(still_running(entry.error) for entry in due):
            # What the failed try imported may be mended on the disk before the next one.
            source.take_out(keep=before)

    def _update(self, unit: Unit, now: float) -> None:
        """Replace the loaded version by the wanted one, or leave everything as it was."""
        source, current = unit.wanted, unit.current
        if source is None or current is None:
            return
        reason = current.why_not_afresh()
        if reason:
            unit.update_backoff.next_at = math.inf
            unit.update_error = _cannot_update(unit, source, reason)
            return
        taken = current.take_out()
        self._caches.invalidate()
        started: list[tuple[Entry, LoadedPlugin]] = []
        entries = self._entries(source)
        old = unit.loaded
        try:
            source.check()
            self._start_all(entries, old, started)
            retired = [plugin for plugin in old if plugin.retire()]
            if len(retired) < len(old):  # somebody took hold of one meanwhile
                for plugin in retired:
                    plugin.unretire()
                self._abandon(started)
                current.put_back(taken)
                return
        except PluginError as error:
            self._abandon(started)
            current.put_back(taken)
            unit.update_error = error
            unit.update_backoff.failed(now)
            logger.warning("%s", error)
            return
        for plugin in old:
            self._drop(plugin)
        unit.entries, unit.current = entries, source
        for entry, plugin in started:
            try:
                self._commit(entry, plugin)
            except PluginError as error:
                self._failed(entry, error)
        for plugin in old:
            self._shut_down(plugin)
        self._import_ahead(source, unit.key)

    def _start_all(
        self, entries: list[Entry], old: Sequence[LoadedPlugin], started: list[tuple[Entry, LoadedPlugin]]
    ) -> None:
        """Start every plugin of the new version.

        One that the old version did not have may fail on its own; one that it had must not get lost.

        :raises PluginError: of the first that must not fail.
        """
        before = {plugin.origin.entry_point for plugin in old}
        for entry in entries:
            if entry.denied:
                continue
            try:
                started.append((entry, self._start(entry, replaced=old)))
            except PluginError as error:
                if entry.origin.entry_point in before:
                    raise
                self._failed(entry, error)

    def _start(self, entry: Entry, replaced: Sequence[LoadedPlugin]) -> LoadedPlugin:
        """Create, check and initialise one plugin; nobody can find it yet."""
        plugin = self._loader.prepare(entry.make, entry.origin, entry.label)
        taken = self.plugins.get(plugin.name)
        if taken is not None and taken not in replaced:
            raise DuplicatePluginError(
                f'volume plugin "{plugin.name}" was registered more than once: by {taken.origin}, which stays, and '
                f"by {plugin.origin}, which is not loaded",
                plugin=plugin.name,
                distribution=plugin.origin.distribution,
                version=plugin.origin.version,
                hint="uninstall one of the two, or exclude it",
            )
        if self.on_loaded is not None:
            self.on_loaded(plugin)
        if not self._inspect_only:
            self._loader.init(plugin, self.host)
        return plugin

    def _commit(self, entry: Entry, plugin: LoadedPlugin) -> None:
        try:
            self._loader.registry.register(plugin.plugin, name=plugin.name)
        except Exception as error:
            raise PluginContractError(
                f"pluggy refuses it: {error}",
                plugin=plugin.name,
                distribution=plugin.origin.distribution,
                version=plugin.origin.version,
            ) from error
        self.plugins[plugin.name] = plugin
        entry.plugin, entry.error = plugin, None
        self.changed = True
        logger.info("loaded a volume plugin: plugin=%s, origin=%s", plugin.name, plugin.origin)

    def _unload(self, unit: Unit) -> bool:
        """Unload a removed unit unless it is in use; whether it was."""
        plugins = unit.loaded
        retired = [plugin for plugin in plugins if plugin.retire()]
        if len(retired) < len(plugins):
            for plugin in retired:
                plugin.unretire()
            return False
        for plugin in plugins:
            self._drop(plugin)
        for plugin in plugins:
            self._shut_down(plugin)
        if unit.current is not None:
            unit.current.take_out()
        return True

    def _is_awaited(self, unit: Unit) -> bool:
        """Whether another plugin waits for a name of this unit (BR-09)."""
        names = {plugin.name for plugin in unit.loaded}
        return any(
            isinstance(entry.error, DuplicatePluginError) and entry.error.plugin in names
            for other in self.units.values()
            for entry in other.entries
        )

    def _drop(self, plugin: LoadedPlugin) -> None:
        self._loader.registry.unregister(name=plugin.name)
        self.plugins.pop(plugin.name, None)
        self.changed = True
        for unit in self.units.values():
            for entry in unit.entries:
                if isinstance(entry.error, DuplicatePluginError) and entry.error.plugin == plugin.name:
                    entry.backoff.retry_now()
                    self._again = True
        logger.info("unloaded a volume plugin: plugin=%s, origin=%s", plugin.name, plugin.origin)

    def _abandon(self, started: Sequence[tuple[Entry, LoadedPlugin]]) -> None:
        for _, plugin in started:
            self._shut_down(plugin)

    def _shut_down(self, plugin: LoadedPlugin) -> PluginError | None:
        if self._inspect_only:
            return None
        error = self._loader.shutdown(plugin)
        if error is not None:
            logger.warning("%s", error)
        return error

    def _offer(self, unit: Unit, *, offered: bool) -> None:
        for plugin in unit.loaded:
            if plugin.offered != offered:
                plugin.offered = offered
                self.changed = True

    def _entries(self, source: PluginSource) -> list[Entry]:
        entries = []
        for label, origin, make in source.candidates():
            denied = self._trust.reason_not_to_import(origin.distribution, label) if origin.distribution else ""
            entries.append(Entry(label, origin, make, denied=denied))
        return entries

    def _import_ahead(self, source: PluginSource, key: str) -> None:
        if not self._inspect_only:
            self._guard.run(source.import_ahead, self._timeout, f"import ahead {key}")

    def _failed(self, entry: Entry, error: PluginError) -> None:
        entry.failed(error, self._clock())
        if isinstance(error, DuplicatePluginError):
            entry.backoff.next_at = math.inf  # until the name is free
        elif isinstance(error, PluginDeniedError) and error.plugin:
            entry.denied = error.reason  # a policy on names, which are known only after the import
        logger.warning("%s", error)

    def close(self) -> list[PluginError]:
        """Shut every plugin down, the last one first; what fails is collected (BR-18)."""
        errors = []
        for plugin in reversed(list(self.plugins.values())):
            self._drop(plugin)
            error = self._shut_down(plugin)
            if error is not None:
                errors.append(error)
        self.units.clear()
        return errors


def _retry_now(unit: Unit) -> None:
    unit.update_backoff.retry_now()
    for entry in unit.entries:
        if entry.error is not None:
            entry.backoff.retry_now()


def _cannot_update(unit: Unit, source: PluginSource, reason: str) -> PluginError:
    plugin = unit.loaded[0]
    return PluginError(
        f"{source.version} is installed, but {reason}",
        plugin=plugin.name,
        distribution=plugin.origin.distribution,
        version=plugin.origin.version,
        action=f"updating the volume plugin {plugin.name} of {plugin.origin}",
        hint="restart the host",
    )
