"""The plugin with the real registry of drivers and a driver that is a process of its own, and that is killed."""

from __future__ import annotations

import os
import tempfile
from types import SimpleNamespace

import grpc
import pytest

from volumehost import DeviceMounterArgs, MounterArgs, VolumeConfig
from volumehost.api.objects import Node, ObjectMeta
from volumehost.errors import (
    StorageDriverUnavailableError,
    StorageDriverUncertainError,
    is_uncertain_progress_error,
)
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.fake import FakeDriverProcess, Rule

pytestmark = pytest.mark.root

NAME = "fake.csi.example.com"
NODE = ["STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "EXPAND_VOLUME"]


@pytest.fixture
def driver():
    with tempfile.TemporaryDirectory(prefix="csi") as short:
        endpoint = f"unix://{short}/csi.sock"
        with FakeDriverProcess(endpoint, f"{short}/files", mounts="bind", node=NODE) as process:
            yield process


@pytest.fixture
def start(directory, api, driver, csi_driver):
    """A plugin on the same root directory, as a host makes one when it starts; all are shut down at the end."""
    csi_driver()
    api.create(Node(metadata=ObjectMeta(name="test-node")))
    running = []

    def make(**attributes) -> CSIPlugin:
        config = VolumeConfig(other_attributes=attributes)
        plugin = CSIPlugin()
        plugin.init(PluginTestHost(directory, api=api, volume_config=config))
        if not running:
            plugin.get_storage_drivers().register(NAME, driver.endpoint)
        running.append(plugin)
        return plugin

    yield make
    for plugin in running:
        plugin.shutdown()


@pytest.fixture
def steps(make_pv, pod):
    """What a host does with one volume."""
    spec = make_pv()

    def stage(plugin):
        device = plugin.new_device_mounter()
        device.mount_device(spec, "", device.get_device_mount_path(spec), DeviceMounterArgs())

    def publish(plugin):
        mounter = plugin.new_mounter(spec, pod)
        mounter.set_up(MounterArgs())
        return mounter.get_path()

    def unstage(plugin):
        plugin.new_device_unmounter().unmount_device(plugin.new_device_mounter().get_device_mount_path(spec))

    return SimpleNamespace(
        stage=stage,
        publish=publish,
        unpublish=lambda plugin: plugin.new_unmounter("pv-1", pod.metadata.uid).tear_down(),
        unstage=unstage,
    )


def left(plugin):
    root = plugin._host.root_dir
    return [
        path for path, _, names in os.walk(root) if path.endswith(("globalmount", "/mount")) or "vol_data.json" in names
    ]


def test_a_cycle_on_one_connection(start, driver, steps):
    plugin = start()
    steps.stage(plugin)
    before = driver.connections()
    path = steps.publish(plugin)
    with open(f"{path}/file", "w") as file:
        file.write("kept")
    steps.unpublish(plugin)
    with open(f"{steps.publish(plugin)}/file") as file:
        assert file.read() == "kept"
    steps.unpublish(plugin)
    steps.unstage(plugin)
    assert driver.connections() == before
    assert left(plugin) == []


def test_mounts_survive_a_driver_that_is_killed_and_started_again(start, driver, steps):
    plugin = start()
    steps.stage(plugin)
    path = steps.publish(plugin)
    with open(f"{path}/file", "w") as file:
        file.write("kept")
    driver.kill()
    with pytest.raises(StorageDriverUncertainError):
        plugin.new_unmounter("pv-1", "11111111-2222-3333-4444-555555555555").tear_down()
    with open(f"{path}/file") as file:
        assert file.read() == "kept"
    driver.start()
    wait_until_connected(plugin)
    steps.unpublish(plugin)
    steps.unstage(plugin)
    assert left(plugin) == []


def wait_until_connected(plugin):
    """The channel reconnects by itself within a second or so; until then calls fail at once."""
    channel = plugin.get_storage_drivers().store.get(NAME).channel()
    grpc.channel_ready_future(channel).result(10)


@pytest.mark.parametrize("call", ["NodeStageVolume", "NodePublishVolume"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_br_31_a_driver_that_dies_in_a_call_leaves_it_uncertain_and_the_next_try_works(
    start, driver, steps, call, when
):
    plugin = start()
    if call == "NodePublishVolume":
        steps.stage(plugin)
    driver.script(Rule(call, die=True, when=when))
    step = steps.stage if call == "NodeStageVolume" else steps.publish
    with pytest.raises(StorageDriverUncertainError) as caught:
        step(plugin)
    assert is_uncertain_progress_error(caught.value)
    assert left(plugin)  # enough is on disk for a teardown
    driver.wait()
    driver.start()
    wait_until_connected(plugin)
    if call == "NodeStageVolume":
        step(plugin)
    steps.publish(plugin)
    steps.unpublish(plugin)
    steps.unstage(plugin)
    assert left(plugin) == []


@pytest.mark.parametrize("call", ["NodeStageVolume", "NodePublishVolume"])
def test_br_31_what_timed_out_is_undone_before_it_is_forgotten(start, driver, steps, call):
    plugin = start(rpc_timeout="0.3")
    if call == "NodePublishVolume":
        steps.stage(plugin)
    driver.script(Rule(call, hang=True))
    with pytest.raises(StorageDriverUncertainError) as caught:
        (steps.stage if call == "NodeStageVolume" else steps.publish)(plugin)
    assert caught.value.code == "DEADLINE_EXCEEDED"
    driver.release()
    driver.wait_for(call, ended=True)  # the driver ends what the host has given up
    patient = start()
    steps.unpublish(patient)
    steps.unstage(patient)
    assert left(patient) == []
    opposite = {"NodeStageVolume": "NodeUnstageVolume", "NodePublishVolume": "NodeUnpublishVolume"}[call]
    assert driver.calls(opposite)
    assert not [each for each in driver.state()["volumes"].values() if each["staged"] or each["published"]]


def test_a_host_that_is_restarted_takes_the_volume_down(start, steps):
    first = start()
    steps.stage(first)
    path = steps.publish(first)
    first.shutdown()
    second = start()
    assert second.get_volume_name(second.construct_volume_spec("pv-1", path).spec) == f"{NAME}^vol-1"
    assert [each.device_mount_path for each in second.find_device_mounts(())]
    steps.unpublish(second)
    steps.unstage(second)
    assert left(second) == []


def test_br_27_a_driver_that_nobody_knows_is_transient_and_said_at_once(start, make_pv, pod):
    plugin = start()
    spec = make_pv(driver="unknown.example.com")
    with pytest.raises(StorageDriverUnavailableError, match=r"unknown\.example\.com") as caught:
        plugin.new_mounter(spec, pod).set_up(MounterArgs())
    assert caught.value.hint
