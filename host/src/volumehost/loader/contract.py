"""Checks that an object keeps the plugin contract, and finds which interfaces it has (DESIGN section 3, BR-17)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from volumehost.errors import PluginContractError
from volumehost.hookspecs import HOOK_CLASSES, INTERFACES, PROJECT_NAME, VolumePlugin, own_hooks, required_hooks
from volumehost.loader.binding import Implementation, describe_implementation

if TYPE_CHECKING:
    from volumehost.loader.origin import Origin
    from volumehost.loader.registry import HookRegistry


#: The same for every plugin, and asked for each.
_required_hooks = cache(required_hooks)
_own_hooks = cache(own_hooks)


class Contract(NamedTuple):
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
    for attribute, options in registry.marked_functions(plugin):
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
    interfaces = frozenset(each for each in INTERFACES if _required_hooks(each) <= found.keys())
    missing = sorted(_required_hooks(VolumePlugin) - found.keys())
    faults = [_missing_hooks("it is not a VolumePlugin", missing, unmarked)] if missing else []
    for interface in INTERFACES:
        if interface is VolumePlugin or interface in interfaces:
            continue
        present = [hook for hook in _own_hooks(interface) if hook in found]
        missing = sorted(_further_hooks(interface) - found.keys())
        if present and missing:
            what = f"it is half of {interface.__name__} (it has {', '.join(present)})"
            faults.append(_missing_hooks(what, missing, unmarked))
    return interfaces, faults + _shared_alone(found)


def _shared_alone(found: Mapping[str, Implementation]) -> list[str]:
    """A fault for a hook that several interfaces share, when no other hook of any of them is there (PLUG-32)."""
    faults = []
    for hook_class in HOOK_CLASSES:
        if hook_class in INTERFACES:
            continue
        owners = [each for each in INTERFACES if hook_class in each.__mro__]
        for hook in _own_hooks(hook_class):
            if hook in found and not any(name in found for owner in owners for name in _own_hooks(owner)):
                needed = " or ".join(
                    f"{', '.join(sorted(_further_hooks(owner) - found.keys()))} for {owner.__name__}"
                    for owner in owners
                )
                faults.append(f"it has {hook}, which means nothing alone: missing {needed}")
    return faults


def _further_hooks(interface: type) -> frozenset[str]:
    """What the interface requires beyond every plugin's hooks."""
    return _required_hooks(interface) - _required_hooks(VolumePlugin)


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
