"""The typed methods of a loaded plugin agree with the hook specifications, and do what they promise."""

from __future__ import annotations

import inspect

import pytest

from volumehost import hookimpl
from volumehost.errors import HookNotImplementedError
from volumehost.hookspecs import HOOK_CLASSES, OPTIONAL_HOOKS, own_hooks
from volumehost.loader.hook_methods import HookMethods

HOOKS = {name: hook_class for hook_class in HOOK_CLASSES for name in own_hooks(hook_class)}
#: Legal in tests and where plugins are only listed (MGR-INIT-10).
HOST_MAY_BE_NONE = {"init"}


def test_there_is_one_method_for_each_hook_and_no_other():
    methods = {name for name in vars(HookMethods) if not name.startswith("_")}
    assert methods == set(HOOKS)


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_the_method_has_the_signature_of_the_hook(name):
    method = inspect.signature(getattr(HookMethods, name))
    hook = inspect.signature(getattr(HOOKS[name], name))
    assert list(method.parameters) == list(hook.parameters)
    assert method.return_annotation == hook.return_annotation
    if name not in HOST_MAY_BE_NONE:
        assert method == hook


@pytest.mark.parametrize("name", sorted(set(HOOKS) - set(OPTIONAL_HOOKS)))
def test_a_hook_of_an_interface_that_the_plugin_lacks_raises(manager, base, name):
    plugin = manager(base()).find_plugin_by_name("example.com/p")
    if name in plugin.contract.implementations:
        assert name in vars(plugin)
        return
    arguments = [None] * (len(inspect.signature(getattr(HookMethods, name)).parameters) - 1)
    with pytest.raises(HookNotImplementedError, match=name) as caught:
        getattr(plugin, name)(*arguments)
    assert caught.value.plugin == "example.com/p"


def test_optional_hooks_give_their_stated_default(manager, base):
    class Plugin(base):
        init = None

    plugin = manager(Plugin()).find_plugin_by_name("example.com/p")
    for name, default in OPTIONAL_HOOKS.items():
        arguments = [None] * (len(inspect.signature(getattr(HookMethods, name)).parameters) - 1)
        assert getattr(plugin, name)(*arguments) == default


def test_hooks_are_the_plugins_own_functions_and_take_both_kinds_of_arguments(manager, base):
    plugin = manager(base()).find_plugin_by_name("example.com/p")
    assert plugin.new_mounter == plugin.plugin.new_mounter
    assert plugin.new_mounter("s", "p") == plugin.new_mounter(pod="p", spec="s") == ("mounter", "s", "p")
    assert plugin.new_unmounter("v", pod_uid="u") == ("unmounter", "v", "u")


def test_what_a_hook_raises_reaches_the_caller_unchanged(manager, base):
    class MyError(Exception):
        pass

    class Plugin(base):
        @hookimpl
        def new_mounter(self, spec, pod):
            raise MyError("mine")

    plugin = manager(Plugin()).find_plugin_by_name("example.com/p")
    with pytest.raises(MyError, match="mine"):
        plugin.new_mounter("s", "p")
