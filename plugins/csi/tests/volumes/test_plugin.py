"""The plugin object: predicates, interfaces, hosts (CSI-PLUG, CSI-EDGE-03 to -06, CSI-SOLO)."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from volumehost import MounterArgs, Spec, VolumeConfig, hookspecs
from volumehost.api.objects import CSIDriver, CSIDriverSpec, HostPathVolumeSource, ObjectMeta, Volume
from volumehost.errors import (
    ManifestError,
    NotAvailableOnHostError,
    SpecError,
    StoreError,
    TransientOperationError,
    WaitTimeoutError,
)
from volumehost.hosts.config import HostConfig
from volumehost.hosts.controller_host import ControllerHost
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi.settings import Settings

NAME = "fake.csi.example.com"


def test_its_interfaces_are_those_of_the_go_plugin(host):
    from volumehost.loader.manager import VolumePluginManager

    manager = VolumePluginManager()
    manager.init_plugins([CSIPlugin()], host=host)
    loaded = manager.find_plugin_by_name("kubernetes.io/csi")
    assert {each for each in hookspecs.INTERFACES if loaded.supports(each)} == {
        hookspecs.VolumePlugin,
        hookspecs.DeviceMountableVolumePlugin,
        hookspecs.AttachableVolumePlugin,
        hookspecs.NodeExpandableVolumePlugin,
        hookspecs.BlockVolumePlugin,
    }
    manager.close()


def test_loading_and_initialising_imports_neither_grpc_nor_the_bindings():
    code = """
import sys
from volumehost_csi.plugin import CSIPlugin
from volumehost import Spec
plugin = CSIPlugin()
plugin.init(object())
assert not plugin.can_support(Spec())
plugin.shutdown()
heavy = {"grpc", "google", "volumehost_csi_kit", "prometheus_client", "volumehost_csi.services"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_csi_plug_06_edge_04_can_support(plugin, make_pv, make_inline):
    assert plugin.can_support(make_pv())
    assert plugin.can_support(make_inline())
    assert not plugin.can_support(Spec())
    assert not plugin.can_support(Spec.from_volume(Volume(name="x", host_path=HostPathVolumeSource(path="/"))))
    assert plugin.get_volume_sources() == ("csi",)


def test_csi_name_03_edge_03_get_volume_name(plugin, make_pv, make_inline):
    assert plugin.get_volume_name(make_pv(handle="a.b-c")) == f"{NAME}^a.b-c"
    assert plugin.get_volume_name(make_pv("other")) == plugin.get_volume_name(make_pv())
    for spec in (make_inline(), Spec()):
        with pytest.raises(SpecError):
            plugin.get_volume_name(spec)


def test_csi_plug_05_edge_05_both_sources_are_an_error(plugin, make_pv, make_inline, pod):
    both = Spec(volume=make_inline().volume, persistent_volume=make_pv().persistent_volume)
    for step in (
        lambda: plugin.new_mounter(both, pod),
        lambda: plugin.can_attach(both),
        lambda: plugin.can_device_mount(both),
        lambda: plugin.new_mounter(Spec(), pod),
        lambda: plugin.can_attach(Spec()),
        lambda: plugin.can_device_mount(Spec()),
    ):
        with pytest.raises(SpecError):
            step()


def test_csi_plug_13_15_attach_and_device_mount(plugin, csi_driver, make_pv, make_inline):
    csi_driver(attach_required=False)
    assert plugin.can_attach(make_pv()) is False
    assert plugin.can_attach(make_pv(driver="other.example.com")) is True  # no CSIDriver object (CSI-PLUG-14)
    assert plugin.can_attach(make_inline()) is False
    assert plugin.can_device_mount(make_pv()) is True
    assert plugin.can_device_mount(make_inline()) is False


@pytest.mark.parametrize(("value", "answer"), [(True, True), (False, False), (None, False)])
def test_csi_plug_07_11_what_the_csi_driver_object_says(plugin, csi_driver, make_pv, value, answer):
    assert plugin.requires_remount(make_pv()) is False
    assert plugin.supports_selinux_context_mount(make_pv()) is False
    csi_driver(requires_republish=value, se_linux_mount=value)
    assert plugin.requires_remount(make_pv()) is answer
    assert plugin.supports_selinux_context_mount(make_pv()) is answer


def test_csi_drv_06_each_look_sees_what_has_changed_since(plugin, api, csi_driver, make_pv):
    made = csi_driver(requires_republish=False)
    assert [plugin.requires_remount(make_pv()) for _ in range(2)] == [False, False]
    made.spec.requires_republish = True
    api.replace(made)
    assert [plugin.requires_remount(make_pv()) for _ in range(2)] == [True, True]
    api.delete(CSIDriver, NAME)
    assert plugin.requires_remount(make_pv()) is False
    csi_driver(requires_republish=True)  # another object of that name
    assert plugin.requires_remount(make_pv()) is True


def test_csi_plug_07_11_14_an_api_that_does_not_answer(plugin, api, make_pv, monkeypatch):
    def fail(*arguments):
        raise StoreError("the disk is gone")

    plugin.can_attach(make_pv())  # the cache is synced
    monkeypatch.setattr(api, "get", fail)
    assert plugin.requires_remount(make_pv()) is False
    for hook in (plugin.can_attach, plugin.supports_selinux_context_mount):
        with pytest.raises(TransientOperationError, match="the disk is gone"):
            hook(make_pv())


def test_br_49_the_cache_is_waited_for_before_an_object_is_missing(host, make_plugin, make_pv, monkeypatch):
    waited = []
    monkeypatch.setattr(host, "wait_for_cache_sync", lambda: waited.append(True))
    plugin = make_plugin(host)
    plugin.can_attach(make_pv())
    plugin.can_attach(make_pv())
    assert waited == [True]


def test_csi_plug_16_improved_a_cache_that_does_not_fill_is_no_missing_object(host, make_plugin, make_pv, monkeypatch):
    def never():
        raise WaitTimeoutError("the caches have not seen their first lists")

    monkeypatch.setattr(host, "wait_for_cache_sync", never)
    with pytest.raises(TransientOperationError, match="first lists"):
        make_plugin(host).can_attach(make_pv())


def test_csi_plug_09_10(plugin):
    assert plugin.supports_mount_option() is True
    assert plugin.requires_fs_resize() is True
    assert plugin.get_plugin_name() == "kubernetes.io/csi"


def test_the_same_services_for_all_threads(host):
    plugin = CSIPlugin()
    plugin.init(host)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: plugin._services, range(64)))
    assert len(set(map(id, found))) == 1


def test_storage_drivers_are_made_once_and_closed(host):
    plugin = CSIPlugin()
    plugin.init(host)
    assert plugin.get_storage_drivers() is plugin.get_storage_drivers()
    plugin.shutdown()


def test_shutdown_closes_what_was_used(plugin, drivers):
    plugin.shutdown()
    assert drivers.closed


def test_a_controller_does_not_mount(directory, api, make_plugin, make_pv, pod):
    host = ControllerHost(api, config=HostConfig.for_root_dir(f"{directory}/root"))
    plugin = make_plugin(host)
    for step in (lambda: plugin.new_mounter(make_pv(), pod), lambda: plugin.new_unmounter("pv-1", "uid")):
        with pytest.raises(NotAvailableOnHostError, match="controller"):
            step()
    assert plugin.can_attach(make_pv()) is True


def test_a_plugin_without_a_host_says_so(make_pv):
    with pytest.raises(NotAvailableOnHostError, match="not initialised"):
        CSIPlugin().can_attach(make_pv())


# --- settings -------------------------------------------------------------------------------------------------


def settings(directory, **attributes):
    return Settings.of(PluginTestHost(directory, volume_config=VolumeConfig(other_attributes=attributes)))


def test_settings(directory):
    assert settings(directory) == Settings(rpc_timeout=120, create_timeout=300, attach_timeout=120, start_timeout=60)
    assert settings(directory, rpc_timeout="1.5", attach_timeout="2").rpc_timeout == 1.5
    assert settings(directory, create_timeout="7").create_timeout == 7


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "nan", "inf"])
def test_settings_that_are_no_seconds(directory, text):
    with pytest.raises(ManifestError, match=r"attributes\.rpc_timeout"):
        settings(directory, rpc_timeout=text)


def test_an_unknown_setting_names_those_that_are_known(directory):
    with pytest.raises(ManifestError, match="attach_timeout, create_timeout, rpc_timeout, start_timeout"):
        settings(directory, timeout="1")


# --- without an API -------------------------------------------------------------------------------------------


@pytest.fixture
def alone(directory):
    return PluginTestHost(directory)


@pytest.mark.root
def test_csi_solo_05_volumes_without_an_api(make_plugin, alone, make_pv, make_inline, pod, node):
    plugin = make_plugin(alone)
    spec = make_pv()
    assert plugin.can_attach(spec) is False
    assert plugin.requires_remount(spec) is False
    device = plugin.new_device_mounter()
    path = device.get_device_mount_path(spec)
    device.mount_device(spec, "", path, MounterArgs())
    plugin.new_mounter(spec, pod).set_up(MounterArgs())
    assert dict(node.last("NodePublishVolume").publish_context) == {}
    plugin.new_unmounter("pv-1", pod.metadata.uid).tear_down()
    plugin.new_device_unmounter().unmount_device(path)
    with pytest.raises(TransientOperationError, match="volumeLifecycleModes"):
        plugin.new_mounter(make_inline(), pod).set_up(MounterArgs())


@pytest.mark.root
def test_csi_solo_05_a_fixed_table_of_csi_driver_objects(make_plugin, alone, make_inline, pod, node):
    modes = CSIDriverSpec(volume_lifecycle_modes=["Ephemeral"], pod_info_on_mount=True)
    plugin = make_plugin(alone, csi_drivers=[CSIDriver(metadata=ObjectMeta(name=NAME), spec=modes)])
    plugin.new_mounter(make_inline(), pod).set_up(MounterArgs())
    assert node.last("NodePublishVolume").volume_context["csi.storage.k8s.io/pod.name"] == "web"
    plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()


def test_csi_solo_05_secrets_fail_in_words_without_an_api(make_plugin, alone, make_inline, pod):
    from volumehost.api.objects import LocalObjectReference

    modes = CSIDriverSpec(volume_lifecycle_modes=["Ephemeral"])
    plugin = make_plugin(alone, csi_drivers=[CSIDriver(metadata=ObjectMeta(name=NAME), spec=modes)])
    mounter = plugin.new_mounter(make_inline(node_publish_secret_ref=LocalObjectReference(name="s")), pod)
    with pytest.raises(TransientOperationError, match="secret default/s"):
        mounter.set_up(MounterArgs())


def test_attaching_without_an_api_is_refused(make_plugin, alone, make_pv):
    plugin = make_plugin(alone)
    with pytest.raises(NotAvailableOnHostError):
        plugin.new_attacher().volumes_are_attached([make_pv()], "node")
