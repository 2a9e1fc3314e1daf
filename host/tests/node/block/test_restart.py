"""Block volumes over restarts: from the journal, or from the directories (RECON-12 to -23, BR-55)."""

import os

import pytest

from volumehost.errors import OperationError, WaitTimeoutError
from volumehost.node.state.states import DeviceState, MountState
from volumehost.node.status.recorded import read_status

pytestmark = pytest.mark.root


def _volumes(node):
    actual = node._now.parts.services.actual
    return [actual.get_volume(name) for name in actual.volumes()]


@pytest.fixture
def mapped(manager, block_disk, block_claim, block_pod):
    """A pod with a mapped device, left by its manager."""

    def make(**options):
        with manager(block_disk(**options), enter=False) as node:
            block_claim(node.api)
            return node.mount_pod(block_pod(), timeout=30)

    return make


@pytest.mark.parametrize("custom", [True, False])
def test_a_restart_finds_it_mapped_and_unmaps_it(mapped, manager, block_disk, mounts, loops, root, custom):
    mapped(custom=custom)
    (status,) = read_status(root).pods
    assert [volume.state for volume in status.volumes] == ["mounted"]
    node = manager(block_disk(custom=custom))
    (volume,) = _volumes(node)
    assert (volume.mode, volume.device_state) == ("Block", DeviceState.UNCERTAIN)
    assert [mount.is_block for mount in volume.pods.values()] == [True]
    node.unmount_pod("web", timeout=30)
    assert (mounts(), loops(), _volumes(node)) == ([], [], [])


def test_a_restart_maps_it_again_for_the_pod_that_still_wants_it(mapped, manager, block_disk, block_pod, mounts, loops):
    mapped()
    before = mounts(), loops()
    plugin = block_disk()
    node = manager(plugin)
    status = node.mount_pod(block_pod(), timeout=30)
    assert plugin.count("attach") == 0  # it still is
    assert plugin.count("set_up_device") == plugin.count("map_pod_device") == 1
    assert (mounts(), loops()) == before
    assert node.container_mounts(status)[0].devices
    node.unmount_pod("web", timeout=30)


@pytest.mark.parametrize("custom", [True, False])
def test_recon12_without_a_journal_the_directory_tells(mapped, manager, block_disk, mounts, loops, root, custom):
    status = mapped(custom=custom)
    os.unlink(f"{root}/volumes.journal")
    plugin = block_disk(custom=custom)
    node = manager(plugin)
    (volume,) = _volumes(node)
    assert volume.mode == "Block"
    assert volume.device_mount_path.endswith("/volumeDevices/pv-claim/dev")
    assert [mount.state for mount in volume.pods.values()] == [MountState.UNCERTAIN]
    assert plugin.count("new_block_volume_mapper") == 0
    assert [mount.inner_name for mount in volume.pods.values()] == ["pv-claim"]
    node.unmount_pod(status.name, timeout=30)
    assert (mounts(), loops(), _volumes(node)) == ([], [], [])


def test_br55_killed_between_the_pods_unmap_and_the_devices(mapped, manager, block_disk, loops, mounts, until):
    mapped()
    plugin = block_disk()

    def refuse():
        raise OperationError("not now")

    plugin.trouble["tear_down_device"] = refuse
    with manager(plugin, enter=False) as node, pytest.raises(WaitTimeoutError):
        node.unmount_pod("web", timeout=0.3)
    after = block_disk()
    node = manager(after)
    until(lambda: _volumes(node) == [])
    assert [call[0] for call in after.calls] == ["tear_down_device", "detach"]
    assert (mounts(), loops()) == ([], [])
