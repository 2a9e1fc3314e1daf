"""VolumePluginManager: loads plugins and finds the one for a volume. The node, the controllers and the CLI use it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import (
    MultiplePluginsMatchedError,
    NoPluginMatchedError,
    PluginNotFoundError,
    SpecError,
    VolumeHostError,
)
from volumehost.hookspecs import HOOK_CLASSES
from volumehost.loader import status
from volumehost.loader.asking import Asker
from volumehost.loader.contract import check_contract
from volumehost.loader.guard import Guard
from volumehost.loader.lifecycle import Lifecycle
from volumehost.loader.loading import PluginLoader, build
from volumehost.loader.lookup import DerivedLookups
from volumehost.loader.origin import Origin
from volumehost.loader.refresh import Refresher
from volumehost.loader.registry import HookRegistry
from volumehost.loader.roster import Roster
from volumehost.loader.trust import KEEP_ONE, TrustPolicy

if TYPE_CHECKING:
    from volumehost.loader.events import DynamicPluginProber
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.loader.wrapping import WrapperFactory
    from volumehost.spec import Spec
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import SpecTranslator

logger = logging.getLogger(__name__)

#: Seconds after which a removed distribution's plugins are unloaded; one that comes back sooner just goes on.
SETTLE = 1.0
#: Of so many plugins that did not load the cause is told where one is missing.
_CAUSES = 3


class VolumePluginManager(DerivedLookups):
    """The plugins of one host: loads them, keeps up with installs and removals, finds the one for a volume.

    Safe for threads. Look-ups work on an immutable snapshot and take no lock; what changes the set of plugins
    happens under one lock. Hold a plugin (``LoadedPlugin.hold``) for as long as a volume needs it.

    :param trust: which plugins may be loaded; from the environment's switches when None.
    :param ask_timeout: seconds that a plugin has to answer ``can_support``.
    :param load_timeout: seconds that importing, creating, initialising or shutting down a plugin may take.
    :param settle: seconds after which a plugin whose distribution was removed is unloaded.
    :param inspect_only: load plugins to be listed, and neither initialise them nor import more than they do.
    :param clock: a monotonic clock, in seconds.
    :param hook_classes: the classes that declare hooks.
    """

    def __init__(
        self,
        *,
        trust: TrustPolicy | None = None,
        ask_timeout: float = 5.0,
        load_timeout: float = 30.0,
        settle: float = SETTLE,
        inspect_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
        hook_classes: Sequence[type] = HOOK_CLASSES,
    ) -> None:
        self.trust = TrustPolicy.from_environment() if trust is None else trust
        self._hook_classes = tuple(hook_classes)
        self._registry = HookRegistry(self._hook_classes)
        self._guard = Guard()
        self._asker = Asker(self._guard, ask_timeout, clock)
        loader = PluginLoader(self._registry, self._guard, self.trust, load_timeout)
        self._roster = Roster(loader, initialise=not inspect_only)
        self._roster.on_created = self._prepare_for_use
        self._lifecycle = Lifecycle(
            self._roster, loader, self.trust, clock=clock, settle=settle, import_ahead=not inspect_only
        )
        self._refresher = Refresher(self._lifecycle, self._roster, self._asker, self._guard, clock)
        self._clock = clock
        self._wrappers: list[WrapperFactory] = []

    # --- loading ---

    def init_plugins(
        self,
        plugins: Sequence[object] = (),
        prober: DynamicPluginProber | None = None,
        host: VolumeHost | None = None,
    ) -> list[VolumeHostError]:
        """Load the given plugins (classes, instances, modules) in order, then what the prober finds.

        A second call adds to what is there (MGR-INIT-04).

        :returns: one error for each given plugin that could not be loaded; the others are usable (MGR-INIT-08).
            Installed plugins that failed are in :meth:`errors`.
        """
        errors: list[VolumeHostError] = []
        with self._refresher.lock:
            self._roster.host = host
            self._refresher.use(prober)
            for plugin in plugins:
                error = self._lifecycle.give(plugin)
                if error is not None:
                    errors.append(error)
                self._refresher.publish()  # the next one's init may look this one up
            self._refresher.probe()
        return errors

    def run(self, stop: threading.Event, *, sync_timeout: float = 60.0) -> None:
        """Start the caches of a kubelet's host and wait until they have seen their first lists (MGR-INIT-09).

        Does nothing for other hosts. The caches stop when ``stop`` is set, which also ends the wait.
        """
        from volumehost.volume_host import KubeletVolumeHost

        host = self._roster.host
        if not isinstance(host, KubeletVolumeHost):
            return
        informers = host.get_informer_factory()
        informers.start()

        def stop_informers() -> None:
            stop.wait()
            informers.stop()

        threading.Thread(target=stop_informers, name="stop informers", daemon=True).start()
        deadline = self._clock() + sync_timeout
        while not stop.is_set() and self._clock() < deadline:
            if informers.wait_for_cache_sync(min(0.5, sync_timeout)):
                return
        if not stop.is_set():
            logger.warning("the caches have not seen their first lists yet: waited=%g s", sync_timeout)

    def register_hook_wrapper(self, wrapper: object, *, per_plugin: bool = False) -> None:
        """Run wrappers around every call of every plugin, present and future: tracing, timing, policy.

        :param wrapper: an object whose methods are marked ``@hookimpl(wrapper=True)``; with ``per_plugin`` a
            callable that makes one for a given LoadedPlugin, so that it knows whose call it wraps.
        :raises PluginContractError: it wraps no hook, or one that does not exist.
        """
        from volumehost.loader.wrapping import check_wrapper, wrapped_hooks

        if per_plugin:
            factory: WrapperFactory = wrapper  # type: ignore[assignment]
        else:
            check_wrapper(wrapper, self._registry)

            def factory(_plugin: LoadedPlugin) -> object:
                return wrapper

        with self._refresher.lock:
            wrappers = [*self._wrappers, factory]
            plugins = list(self._roster.plugins.values())
            hooks = [wrapped_hooks(plugin, wrappers, self._hook_classes) for plugin in plugins]
            self._wrappers = wrappers
            for plugin, wrapped in zip(plugins, hooks, strict=True):
                plugin.bind_hooks(wrapped)
            self._refresher.publish()

    def close(self) -> list[VolumeHostError]:
        """Shut down every plugin; mounts stay. One that fails keeps no other from its shutdown (BR-18).

        :returns: the errors of those that failed.
        """
        with self._refresher.lock:
            self._refresher.use(None)
            errors = self._lifecycle.close()
            self._refresher.publish()
        return list(errors)

    # --- looking up ---

    def find_plugin_by_spec(self, spec: Spec | None, *, guarded: bool = False) -> LoadedPlugin:
        """The one plugin that supports the spec.

        :param guarded: ask in threads with a deadline, so that a plugin that hangs is set aside; without it that
            is done for the first question about each kind of source only.
        :raises SpecError: the spec is None (MGR-FIND-01).
        :raises NoPluginMatchedError: none does (MGR-FIND-02). Never a reason to think a volume unwanted (BR-15).
        :raises MultiplePluginsMatchedError: more than one does (MGR-FIND-03).
        """
        if spec is None:
            raise SpecError("could not find plugin because volume spec is nil")
        refresher = self._refresher
        if self._clock() >= refresher.due:
            refresher.unless_busy()
        if not guarded:
            asks = refresher.snapshot.proven.get(spec.source())
            if asks is not None:
                match = None
                try:
                    for can_support, plugin in asks:
                        answer: object = can_support(spec)
                        if answer is not False:
                            if answer is not True or match is not None:
                                break  # a wrong answer, or a second match: see below
                            match = plugin
                    else:
                        if match is not None:
                            return match
                except KeyboardInterrupt:
                    raise
                except BaseException:  # noqa: BLE001, S110 - below it is asked again and set aside
                    pass
        return self._find_carefully(spec, guarded=guarded)

    def find_plugin_by_name(self, name: str) -> LoadedPlugin:
        """The plugin of that name. One that was removed is found for as long as it is in use.

        :raises PluginNotFoundError: there is none (MGR-FIND-04). Never a reason to think a volume unwanted.
        """
        refresher = self._refresher
        if self._clock() >= refresher.due:
            refresher.unless_busy()
        plugin = refresher.snapshot.by_name.get(name)
        if plugin is None or not (plugin.offered or plugin.in_use):
            refresher.for_miss()
            plugin = refresher.snapshot.by_name.get(name)
            if plugin is None or not (plugin.offered or plugin.in_use):
                raise PluginNotFoundError(f"no volume plugin matched name: {name}", subject=name, hint=self._hint())
        return plugin

    def answers_at_once(self, spec: Spec) -> bool:
        """Whether all who would be asked about the spec are this project's own plugins, asked about its kind before."""
        snapshot, source = self._refresher.snapshot, spec.source()
        asks = snapshot.proven.get(source, ())
        return bool(asks) and source not in snapshot.translators and all(plugin.is_own for _, plugin in asks)

    def find_translator(self, spec: Spec) -> SpecTranslator | None:
        """What makes of the spec the one to look up a plugin for; None where that is the spec itself (CSI-MIG-01).

        :raises MultiplePluginsMatchedError: more than one plugin takes over this kind of source.
        """
        translators = self._refresher.snapshot.translators
        if not translators:
            return None
        source = spec.source()
        plugins = translators.get(source, ())
        if len(plugins) > 1:
            names = sorted(plugin.name for plugin in plugins)
            raise MultiplePluginsMatchedError(
                f"multiple volume plugins take over volumes of kind {_kind_of(spec)}: {','.join(names)}",
                names=names,
                subject=spec.name(),
                hint=KEEP_ONE,
            )
        return plugins[0].translators[source] if plugins else None

    def _find_carefully(self, spec: Spec, *, guarded: bool) -> LoadedPlugin:
        found = self._ask(spec, guarded=guarded)
        if not found:
            self._refresher.for_miss()
            found = self._ask(spec, guarded=guarded)
        if not found:
            raise NoPluginMatchedError("no volume plugin matched", subject=spec.name(), hint=self._hint(_kind_of(spec)))
        if len(found) > 1:
            names = sorted(plugin.name for plugin in found)
            raise MultiplePluginsMatchedError(
                f"multiple volume plugins matched: {','.join(names)}",
                names=names,
                subject=spec.name(),
                hint=KEEP_ONE,
            )
        return found[0]

    def _ask(self, spec: Spec, *, guarded: bool) -> list[LoadedPlugin]:
        snapshot, source = self._refresher.snapshot, spec.source()
        candidates = snapshot.candidates(source)
        matched = self._asker.matching(candidates, spec, source, guarded=guarded)
        if all(source in plugin.proven_sources for plugin in candidates):
            snapshot.remember_proven(source)
        else:
            snapshot.proven.pop(source, None)
        return matched

    def _hint(self, kind: str = "") -> str:
        """Why a plugin may be missing, and for a kind of volume that nobody serves what to do."""
        aside = [plugin for plugin in self._refresher.snapshot.by_name.values() if self._asker.is_aside(plugin)]
        hints = [f"set aside: {', '.join(sorted(plugin.name for plugin in aside))}"] if aside else []
        failed = [each for each in self._statuses() if each.state in status.NOT_LOADED]
        if failed:
            # With the cause: a refused init shows nowhere else, as whoever only looks at plugins starts none of them.
            causes = "; ".join(f"{each.name} ({each.detail})" for each in failed[:_CAUSES])
            more = f" and {len(failed) - _CAUSES} more" if len(failed) > _CAUSES else ""
            hints.append(f"{len(failed)} plugin(s) did not load: {causes}{more}: volumehost plugins check")
        if self._refresher.error is not None:
            hints.append(f"the last look for plugins failed: {self._refresher.error!r}")
        if kind:
            hints.append(f"volumes of kind {kind} need a plugin that serves them: install one with pip")
        return "; ".join(hints)

    def _noop_expandable(self, spec: Spec) -> LoadedPlugin:
        from volumehost.loader.noop_expandable import NoopExpandablePlugin

        plugin = NoopExpandablePlugin(spec)
        name = plugin.get_plugin_name()
        contract = check_contract(plugin, self._registry, name=name, origin=Origin())
        return build(plugin, name, Origin(), contract, self._registry)

    # --- what there is ---

    def loaded_plugins(self) -> list[LoadedPlugin]:
        """Every plugin that can be used now, in the order in which they were loaded."""
        self._refresher.for_miss()
        return list(self._refresher.snapshot.by_name.values())

    def plugins(self) -> list[status.PluginStatus]:
        """Every plugin, loaded, failed, excluded or set aside, sorted by name."""
        self._refresher.for_miss()
        return self._statuses()

    def errors(self) -> list[VolumeHostError]:
        """What is wrong with plugins now: not loaded, not updated, set aside; each says what to do."""
        return [each.error for each in self.plugins() if each.error is not None]

    @property
    def discovery_complete(self) -> bool:
        """Whether the last look for plugins worked and met no installation in progress."""
        return self._refresher.complete

    def _statuses(self) -> list[status.PluginStatus]:
        return status.plugin_statuses(list(self._lifecycle.units.values()), self._asker, self._refresher.waiting)

    def _prepare_for_use(self, plugin: LoadedPlugin) -> None:
        plugin.on_idle = self._refresher.soon
        if self._wrappers:
            from volumehost.loader.wrapping import wrapped_hooks

            plugin.bind_hooks(wrapped_hooks(plugin, self._wrappers, self._hook_classes))


def _kind_of(spec: Spec) -> str:
    """The kind of source as users know it, with the driver's name where that decides."""
    driver = spec.kubelet_expandable_plugin_name()
    first, *others = spec.source().split("_")
    return f"flexVolume with driver {driver}" if driver else first + "".join(map(str.capitalize, others))
