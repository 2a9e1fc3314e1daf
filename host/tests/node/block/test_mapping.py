"""Raw block volumes on real devices: MAP, UNMAP, UNMAPDEV, CSI-BLK-04, -05, -09, -10, -21, -22, SCEN-05, -14."""

import os
import stat
import threading

import pytest

from volumehost.api.objects import Event
from volumehost.errors import (
    FailedPreconditionError,
    MountError,
    OperationError,
    UncertainProgressError,
    VolumesFailedError,
    WaitTimeoutError,
)
from volumehost.mount import loop, syscalls
from volumehost.node.state.states import DeviceState, MountState

pytestmark = pytest.mark.root

MAP = ["attach", "wait_for_attach", "set_up_device", "map_pod_device"]
UNMAP = ["unmap_pod_device", "tear_down_device", "detach"]


def _steps(plugin):
    return [call[0] for call in plugin.calls if call[0] in (*MAP, *UNMAP)]


def _raise(error):
    def action():
        raise error

    return action


def _volumes(node):
    actual = node._now.parts.services.actual
    return [actual.get_volume(name) for name in actual.volumes()]


@pytest.mark.parametrize("custom", [True, False])
def test_scen05_the_whole_way_there_and_back(manager, block_disk, block_claim, block_pod, mounts, loops, root, custom):
    plugin = block_disk(custom=custom)
    node = manager(plugin)
    block_claim(node.api)
    status = node.mount_pod(block_pod(), timeout=30)
    ((device,),) = [container.devices for container in node.container_mounts(status)]
    assert (device.volume, device.container_path, device.read_only) == ("v", "/dev/xvda", False)
    assert stat.S_ISBLK(os.stat(device.host_path).st_mode)
    assert not os.path.islink(device.host_path)
    with open(device.host_path, "rb") as file:
        assert file.read(11) == b"on the disk"
    (volume,) = status.volumes
    assert (volume.state, volume.mounted) == ("mounted", True)
    assert os.path.realpath(volume.path) == device.host_path
    bind = f"{root}/plugins/example.com/block/volumeDevices/pv-claim/dev/{status.uid}"
    assert bind in mounts()
    assert bind in loops()  # locked by a loop device, so that the disk cannot vanish silently
    node.unmount_pod("web", timeout=30)
    assert (mounts(), loops(), _volumes(node)) == ([], [], [])
    assert os.listdir(f"{root}/pods") == []
    assert not os.path.exists(os.path.dirname(bind))
    custom_steps = ["set_up_device", "map_pod_device", "unmap_pod_device", "tear_down_device"]
    assert _steps(plugin) == [step for step in (*MAP, *UNMAP) if custom or step not in custom_steps]


def test_map08_a_device_that_is_told_by_a_link_is_mapped_and_recorded_as_itself(
    manager, block_disk, block_claim, block_pod, tmp_path, loops
):
    """Links such as those below /dev/disk/by-id change their targets, and go."""
    link = tmp_path / "by-id"

    def by_link(device_path):
        link.unlink(missing_ok=True)
        link.symlink_to(device_path)
        return str(link)

    plugin = block_disk(custom=False)
    plugin.found_at = by_link
    node = manager(plugin)
    block_claim(node.api)
    status = node.mount_pod(block_pod(), timeout=30)
    device = os.readlink(link)
    assert _volumes(node)[0].device_path == device
    link.unlink()
    assert node.container_mounts(status)[0].devices[0].host_path == device
    node.unmount_pod("web", timeout=30)
    assert loops() == []


def test_map10_two_events_tell_where_it_is(manager, block_disk, block_claim, block_pod):
    node = manager(block_disk())
    block_claim(node.api)
    node.mount_pod(block_pod(), timeout=30)
    node.host.flush_events(10)
    told = [event.message for event in node.api.list(Event).items if event.reason == "SuccessfulMountVolume"]
    assert len(told) == 2
    assert any("globalMapPath" in text for text in told)
    assert any("volumeMapPath" in text for text in told)


def test_scen07_two_pods_share_the_device_and_the_last_one_takes_it_down(
    manager, block_disk, block_claim, block_pod, loops
):
    plugin = block_disk()
    node = manager(plugin)
    block_claim(node.api, modes=["ReadWriteMany"])
    node.mount_pod(block_pod("one"), timeout=30)
    node.mount_pod(block_pod("two", readOnly=True), timeout=30)
    assert (plugin.count("set_up_device"), plugin.count("map_pod_device")) == (1, 2)
    (pod,) = [status for status in node.status() if status.name == "two"]
    assert node.container_mounts(pod)[0].devices[0].read_only
    node.unmount_pod("one", timeout=30)
    assert plugin.count("tear_down_device") == 0
    assert len(loops()) == 2
    node.unmount_pod("two", timeout=30)
    assert plugin.count("tear_down_device") == 1
    assert loops() == []


def test_map02_read_write_once_pod_keeps_another_pod_out_until_the_first_has_gone(
    manager, block_disk, block_claim, block_pod, until
):
    node = manager(block_disk())
    block_claim(node.api, modes=["ReadWriteOncePod"])
    node.mount_pod(block_pod("one"), timeout=30)
    with pytest.raises(VolumesFailedError, match=r"MapVolume.SetUpDevice failed.*ReadWriteOncePod"):
        node.mount_pod(block_pod("two"), timeout=30, attempts=1)
    node._now.parts.pending.find(_key(node, "two")).backoff.delay = 1e9  # not by chance, but because it is told
    node.unmount_pod("one", timeout=30)
    until(lambda: next(status for status in node.status() if status.name == "two").ready)


def _key(node, name):
    from volumehost.node.execution.pending import OperationKey

    uid = next(status.uid for status in node.status() if status.name == name)
    (volume,) = node._now.parts.services.desired.volumes_of_pod(uid)
    return OperationKey(volume, uid)


def test_a_plugin_without_block_volumes_is_told(manager, bind, claimed, block_pod):
    node = manager(bind())
    claimed(node.api, claim={"volumeMode": "Block"}, volume={"volumeMode": "Block"})
    with pytest.raises(VolumesFailedError, match=r"example\.com/bind has no raw block volumes"):
        node.mount_pod(block_pod(), timeout=30, attempts=1)
    node.host.flush_events(10)
    assert [event.reason for event in node.api.list(Event).items] == ["FailedMapVolume"]
    node.unmount_pod("web", timeout=30)


# --- failures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "error", "device", "mapped"),
    [
        ("set_up_device", OperationError("no"), DeviceState.NOT_MOUNTED, False),
        ("set_up_device", UncertainProgressError("late"), DeviceState.UNCERTAIN, False),
        ("map_pod_device", OperationError("no"), DeviceState.MOUNTED, False),
        ("map_pod_device", UncertainProgressError("late"), DeviceState.MOUNTED, True),
    ],
)
def test_operr06_what_a_failure_leaves_is_undone_when_the_pod_goes(
    manager, block_disk, block_claim, block_pod, mounts, loops, step, error, device, mapped
):
    plugin = block_disk()
    node = manager(plugin)
    block_claim(node.api)
    plugin.trouble[step] = _raise(error)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(block_pod(), timeout=30, attempts=1)
    (volume,) = _volumes(node)
    assert volume.device_state is device
    assert [mount.state for mount in volume.pods.values()] == ([MountState.UNCERTAIN] if mapped else [])
    node.unmount_pod("web", timeout=30)
    assert (mounts(), loops(), _volumes(node)) == ([], [], [])
    assert plugin.count("unmap_pod_device") == mapped
    assert plugin.count("tear_down_device") == (device is not DeviceState.NOT_MOUNTED)


def test_blk22_what_fails_after_the_plugin_mapped_it_is_unmapped(
    manager, block_disk, block_claim, block_pod, mounts, loops, root
):
    """The pod's link cannot be made: something else is there."""
    plugin = block_disk()
    node = manager(plugin)
    block_claim(node.api)

    def block_the_link():
        directory = next(os.scandir(f"{root}/pods"), None)
        assert directory is None
        uid = node.status()[0].uid
        os.makedirs(f"{root}/pods/{uid}/volumeDevices/example.com~block/pv-claim/taken")

    plugin.trouble["map_pod_device"] = block_the_link
    with pytest.raises(VolumesFailedError, match=r"MapVolume\.MapBlockVolume failed"):
        node.mount_pod(block_pod(), timeout=30, attempts=1)
    (volume,) = _volumes(node)
    assert [mount.state for mount in volume.pods.values()] == [MountState.UNCERTAIN]
    del plugin.trouble["map_pod_device"]
    uid = node.status()[0].uid
    os.rmdir(f"{root}/pods/{uid}/volumeDevices/example.com~block/pv-claim/taken")
    os.rmdir(f"{root}/pods/{uid}/volumeDevices/example.com~block/pv-claim")
    node.unmount_pod("web", timeout=30)
    assert plugin.count("unmap_pod_device") == 1
    assert (mounts(), loops()) == ([], [])


def test_blk21_an_empty_device_path_is_an_error(manager, block_disk, block_claim, block_pod, monkeypatch):
    plugin = block_disk(custom=False, attaches=False)
    node = manager(plugin)
    block_claim(node.api)
    with pytest.raises(VolumesFailedError, match="device path of the volume is empty"):
        node.mount_pod(block_pod(), timeout=30, attempts=1)
    node.unmount_pod("web", timeout=30)


def test_unmapdev02_a_device_that_is_held_open_is_not_forgotten(
    manager, block_disk, block_claim, block_pod, until, disk_file, kept
):
    plugin = block_disk(custom=False)
    node = manager(plugin)
    block_claim(node.api)
    status = node.mount_pod(block_pod(), timeout=30)
    device = node.container_mounts(status)[0].devices[0].host_path
    held = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        kept(node, "web", "in use when it was no longer expected to be in use")
        assert plugin.count("detach") == 0
    finally:
        os.close(held)
    node.unmount_pod("web", timeout=30)
    assert plugin.count("detach") == 1


def test_unmapdev01_a_device_that_another_pod_still_has_bound_stays(
    manager, block_disk, block_claim, block_pod, root, troubled_mounter, kept
):
    plugin = block_disk()
    node = manager(plugin, mounter=troubled_mounter)
    block_claim(node.api)
    status = node.mount_pod(block_pod(), timeout=30)
    bind = f"{root}/plugins/example.com/block/volumeDevices/pv-claim/dev/{status.uid}"
    other = f"{os.path.dirname(bind)}/of-somebody-else"
    os.close(os.open(other, os.O_CREAT | os.O_RDWR))
    troubled_mounter.mount(bind, other, options=["bind"])
    kept(node, "web", "still referenced from other Pods")
    assert plugin.count("tear_down_device") == 0
    troubled_mounter.unmount(other)
    node.unmount_pod("web", timeout=30)
    assert plugin.count("tear_down_device") == 1


def test_an_unmap_that_fails_is_tried_again_from_its_first_step(
    manager, block_disk, block_claim, block_pod, mounts, troubled_mounter
):
    plugin = block_disk()
    node = manager(plugin, mounter=troubled_mounter)
    block_claim(node.api)
    node.mount_pod(block_pod(), timeout=30)
    left = [2]

    def refuse(target):
        if "/volumeDevices/" in target and left[0]:
            left[0] -= 1
            raise MountError("busy", subject=target)

    troubled_mounter.before_unmount = refuse
    node.unmount_pod("web", timeout=30)
    assert left == [0]
    assert mounts() == []


def test_br58_a_device_bind_that_vanished_is_mapped_again(manager, block_disk, block_claim, block_pod, root, mounts):
    """And the loop device that pinned the one that is gone is let go of: it would keep the device busy for ever."""
    plugin = block_disk()
    node = manager(plugin)
    block_claim(node.api)
    status = node.mount_pod(block_pod(), timeout=30)
    bind = f"{root}/plugins/example.com/block/volumeDevices/pv-claim/dev/{status.uid}"
    labels = [each.label for each in loop.list_attached() if each.backing_file == bind]
    assert len(labels) == 1
    syscalls.umount2(bind, syscalls.MNT_DETACH)
    with pytest.raises(FailedPreconditionError, match='cannot find volume "v" to map into container "c"'):
        node.container_mounts(status)
    assert node.mount_pod(block_pod(), timeout=30).ready
    assert bind in mounts()
    node.unmount_pod("web", timeout=30)
    assert [each for each in loop.list_attached() if each.label in labels] == []


def test_br52_a_device_that_hangs_when_it_is_set_up_can_be_waited_out(
    manager, block_disk, block_claim, block_pod, until, unready
):
    gate, plugin = threading.Event(), block_disk()
    plugin.trouble["set_up_device"] = lambda: gate.wait(60)
    node = manager(plugin)
    block_claim(node.api)
    try:
        unready(node, block_pod(), "operation map_volume at step set-up-device")
        with pytest.raises(WaitTimeoutError):
            node.unmount_pod("web", timeout=0.2)
    finally:
        gate.set()
    until(lambda: node.status() == [], 30)
    assert plugin.count("tear_down_device") == 1
