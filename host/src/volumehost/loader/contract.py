"""Checks that an object keeps the plugin contract, and finds which interfaces it has (DESIGN section 3, BR-17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from volumehost.errors import PluginContractError
from volumehost.hookspecs import INTERFACES, OPTIONAL_HOOKS, PROJECT_NAME, VolumePlugin, own_hooks, required_hooks
from volumehost.loader.binding import Implementation, describe_implementation

if TYPE_CHECKING:
    from volumehost.loader.origin import Origin
    from volumehost.loader.registry import HookRegistry


@dataclass(frozen=True, slots=True)
class Contract:
    """What a plugin implements: its interfaces, its function for each hook, and what its author should know."""

    interfaces: frozenset[type]
    implementations: Mapping[str, Implementation]
    notes: tuple[str, ...] = ()


def check_contract(plugin: Any, registry: HookRegistry, *, name: str, origin: Origin) -> Contract:
    """The plugin's contract.

    :raises PluginContractError: lists everything that is wrong, so that an author mends it in one go.
    """
    implementations, faults = _implementations(plugin, registry)
    unmarked = _unmarked(plugin, registry, implementations)
    interfaces, missing = _interfaces(implementations, unmarked)
    faults += missing
    if faults:
        raise PluginContractError(
            "; ".join(faults),
            plugin=name,
            distribution=origin.distribution,
            version=origin.version,
            action=f"loading the volume plugin {name} of {origin}",
            hint="the plugin's author must mend this; see the hook reference",
        )
    notes = [
        f"has a function named {hook} that is not marked with @hookimpl, and so is never called" for hook in unmarked
    ]
    for implementation in implementations.values():
        notes += map(str, registry.deprecations(implementation.hook, implementation.arguments))
    return Contract(interfaces, implementations, tuple(notes))


def _implementations(plugin: Any, registry: HookRegistry) -> tuple[dict[str, Implementation], list[str]]:
    found: dict[str, Implementation] = {}
    faults: list[str] = []
    for attribute in dir(plugin):
        options = registry.parse_hookimpl_opts(plugin, attribute)
        if options is None:
            continue
        hook = options.get("specname") or attribute
        if hook not in registry.arguments:
            if not options.get("optionalhook"):
                faults.append(f"there is no hook {hook!r}{_nearest(hook, registry)}")
            continue
        if options.get("wrapper") or options.get("hookwrapper"):
            faults.append(f"{attribute} wraps the hook {hook!r}: only the embedding program may wrap hooks")
            continue
        if hook in found:
            faults.append(f"the hook {hook!r} is implemented twice")
            continue
        found[hook], wrong = describe_implementation(hook, getattr(plugin, attribute), registry.arguments[hook])
        faults += wrong
    return found, faults


def _unmarked(plugin: Any, registry: HookRegistry, found: Mapping[str, Implementation]) -> list[str]:
    """Hooks for which the plugin has a function of that name which it did not mark.

    The interfaces' own methods, inherited by a class that names an interface as its base, do not count.
    """
    marker = f"{PROJECT_NAME}_spec"
    names = []
    for hook in registry.arguments:
        if hook in found:
            continue
        value = getattr(plugin, hook, None)
        if callable(value) and getattr(value, marker, None) is None:
            names.append(hook)
    return names


def _interfaces(found: Mapping[str, Implementation], unmarked: list[str]) -> tuple[frozenset[type], list[str]]:
    """The interfaces of which every required hook is there, and a fault for each that is there in part."""
    interfaces = set()
    faults = []
    shared = set(found)
    for interface in INTERFACES:
        own = [hook for hook in own_hooks(interface) if hook not in OPTIONAL_HOOKS]
        missing = sorted(required_hooks(interface) - found.keys())
        shared.difference_update(own_hooks(interface))
        if not missing:
            interfaces.add(interface)
        elif interface is VolumePlugin:
            faults.append(_missing_hooks("it is not a VolumePlugin", missing, unmarked))
        elif any(hook in found for hook in own):
            present = ", ".join(hook for hook in own if hook in found)
            only = [hook for hook in missing if hook not in required_hooks(VolumePlugin)]
            if only:
                faults.append(_missing_hooks(f"it is half a {interface.__name__} (it has {present})", only, unmarked))
    for hook in sorted(shared):
        owners = [kind.__name__ for kind in INTERFACES if hook in required_hooks(kind)]
        if owners and not any(hook in required_hooks(kind) for kind in interfaces):
            faults.append(f"it has {hook} but no other hook of {' or '.join(owners)}")
    return frozenset(interfaces), faults


def _missing_hooks(what: str, missing: list[str], unmarked: list[str]) -> str:
    text = f"{what}: missing {', '.join(missing)}"
    there = [hook for hook in missing if hook in unmarked]
    if there:
        text += f" (there, but not marked with @hookimpl: {', '.join(there)})"
    return text


def _nearest(name: str, registry: HookRegistry) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(registry.arguments), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
