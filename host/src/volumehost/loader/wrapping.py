"""Runs the embedding program's hook wrappers (tracing, timing, policy) around the calls of every plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from volumehost.errors import PluginContractError
from volumehost.loader.binding import name_arguments
from volumehost.loader.registry import HookRegistry

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin

#: Makes the wrapper object for one plugin.
WrapperFactory = Callable[["LoadedPlugin"], object]


def check_wrapper(wrapper: object, registry: HookRegistry) -> None:
    """Refuse an object that could not work as a wrapper.

    :raises PluginContractError: it wraps no hook, an unknown one, or implements one instead of wrapping it.
    """
    faults = []
    wrapped = 0
    for attribute, options in registry.marked_functions(wrapper):
        wrapped += 1
        hook = options.get("specname") or attribute
        if hook not in registry.arguments:
            faults.append(f"there is no hook {hook!r}")
        elif not (options.get("wrapper") or options.get("hookwrapper")):
            faults.append(f"{attribute} must be marked with @hookimpl(wrapper=True)")
    if not wrapped:
        faults.append("it wraps no hook")
    if faults:
        raise PluginContractError("; ".join(faults), action=f"registering the hook wrapper {wrapper!r}")


def wrapped_hooks(
    plugin: LoadedPlugin, factories: Sequence[WrapperFactory], hook_classes: Sequence[type]
) -> dict[str, Callable[..., Any]]:
    """The plugin's hooks, each calling the wrappers around the plugin's own function.

    Each plugin gets a pluggy manager of its own here, with itself and the wrappers in it. One shared manager would
    have to be asked for "all but the others" at every call, and would answer for a newcomer that registers meanwhile.

    :raises PluginContractError: a wrapper cannot be made for the plugin, or takes arguments that the hook has not.
    """
    registry = HookRegistry(hook_classes)
    registry.register(plugin.plugin, name=plugin.name)
    for number, factory in enumerate(factories):
        try:
            wrapper = factory(plugin)
            check_wrapper(wrapper, registry)
            registry.register(wrapper, name=f"wrapper {number}")
        except Exception as error:
            if isinstance(error, PluginContractError):
                raise
            raise PluginContractError(
                f"a hook wrapper of the embedding program cannot be used: {error}",
                plugin=plugin.name,
                action=f"wrapping the hooks of {plugin.name}",
            ) from error
    return {hook: _caller(registry, hook) for hook in plugin.contract.implementations}


def _caller(registry: HookRegistry, hook: str) -> Callable[..., Any]:
    call_hook = getattr(registry.hook, hook)
    names = registry.arguments[hook]

    def call(*args: Any, **kwargs: Any) -> Any:
        return call_hook(**name_arguments(hook, names, args, kwargs))

    return call
