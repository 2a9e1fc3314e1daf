"""One plugin with all eleven interfaces: each hook, called through the host's typed method, reaches the plugin.

With arguments by position and by name, with and without hook wrappers of the embedding program.
"""

from __future__ import annotations

import pytest

from volumehost import hookimpl, hookspecs
from volumehost.loader.manager import VolumePluginManager

NAME = "example.com/every"


class EveryPlugin:
    """Answers every hook with the hook's name and its arguments, where nothing else is demanded."""

    def __init__(self):
        self.seen = []
        self.wrapper = None

    def _passed_the_wrapper(self, calls):
        """Whether the wrapper, where there is one, saw so many calls."""
        return self.wrapper is None or self.wrapper.calls == calls

    @hookimpl
    def init(self, host):
        self.seen.append(("init", host))

    @hookimpl
    def shutdown(self):
        self.seen.append(("shutdown",))

    @hookimpl
    def get_plugin_name(self):
        return NAME

    @hookimpl
    def get_volume_name(self, spec):
        return ("get_volume_name", spec)

    @hookimpl
    def can_support(self, spec):
        return spec == "mine"

    @hookimpl
    def get_storage_drivers(self):
        return "drivers"

    @hookimpl
    def get_metrics_collectors(self):
        return ("collector",)

    @hookimpl
    def get_volume_sources(self):
        return ("flex_volume",)

    @hookimpl
    def get_spec_translators(self):
        return {"quobyte": lambda spec, namespace: ("translated", spec, namespace)}

    @hookimpl
    def requires_remount(self, spec):
        return spec == "mine"

    @hookimpl
    def supports_mount_option(self):
        return True

    @hookimpl
    def supports_selinux_context_mount(self, spec):
        return spec == "mine"

    @hookimpl
    def new_mounter(self, spec, pod):
        return ("new_mounter", spec, pod)

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        return ("new_unmounter", volume_name, pod_uid)

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        return ("construct_volume_spec", volume_name, mount_path)

    @hookimpl
    def get_access_modes(self):
        return ("ReadWriteOnce",)

    @hookimpl
    def recycle(self, pv_name, spec, event_recorder):
        event_recorder("Normal", f"recycled {pv_name} of {spec}")

    @hookimpl
    def new_deleter(self, spec):
        return ("new_deleter", spec)

    @hookimpl
    def new_provisioner(self, options):
        return ("new_provisioner", options)

    @hookimpl
    def new_device_mounter(self):
        return "device mounter"

    @hookimpl
    def new_device_unmounter(self):
        return "device unmounter"

    @hookimpl
    def get_device_mount_refs(self, device_mount_path):
        return [device_mount_path]

    @hookimpl
    def can_device_mount(self, spec):
        return spec == "mine"

    @hookimpl
    def find_device_mounts(self, known):
        return ("a device", *known)

    @hookimpl
    def new_attacher(self):
        return "attacher"

    @hookimpl
    def new_detacher(self):
        return "detacher"

    @hookimpl
    def can_attach(self, spec):
        return spec == "mine"

    @hookimpl
    def verify_exhausted_resource(self, spec):
        return spec != "mine"

    @hookimpl
    def requires_fs_resize(self):
        return True

    @hookimpl
    def expand_volume_device(self, spec, new_size, old_size):
        return new_size - old_size

    @hookimpl
    def node_expand(self, resize_options):
        return resize_options == "grow"

    @hookimpl
    def resize_ephemeral_volume(self, spec, pod, new_size):
        self.seen.append(("resize", spec, pod, new_size))

    @hookimpl
    def new_block_volume_mapper(self, spec, pod):
        return ("new_block_volume_mapper", spec, pod)

    @hookimpl
    def new_block_volume_unmapper(self, volume_name, pod_uid):
        return ("new_block_volume_unmapper", volume_name, pod_uid)

    @hookimpl
    def construct_block_volume_spec(self, pod_uid, volume_name, map_path):
        return ("construct_block_volume_spec", pod_uid, volume_name, map_path)


class Wrapper:
    """Counts the calls that pass through it, of hooks of three interfaces."""

    def __init__(self):
        self.calls = 0

    @hookimpl(wrapper=True)
    def new_attacher(self):
        self.calls += 1
        return (yield)

    @hookimpl(wrapper=True)
    def node_expand(self, resize_options):
        self.calls += 1
        return (yield)

    @hookimpl(wrapper=True)
    def construct_block_volume_spec(self, pod_uid, volume_name, map_path):
        self.calls += 1
        return (yield)


@pytest.fixture(params=[False, True], ids=["straight", "wrapped"])
def loaded(request):
    """The plugin's own object and what the host made of it."""
    own, wrapper = EveryPlugin(), Wrapper()
    manager = VolumePluginManager()
    assert list(manager.init_plugins([own])) == []
    if request.param:
        own.wrapper = wrapper
        manager.register_hook_wrapper(wrapper)
    yield own, manager.find_plugin_by_name(NAME)
    assert manager.close() == []
    assert own.seen[-1] == ("shutdown",)


def test_the_plugin_is_every_interface(loaded):
    _, plugin = loaded
    assert set(plugin.interfaces) == set(hookspecs.INTERFACES)


def test_the_plugin_of_this_file_has_every_hook():
    hooks = {hook for hook_class in hookspecs.HOOK_CLASSES for hook in hookspecs.own_hooks(hook_class)}
    assert {name for name in vars(EveryPlugin) if not name.startswith("_")} == hooks


def test_hooks_of_every_plugin(loaded):
    own, plugin = loaded
    assert own.seen[0] == ("init", None)
    assert plugin.get_plugin_name() == NAME
    assert plugin.get_volume_name("mine") == plugin.get_volume_name(spec="mine") == ("get_volume_name", "mine")
    assert plugin.can_support("mine")
    assert not plugin.can_support(spec="other")
    assert plugin.get_volume_sources() == ("flex_volume",)
    assert plugin.get_storage_drivers() == "drivers"
    assert plugin.get_metrics_collectors() == ("collector",)
    assert plugin.requires_remount("mine")
    assert plugin.supports_mount_option()
    assert plugin.supports_selinux_context_mount(spec="mine")
    assert plugin.new_mounter("s", pod="p") == ("new_mounter", "s", "p")
    assert plugin.new_unmounter(pod_uid="u", volume_name="v") == ("new_unmounter", "v", "u")
    assert plugin.construct_volume_spec("v", "/path") == ("construct_volume_spec", "v", "/path")


def test_hooks_of_persistent_volumes(loaded):
    _, plugin = loaded
    events = []
    assert plugin.get_access_modes() == ("ReadWriteOnce",)
    plugin.recycle("pv", "spec", event_recorder=lambda event_type, message: events.append((event_type, message)))
    assert events == [("Normal", "recycled pv of spec")]
    assert plugin.new_deleter("s") == ("new_deleter", "s")
    assert plugin.new_provisioner(options="o") == ("new_provisioner", "o")


def test_hooks_of_devices(loaded):
    own, plugin = loaded
    assert plugin.new_device_mounter() == "device mounter"
    assert plugin.new_device_unmounter() == "device unmounter"
    assert plugin.get_device_mount_refs("/dev/x") == ["/dev/x"]
    assert plugin.can_device_mount("mine")
    assert plugin.find_device_mounts(("known",)) == ("a device", "known")
    assert plugin.new_attacher() == "attacher"
    assert own._passed_the_wrapper(1)
    assert plugin.new_detacher() == "detacher"
    assert plugin.can_attach(spec="mine")
    assert plugin.verify_exhausted_resource("other")


def test_hooks_of_volumes_that_grow(loaded):
    own, plugin = loaded
    assert plugin.requires_fs_resize()
    assert plugin.expand_volume_device("s", 30, old_size=10) == 20
    assert plugin.node_expand("grow")
    assert not plugin.node_expand(resize_options="stay")
    assert own._passed_the_wrapper(2)
    plugin.resize_ephemeral_volume("s", "p", new_size=None)
    assert own.seen[-1] == ("resize", "s", "p", None)


def test_hooks_of_block_volumes(loaded):
    _, plugin = loaded
    assert plugin.new_block_volume_mapper("s", "p") == ("new_block_volume_mapper", "s", "p")
    assert plugin.new_block_volume_unmapper("v", "u") == ("new_block_volume_unmapper", "v", "u")
    assert plugin.construct_block_volume_spec("u", "v", map_path="/map") == (
        "construct_block_volume_spec",
        "u",
        "v",
        "/map",
    )


def test_shutdown_reaches_the_plugin(loaded):
    own, plugin = loaded
    plugin.shutdown()
    assert own.seen == [("init", None), ("shutdown",)]
