"""The one pluggy manager of a host: it knows every hook, validates plugins against them and registers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pluggy

from volumehost.hookspecs import HOOK_CLASSES, PROJECT_NAME, own_hooks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pluggy import HookimplOpts, HookspecOpts


class HookRegistry(pluggy.PluginManager):
    """A pluggy manager with the hooks of the given classes.

    Each class contributes the hooks that it declares itself: the interfaces inherit from one another as Protocols,
    and pluggy refuses to be told a hook twice.
    """

    def __init__(self, hook_classes: Sequence[type] = HOOK_CLASSES) -> None:
        super().__init__(PROJECT_NAME)
        #: Hook name to the names of its arguments, in order.
        self.arguments: dict[str, tuple[str, ...]] = {}
        self._deprecated_hooks: dict[str, Warning] = {}
        self._deprecated_arguments: dict[str, Mapping[str, Warning]] = {}
        for hook_class in hook_classes:
            for name in own_hooks(hook_class):
                self.arguments[name] = _argument_names(vars(hook_class)[name])
            if own_hooks(hook_class):
                self.add_hookspecs(hook_class)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> HookspecOpts | None:
        """Options of a hook that the class itself declares.

        Deprecations are kept here and not given to pluggy: its warning names neither plugin nor distribution.
        """
        if name not in vars(module_or_class):
            return None
        found = super().parse_hookspec_opts(module_or_class, name)
        if found is None:
            return None
        options = cast("HookspecOpts", dict(found))
        if options["warn_on_impl"] is not None:
            self._deprecated_hooks[name] = options["warn_on_impl"]
        if options["warn_on_impl_args"]:
            self._deprecated_arguments[name] = options["warn_on_impl_args"]
        options["warn_on_impl"] = None
        options["warn_on_impl_args"] = None
        return options

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> HookimplOpts | None:
        """Options of a marked function of a plugin; names with two leading underscores are never hooks."""
        if name.startswith("__"):
            return None
        return super().parse_hookimpl_opts(plugin, name)

    def deprecations(self, hook: str, arguments: Sequence[str]) -> list[Warning]:
        """The warnings that go with implementing this hook with these arguments."""
        found = [self._deprecated_hooks[hook]] if hook in self._deprecated_hooks else []
        by_argument = self._deprecated_arguments.get(hook, {})
        return found + [by_argument[name] for name in arguments if name in by_argument]


def _argument_names(function: Any) -> tuple[str, ...]:
    """The names of a hook's arguments without ``self``."""
    code = function.__code__
    return tuple(code.co_varnames[1 : code.co_argcount])
