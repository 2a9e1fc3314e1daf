"""VolumePluginManager: loads plugins and finds the one for a volume. The node, the controllers and the CLI use it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import (
    DuplicatePluginError,
    MultiplePluginsMatchedError,
    NoPluginMatchedError,
    PluginError,
    PluginNotFoundError,
    SpecError,
    VolumeHostError,
)
from volumehost.hookspecs import HOOK_CLASSES
from volumehost.loader.contract import check_contract
from volumehost.loader.events import DynamicPluginProber, NoProber, ProbeEvent, ProbeOperation
from volumehost.loader.guard import Guard
from volumehost.loader.loading import PluginLoader, build, import_entry_point
from volumehost.loader.lookup import DerivedLookups
from volumehost.loader.noop_expandable import NoopExpandablePlugin
from volumehost.loader.origin import Origin
from volumehost.loader.registry import HookRegistry
from volumehost.loader.snapshot import Snapshot
from volumehost.loader.trust import TrustPolicy

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.spec import Spec
    from volumehost.volume_host import VolumeHost

logger = logging.getLogger(__name__)


class VolumePluginManager(DerivedLookups):
    """The plugins of one host. Safe for threads; look-ups work on an immutable snapshot and take no lock."""

    def __init__(
        self,
        *,
        trust: TrustPolicy | None = None,
        ask_timeout: float = 5.0,
        load_timeout: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        hook_classes: Sequence[type] = HOOK_CLASSES,
    ) -> None:
        self.trust = TrustPolicy.from_environment() if trust is None else trust
        self._registry = HookRegistry(hook_classes)
        self._guard = Guard()
        self._loader = PluginLoader(self._registry, self._guard, self.trust, load_timeout)
        self._ask_timeout = ask_timeout
        self._clock = clock
        self._lock = threading.Lock()
        self._host: VolumeHost | None = None
        self._prober: DynamicPluginProber = NoProber()
        self._plugins: dict[str, LoadedPlugin] = {}
        self._errors: dict[str, PluginError] = {}
        self._snapshot = Snapshot()

    def init_plugins(
        self,
        plugins: Sequence[object] = (),
        prober: DynamicPluginProber | None = None,
        host: VolumeHost | None = None,
    ) -> list[VolumeHostError]:
        """Load the given plugins (classes, instances, modules) in order, then what the prober finds.

        :returns: one error for each given plugin that could not be loaded; the others are usable (MGR-INIT-08).
        """
        errors: list[VolumeHostError] = []
        with self._lock:
            self._host = host
            self._prober = prober or NoProber()
            try:
                self._prober.init()
            except Exception:
                logger.exception("the plugin prober cannot be used")
                self._prober = NoProber()
            for plugin in plugins:
                try:
                    self._load(lambda plugin=plugin: plugin, Origin(), _label(plugin))  # type: ignore[misc]
                except PluginError as error:
                    errors.append(error)
            self._refresh()
        return errors

    def find_plugin_by_spec(self, spec: Spec | None, *, guarded: bool = False) -> LoadedPlugin:
        """The one plugin that supports the spec.

        :param guarded: ask in a thread with a deadline, so that a plugin that hangs is set aside.
        :raises SpecError: the spec is None (MGR-FIND-01).
        :raises NoPluginMatchedError: none does (MGR-FIND-02).
        :raises MultiplePluginsMatchedError: more than one does (MGR-FIND-03).
        """
        if spec is None:
            raise SpecError("could not find plugin because volume spec is nil")
        found = self._matching(spec)
        if not found:
            with self._lock:
                self._refresh()
            found = self._matching(spec)
        if not found:
            raise NoPluginMatchedError("no volume plugin matched", subject=spec.name())
        if len(found) > 1:
            names = sorted(plugin.name for plugin in found)
            raise MultiplePluginsMatchedError(
                f"multiple volume plugins matched: {','.join(names)}", names=names, subject=spec.name()
            )
        return found[0]

    def find_plugin_by_name(self, name: str) -> LoadedPlugin:
        """The plugin of that name.

        :raises PluginNotFoundError: there is none (MGR-FIND-04).
        """
        found = self._snapshot.by_name.get(name)
        if found is None:
            with self._lock:
                self._refresh()
            found = self._snapshot.by_name.get(name)
        if found is None:
            raise PluginNotFoundError(f"no volume plugin matched name: {name}", subject=name)
        return found

    def errors(self) -> list[VolumeHostError]:
        """Every plugin that could not be loaded, and why."""
        return list(self._errors.values())

    def _matching(self, spec: Spec) -> list[LoadedPlugin]:
        matched = []
        for plugin in self._snapshot.candidates(spec.source()):
            try:
                if plugin.can_support(spec) is True:
                    matched.append(plugin)
            except (Exception, SystemExit):
                logger.exception("can_support of %s failed", plugin.name)
        return matched

    def _refresh(self) -> None:
        try:
            result = self._prober.probe()
        except Exception:
            logger.exception("probing for plugins failed")
            return
        for event in result.events:
            self._apply(event)

    def _apply(self, event: ProbeEvent) -> None:
        if event.operation is ProbeOperation.REMOVE:
            for name, plugin in list(self._plugins.items()):
                if event.plugin_name in (name, plugin.origin.distribution):
                    self._registry.unregister(name=name)
                    del self._plugins[name]
            self._publish()
            return
        if event.distribution is None:
            points = [(event.plugin_name, Origin(), lambda: event.plugin)]
        else:
            points = [
                (name, event.distribution.origin(name, value), lambda value=value: import_entry_point(value))
                for name, value in event.distribution.entry_points
                if not self.trust.reason_not_to_import(event.distribution.name, name)
            ]
        for label, origin, make in points:
            try:
                self._load(make, origin, label)
            except PluginError as error:
                self._errors[f"{origin.distribution}:{label}"] = error
                logger.warning("%s", error)

    def _load(self, make: Callable[[], object], origin: Origin, label: str) -> LoadedPlugin:
        plugin = self._loader.prepare(make, origin, label)
        taken = self._plugins.get(plugin.name)
        if taken is not None:
            raise DuplicatePluginError(
                f'volume plugin "{plugin.name}" was registered more than once',
                plugin=plugin.name,
                distribution=origin.distribution,
                version=origin.version,
                hint=f"the one of {taken.origin} stays; the one of {origin} is not loaded",
            )
        self._loader.init(plugin, self._host)
        self._registry.register(plugin.plugin, name=plugin.name)
        self._plugins[plugin.name] = plugin
        self._publish()
        logger.debug("loaded the volume plugin %s of %s", plugin.name, origin)
        return plugin

    def _publish(self) -> None:
        sources = {
            name: None if (declared := plugin.get_volume_sources()) is None else frozenset(declared)
            for name, plugin in self._plugins.items()
        }
        self._snapshot = Snapshot(self._plugins.values(), sources)

    def _noop_expandable(self, spec: Spec) -> LoadedPlugin:
        plugin = NoopExpandablePlugin(spec)
        name = plugin.get_plugin_name()
        contract = check_contract(plugin, self._registry, name=name, origin=Origin())
        return build(plugin, name, Origin(), contract, self._registry)


def _label(plugin: object) -> str:
    return getattr(plugin, "__name__", None) or type(plugin).__name__
