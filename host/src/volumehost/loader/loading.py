"""Loads one plugin: from an object to a checked, initialised :class:`LoadedPlugin`, each step with its own error."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, cast

from volumehost.errors import (
    InvalidPluginNameError,
    PluginCallError,
    PluginContractError,
    PluginDeniedError,
    PluginError,
    PluginImportError,
    PluginInitError,
)
from volumehost.loader.binding import bind
from volumehost.loader.contract import Contract, check_contract
from volumehost.loader.guard import describe
from volumehost.loader.loaded import LoadedPlugin
from volumehost.loader.names import plugin_name_faults
from volumehost.loader.trust import ENV_DISABLE

if TYPE_CHECKING:
    from volumehost.loader.guard import Guard
    from volumehost.loader.origin import Origin
    from volumehost.loader.registry import HookRegistry
    from volumehost.loader.trust import TrustPolicy
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import SpecTranslator

logger = logging.getLogger(__name__)


class PluginLoader:
    """Turns objects into loaded plugins. Third-party code runs in the guard's threads, each call with a deadline."""

    def __init__(self, registry: HookRegistry, guard: Guard, trust: TrustPolicy, timeout: float) -> None:
        self.registry = registry
        self._guard = guard
        self._trust = trust
        self._timeout = timeout

    def prepare(self, make: Callable[[], object], origin: Origin, label: str) -> LoadedPlugin:
        """Create the plugin and check it, without initialising it.

        :param make: imports or returns a class, an instance or a module.
        :raises PluginError: of the kind that says what failed.
        """
        outcome = self._guard.run(lambda: self._prepare(make, origin, label), self._timeout, f"load {label}")
        if isinstance(outcome.error, PluginError):
            raise outcome.error
        if outcome.error is not None:
            raise PluginImportError(
                describe(outcome.error), **_about(origin, label), hint=mending_hint(origin)
            ) from outcome.error
        return cast("LoadedPlugin", outcome.value)

    def init(self, plugin: LoadedPlugin, host: VolumeHost | None) -> None:
        """Call the plugin's ``init``, then ask which sources it declares, and which it takes over.

        :raises PluginInitError: it raised, or did not come back in time (MGR-INIT-07).
        :raises PluginContractError: ``get_volume_sources`` gave no collection of strings, or ``get_spec_translators``
            no mapping from strings to callables.
        """
        outcome = self._guard.run(lambda: self._init(plugin, host), self._timeout, f"init {plugin.name}")
        if isinstance(outcome.error, PluginContractError):
            raise outcome.error
        if outcome.error is not None:
            raise PluginInitError(
                f"failed to load volume plugin {plugin.name}, error: {describe(outcome.error)}",
                **_about(plugin.origin, plugin.name),
                hint=mending_hint(plugin.origin),
            ) from outcome.error

    def shutdown(self, plugin: LoadedPlugin) -> PluginError | None:
        """Call the plugin's ``shutdown``; what it raises is returned, so that the others get theirs (BR-18)."""
        outcome = self._guard.run(plugin.shutdown, self._timeout, f"shut down {plugin.name}")
        if outcome.error is None:
            return None
        error = PluginCallError(
            f"shutdown failed: {describe(outcome.error)}", **_about(plugin.origin, plugin.name, "unloading")
        )
        error.__cause__ = outcome.error
        return error

    def import_ahead(self, run: Callable[[], object], what: str) -> None:
        """Import what plugins may need later; that it fails, or takes too long, only means that it is not there."""
        outcome = self._guard.run(run, self._timeout, f"import ahead {what}")
        if outcome.error is not None:
            logger.warning("not everything was imported ahead: %s, error=%s", what, describe(outcome.error))

    def _prepare(self, make: Callable[[], object], origin: Origin, label: str) -> LoadedPlugin:
        plugin = instantiate(make())
        contract = check_contract(plugin, self.registry, name=label, origin=origin)
        name = contract.implementations["get_plugin_name"].function()
        self._check_name(name, origin)
        return build(plugin, name, origin, contract, self.registry)

    def _init(self, plugin: LoadedPlugin, host: VolumeHost | None) -> None:
        plugin.init(host)
        plugin.sources = _check_sources(plugin)
        plugin.translators = _check_translators(plugin)
        _warn_of_deprecations(plugin, self.registry)

    def _check_name(self, name: object, origin: Origin) -> None:
        faults = (
            plugin_name_faults(name)
            if isinstance(name, str)
            else [f"get_plugin_name returned {type(name).__name__}, not a string"]
        )
        if not faults:
            faults = self._trust.name_faults(str(name), origin)
        if faults:
            raise InvalidPluginNameError(
                f'volume plugin has invalid name: "{name}": {";".join(faults)}', **_about(origin, str(name))
            )
        reason = self._trust.reason_not_to_use(str(name), origin)
        if reason:
            raise PluginDeniedError(reason, **_about(origin, str(name)))


def instantiate(found: object) -> object:
    """A class is called without arguments; an instance or a module is the plugin itself."""
    return found() if isinstance(found, type) else found


def build(plugin: object, name: str, origin: Origin, contract: Contract, registry: HookRegistry) -> LoadedPlugin:
    """A loaded plugin with its hooks bound to the object's own functions."""
    hooks = {
        hook: bind(implementation, registry.arguments[hook])
        for hook, implementation in contract.implementations.items()
    }
    return LoadedPlugin(plugin, name, origin, contract, hooks)


def mending_hint(origin: Origin) -> str:
    """How a user gets rid of a plugin that does not load."""
    if not origin.distribution:
        return ""
    return f"repair it: pip install -U {origin.distribution}; or exclude it: {ENV_DISABLE}={origin.distribution}"


def _check_sources(plugin: LoadedPlugin) -> frozenset[str] | None:
    declared: object = plugin.get_volume_sources()
    if declared is None:
        return None
    if isinstance(declared, str):
        fault = f"get_volume_sources returned the string {declared!r}; a collection is wanted: ({declared!r},)"
    elif not isinstance(declared, Collection) or not all(isinstance(item, str) for item in declared):
        fault = f"get_volume_sources returned {declared!r}, not a collection of strings"
    else:
        return frozenset(declared)
    raise PluginContractError(fault, **_about(plugin.origin, plugin.name))


def _check_translators(plugin: LoadedPlugin) -> Mapping[str, SpecTranslator]:
    given: object = plugin.get_spec_translators()
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(
        isinstance(kind, str) and callable(each) for kind, each in given.items()
    ):
        fault = f"get_spec_translators returned {given!r}, not a mapping from kinds of source to callables"
        raise PluginContractError(fault, **_about(plugin.origin, plugin.name))
    return dict(given)


def _warn_of_deprecations(plugin: LoadedPlugin, registry: HookRegistry) -> None:
    """One warning for each deprecated hook or argument in use, at the plugin's own line."""
    for implementation in plugin.contract.implementations.values():
        for warning in registry.deprecations(implementation.hook, implementation.arguments):
            code = getattr(implementation.function, "__code__", None)
            warnings.warn_explicit(
                f"the volume plugin {plugin.name} of {plugin.origin}: {warning}",
                type(warning),
                filename=code.co_filename if code else "<plugin>",
                lineno=code.co_firstlineno if code else 1,
            )


def _about(origin: Origin, name: str, doing: str = "loading") -> dict[str, str]:
    return {
        "plugin": name,
        "distribution": origin.distribution,
        "version": origin.version,
        "action": f"{doing} the volume plugin {name} of {origin}",
    }
