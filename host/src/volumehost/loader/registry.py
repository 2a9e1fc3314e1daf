"""The one pluggy manager of a host: it knows every hook, validates plugins against them and registers them."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pluggy

from volumehost.hookspecs import HOOK_CLASSES, PROJECT_NAME, own_hooks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pluggy import HookimplOpts, HookspecOpts

_SPEC = f"{PROJECT_NAME}_spec"
_IMPL = f"{PROJECT_NAME}_impl"


class HookRegistry(pluggy.PluginManager):
    """A pluggy manager with the hooks of the given classes.

    Each class contributes the hooks that it declares itself: the interfaces inherit from one another as Protocols,
    and pluggy refuses to be told a hook twice. pluggy is told when the first plugin registers.
    """

    def __init__(self, hook_classes: Sequence[type] = HOOK_CLASSES) -> None:
        super().__init__(PROJECT_NAME)
        #: Hook name to the names of its arguments, in order.
        self.arguments: dict[str, tuple[str, ...]] = {}
        self._deprecated_hooks: dict[str, Warning] = {}
        self._deprecated_arguments: dict[str, Mapping[str, Warning]] = {}
        self._to_add = [hook_class for hook_class in hook_classes if own_hooks(hook_class)]
        for hook_class in self._to_add:
            for name in own_hooks(hook_class):
                self._note(name, vars(hook_class)[name])

    def register(self, plugin: Any, name: str | None = None) -> str | None:
        """Validate and register a plugin or a wrapper under a name."""
        while self._to_add:
            self.add_hookspecs(self._to_add.pop(0))
        return super().register(plugin, name)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> HookspecOpts | None:
        """Options of a hook that the class itself declares, without its deprecations.

        Those are told in :meth:`deprecations`: pluggy's own warning names neither plugin nor distribution.
        """
        if name not in vars(module_or_class):
            return None
        found = super().parse_hookspec_opts(module_or_class, name)
        if found is None:
            return None
        options = cast("HookspecOpts", dict(found))
        options["warn_on_impl"] = None
        options["warn_on_impl_args"] = None
        return options

    def marked_functions(self, plugin: object) -> Iterator[tuple[str, HookimplOpts]]:
        """Names and options of the functions of a plugin that are marked as hook implementations, sorted by name."""
        for name in sorted(_names_of_marked(plugin)):
            options = self.parse_hookimpl_opts(plugin, name)
            if options is not None:
                yield name, options

    def deprecations(self, hook: str, arguments: Sequence[str]) -> list[Warning]:
        """The warnings that go with implementing this hook with these arguments."""
        found = [self._deprecated_hooks[hook]] if hook in self._deprecated_hooks else []
        by_argument = self._deprecated_arguments.get(hook, {})
        return found + [by_argument[name] for name in arguments if name in by_argument]

    def _note(self, name: str, function: Any) -> None:
        code = function.__code__
        self.arguments[name] = tuple(code.co_varnames[1 : code.co_argcount])
        options: HookspecOpts = getattr(function, _SPEC)
        if options["warn_on_impl"] is not None:
            self._deprecated_hooks[name] = options["warn_on_impl"]
        if options["warn_on_impl_args"]:
            self._deprecated_arguments[name] = options["warn_on_impl_args"]


def _names_of_marked(plugin: object) -> set[str]:
    """Names that may be of marked functions: found in the dictionaries, which runs none of the plugin's code.

    pluggy has the last word on each; asking it about every attribute of every plugin would take much longer.
    """
    holders: list[Mapping[str, object]] = [getattr(plugin, "__dict__", {})]
    if not isinstance(plugin, ModuleType):
        kind = plugin if isinstance(plugin, type) else type(plugin)
        holders += [vars(each) for each in kind.__mro__]
    return {name for holder in holders for name, value in holder.items() if _is_marked(value)}


def _is_marked(value: object) -> bool:
    return hasattr(value, _IMPL) or hasattr(getattr(value, "__func__", None), _IMPL)
