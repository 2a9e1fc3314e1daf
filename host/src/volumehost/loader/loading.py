"""Loads one plugin: from an object or an entry point to a checked, initialised :class:`LoadedPlugin`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from volumehost.errors import (
    InvalidPluginNameError,
    PluginDeniedError,
    PluginError,
    PluginImportError,
    PluginInitError,
)
from volumehost.loader.binding import bind
from volumehost.loader.contract import Contract, check_contract
from volumehost.loader.loaded import LoadedPlugin
from volumehost.loader.names import plugin_name_faults
from volumehost.loader.trust import ENV_DISABLE

if TYPE_CHECKING:
    from volumehost.loader.guard import Guard, Outcome
    from volumehost.loader.origin import Origin
    from volumehost.loader.registry import HookRegistry
    from volumehost.loader.trust import TrustPolicy
    from volumehost.volume_host import VolumeHost


def import_entry_point(value: str) -> object:
    """The object that an entry point's value ``module:attribute`` names; just the module without an attribute."""
    reference = value.partition("[")[0].strip()
    module_name, _, attributes = reference.partition(":")
    found: Any = importlib.import_module(module_name.strip())
    for attribute in filter(None, attributes.strip().split(".")):
        found = getattr(found, attribute)
    return cast("object", found)


def instantiate(found: object) -> object:
    """A class is called without arguments; an instance or a module is the plugin itself."""
    return found() if isinstance(found, type) else found


@dataclass(frozen=True, slots=True)
class PluginLoader:
    """Turns objects into loaded plugins. Third-party code runs in the guard's threads, each with a deadline."""

    registry: HookRegistry
    guard: Guard
    trust: TrustPolicy
    timeout: float

    def prepare(self, make: Callable[[], object], origin: Origin, label: str) -> LoadedPlugin:
        """Create the plugin and check it, without initialising it.

        :raises PluginError: of the kind that says what failed.
        """
        outcome = self.guard.run(lambda: self._prepare(make, origin, label), self.timeout, f"load {label}")
        if isinstance(outcome.error, PluginError):
            raise outcome.error
        if not outcome.finished or outcome.error is not None:
            raise PluginImportError(
                describe(outcome, self.timeout),
                plugin=label,
                distribution=origin.distribution,
                version=origin.version,
                action=f"loading the volume plugin {label} of {origin}",
                hint=_hint(origin),
            ) from outcome.error
        return cast("LoadedPlugin", outcome.value)

    def _prepare(self, make: Callable[[], object], origin: Origin, label: str) -> LoadedPlugin:
        plugin = instantiate(make())
        contract = check_contract(plugin, self.registry, name=label, origin=origin)
        name = contract.implementations["get_plugin_name"].function()
        self._check_name(name, origin)
        return build(plugin, name, origin, contract, self.registry)

    def _check_name(self, name: object, origin: Origin) -> None:
        if not isinstance(name, str):
            faults = [f"get_plugin_name returned {type(name).__name__}, not a string"]
        else:
            faults = plugin_name_faults(name)
        if faults:
            raise InvalidPluginNameError(
                f"volume plugin has invalid name: {_quoted(name)}: {';'.join(faults)}",
                plugin=str(name),
                distribution=origin.distribution,
                version=origin.version,
                action=f"loading a volume plugin of {origin}",
            )
        reason = self.trust.reason_not_to_use(str(name), origin)
        if reason:
            raise PluginDeniedError(
                reason,
                plugin=str(name),
                distribution=origin.distribution,
                version=origin.version,
                action=f"loading the volume plugin {name} of {origin}",
            )

    def init(self, plugin: LoadedPlugin, host: VolumeHost | None) -> None:
        """Call the plugin's ``init``.

        :raises PluginInitError: it raised, or did not come back in time (MGR-INIT-07).
        """
        outcome = self.guard.run(lambda: plugin.init(host), self.timeout, f"init {plugin.name}")
        if not outcome.finished or outcome.error is not None:
            raise PluginInitError(
                f"failed to load volume plugin {plugin.name}, error: {describe(outcome, self.timeout)}",
                plugin=plugin.name,
                distribution=plugin.origin.distribution,
                version=plugin.origin.version,
                hint=_hint(plugin.origin),
            ) from outcome.error


def build(plugin: object, name: str, origin: Origin, contract: Contract, registry: HookRegistry) -> LoadedPlugin:
    """A loaded plugin with its hooks bound to the object's own functions."""
    hooks = {
        hook: bind(implementation, registry.arguments[hook])
        for hook, implementation in contract.implementations.items()
    }
    return LoadedPlugin(plugin, name, origin, contract, hooks)


def describe(outcome: Outcome, timeout: float) -> str:
    """One line on how a guarded call failed."""
    error = outcome.error
    if error is None:
        return f"it did not come back within {timeout:g} s"
    if isinstance(error, SystemExit):
        return f"it tried to end the process (SystemExit {error.code})"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"missing module {error.name!r}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _quoted(name: object) -> str:
    return f'"{name}"'


def _hint(origin: Origin) -> str:
    if not origin.distribution:
        return ""
    return f"repair it: pip install -U {origin.distribution}; or exclude it: {ENV_DISABLE}={origin.distribution}"
