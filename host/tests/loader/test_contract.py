"""BR-17: what a plugin must have in order to load, and what it is told when it has not."""

from __future__ import annotations

import types

import pytest

from volumehost import hookimpl
from volumehost.errors import PluginContractError
from volumehost.hookspecs import (
    INTERFACES,
    AttachableVolumePlugin,
    DeletableVolumePlugin,
    DeviceMountableVolumePlugin,
    ExpandableVolumePlugin,
    NodeExpandableVolumePlugin,
    PersistentVolumePlugin,
    VolumePlugin,
    required_hooks,
)
from volumehost.loader.contract import check_contract
from volumehost.loader.origin import Origin
from volumehost.loader.registry import HookRegistry

ORIGIN = Origin("acme-volumes", "1.0", "scratch", "acme:Plugin", "/site")


@pytest.fixture(scope="module")
def registry():
    return HookRegistry()


@pytest.fixture
def check(registry):
    return lambda plugin: check_contract(plugin, registry, name="example.com/p", origin=ORIGIN)


@pytest.fixture
def refused(check):
    """The reason why a plugin is refused."""

    def refuse(plugin):
        with pytest.raises(PluginContractError) as caught:
            check(plugin)
        assert caught.value.distribution == "acme-volumes"
        assert caught.value.version == "1.0"
        assert caught.value.plugin == "example.com/p"
        return caught.value.reason

    return refuse


def with_hooks(base, *names):
    """A subclass with these hooks, of the right signature."""
    registry = HookRegistry()
    space = {}
    for name in names:
        arguments = ", ".join(["self", *registry.arguments[name]])
        scope = {}
        exec(f"def {name}({arguments}): return None", scope)
        space[name] = hookimpl(scope[name])
    return type("Plugin", (base,), space)()


def test_the_minimum_is_a_volume_plugin_and_nothing_else(check, base):
    contract = check(base())
    assert contract.interfaces == {VolumePlugin}
    assert contract.notes == ()


@pytest.mark.parametrize("interface", INTERFACES)
def test_each_interface_is_found_by_its_hooks(check, base, interface):
    contract = check(with_hooks(base, *sorted(required_hooks(interface) - required_hooks(VolumePlugin))))
    assert interface in contract.interfaces
    assert contract.interfaces == {each for each in INTERFACES if required_hooks(each) <= required_hooks(interface)}


def test_plug32_one_object_has_many_interfaces_and_shares_requires_fs_resize(check, base):
    hooks = {hook for interface in INTERFACES for hook in required_hooks(interface)} - required_hooks(VolumePlugin)
    assert check(with_hooks(base, *sorted(hooks))).interfaces == set(INTERFACES)


@pytest.mark.parametrize("hook", sorted(required_hooks(VolumePlugin)))
def test_br17_a_missing_mandatory_hook_is_named(refused, base, hook):
    namespace = {name: getattr(base, name) for name in required_hooks(VolumePlugin) if name != hook}
    reason = refused(type("Plugin", (), namespace)())
    assert f"missing {hook}" in reason


@pytest.mark.parametrize(
    ("interface", "hook"),
    [
        (interface, hook)
        for interface in INTERFACES[1:]
        for hook in sorted(required_hooks(interface) - required_hooks(VolumePlugin))
        if len(required_hooks(interface) - required_hooks(VolumePlugin)) > 1
    ],
)
def test_br17_half_an_interface_names_what_is_missing(refused, base, interface, hook):
    hooks = required_hooks(interface) - required_hooks(VolumePlugin) - {hook}
    reason = refused(with_hooks(base, *sorted(hooks)))
    assert hook in reason.partition("missing ")[2]
    assert interface.__name__ in reason


def test_half_an_interface_does_not_name_hooks_of_others(refused, base):
    reason = refused(with_hooks(base, "new_attacher"))
    assert "half of AttachableVolumePlugin" in reason
    for hook in required_hooks(AttachableVolumePlugin) - required_hooks(VolumePlugin):
        assert hook in reason
    assert "get_access_modes" not in reason


def test_inherited_hooks_alone_are_not_half_of_the_larger_interface(check, base):
    hooks = required_hooks(DeviceMountableVolumePlugin) - required_hooks(VolumePlugin)
    assert check(with_hooks(base, *hooks)).interfaces == {VolumePlugin, DeviceMountableVolumePlugin}


def test_the_shared_hook_alone_belongs_to_nothing(refused, base):
    reason = refused(with_hooks(base, "requires_fs_resize"))
    assert ExpandableVolumePlugin.__name__ in reason
    assert NodeExpandableVolumePlugin.__name__ in reason


def test_the_shared_hook_serves_either_of_the_two(check, base):
    assert ExpandableVolumePlugin in check(with_hooks(base, "requires_fs_resize", "expand_volume_device")).interfaces
    assert NodeExpandableVolumePlugin in check(with_hooks(base, "requires_fs_resize", "node_expand")).interfaces


def test_br17_a_misspelled_hook_is_refused_with_the_nearest_name(refused, base):
    class Plugin(base):
        @hookimpl
        def new_mountr(self, spec, pod):
            """Misspelled."""

    reason = refused(Plugin())
    assert "'new_mountr'" in reason
    assert "'new_mounter'" in reason


def test_an_unknown_hook_that_may_be_unknown_is_left_alone(check, base):
    class Plugin(base):
        @hookimpl(optionalhook=True)
        def of_a_newer_host(self):
            """The plugin works with older hosts too."""

    assert "of_a_newer_host" not in check(Plugin()).implementations


def test_br17_a_hook_that_is_not_marked_is_mentioned_where_it_is_missed(refused, base):
    class Plugin(base):
        def can_support(self, spec):
            """Forgotten to mark."""

    reason = refused(Plugin())
    assert "missing can_support" in reason
    assert "not marked with @hookimpl: can_support" in reason


def test_an_optional_hook_that_is_not_marked_is_a_note(check, base):
    class Plugin(base):
        def requires_remount(self, spec):
            return True

    (note,) = check(Plugin()).notes
    assert "requires_remount" in note


def test_the_interfaces_own_methods_are_not_taken_for_forgotten_marks(check, base):
    class Plugin(base, DeletableVolumePlugin, PersistentVolumePlugin):
        """Names interfaces as bases, so that a type checker compares it with them."""

    contract = check(Plugin())
    assert contract.notes == ()
    assert contract.interfaces == {VolumePlugin}


def test_everything_that_is_wrong_is_told_at_once(refused, base):
    class Plugin(base):
        @hookimpl
        def new_mountr(self):
            """Misspelled."""

        @hookimpl
        def new_mounter(self, spec, pd):
            """A wrong argument."""

        @hookimpl
        def new_attacher(self):
            """Half an interface."""

    reason = refused(Plugin())
    for part in ("'new_mountr'", "'pd'", "AttachableVolumePlugin"):
        assert part in reason


def test_a_plugin_may_not_wrap_hooks_of_others(refused, base):
    class Plugin(base):
        @hookimpl(wrapper=True, specname="new_mounter")
        def spy(self, spec, pod):
            return (yield)

    assert "only the embedding program may wrap" in refused(Plugin())


def test_a_hook_cannot_be_implemented_twice(refused, base):
    class Plugin(base):
        @hookimpl(specname="can_support")
        def also(self, spec):
            return True

    assert "twice" in refused(Plugin())


def test_a_hook_may_have_another_name_in_the_plugin(check):
    class Plugin:
        pass

    for hook in required_hooks(VolumePlugin):
        scope = {}
        exec(f"def my_{hook}(self): return {hook!r}", scope)
        setattr(Plugin, f"my_{hook}", hookimpl(specname=hook)(scope[f"my_{hook}"]))
    contract = check(Plugin())
    assert contract.implementations["can_support"].function() == "can_support"


def test_a_module_is_a_plugin_too(check):
    module = types.ModuleType("acme_module_plugin")
    for hook in required_hooks(VolumePlugin):
        scope = {}
        exec(f"def {hook}(): return {hook!r}", scope)
        setattr(module, hook, hookimpl(scope[hook]))
    contract = check(module)
    assert contract.interfaces == {VolumePlugin}
    assert contract.implementations["can_support"].function() == "can_support"


def test_properties_of_a_plugin_are_not_run_by_the_check(check, base):
    class Plugin(base):
        @property
        def expensive(self):
            raise AssertionError("the check must not run this")

    check(Plugin())


def test_static_and_class_methods_are_hooks_too(check, base):
    class Plugin(base):
        @hookimpl
        @staticmethod
        def can_support(spec):
            return True

        @classmethod
        @hookimpl
        def get_volume_sources(cls):
            return ("nfs",)

    implementations = check(Plugin()).implementations
    assert implementations["can_support"].function("s") is True
    assert implementations["get_volume_sources"].function() == ("nfs",)
