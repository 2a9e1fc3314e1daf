"""A block volume grows on the node too: its device is what is given to the plugin (EXPN-02, CSI-EXP-05)."""

import pytest

from volumehost.api.objects import Event, PersistentVolume, PersistentVolumeClaim
from volumehost.errors import FailedPreconditionError, OperationError

pytestmark = pytest.mark.root


def _grown(api):
    volume = api.get(PersistentVolume, "pv-claim")
    volume.spec.capacity = {"storage": "2Gi"}
    api.replace(volume)
    claim = api.get(PersistentVolumeClaim, "claim", "default")
    claim.status.capacity = {"storage": "1Gi"}
    claim.status.allocated_resources = {"storage": "2Gi"}
    claim.status.allocated_resource_statuses = {"storage": "NodeResizePending"}
    api.replace_status(claim)


@pytest.mark.parametrize("custom", [True, False])
@pytest.mark.parametrize("online", [True, False])
def test_expn02_the_device_and_where_it_is_staged(manager, block_disk, block_claim, block_pod, until, custom, online):
    plugin = block_disk(custom=custom)
    node = manager(plugin, controllers=False)
    block_claim(node.api)
    if online:
        claim = node.api.get(PersistentVolumeClaim, "claim", "default")
        claim.status.capacity = {"storage": "1Gi"}
        node.api.replace_status(claim)
        node.mount_pod(block_pod(), timeout=30)
    _grown(node.api)
    if online:
        (record,) = node._now.parts.populator.records()
        node._now.mounting.resolve(record)
    else:
        node.mount_pod(block_pod(), timeout=30)
    until(lambda: node.api.get(PersistentVolumeClaim, "claim", "default").status.capacity == {"storage": "2Gi"})
    (options,) = plugin.expansions
    (pod,) = node.status()
    device = node.container_mounts(pod)[0].devices[0].host_path
    assert (options.device_path, options.device_mount_path) == (device, "")
    staging = f"{node.root_dir}/plugins/example.com/block/staging/pv-claim"
    assert options.device_stage_path == (staging if custom else "")
    node.unmount_pod("web", timeout=30)


def test_br38_a_refresh_neither_asks_again_what_is_refused_nor_tells_of_a_mapping(
    manager, block_disk, block_claim, block_pod, until
):
    plugin = block_disk()
    plugin.remount = True
    node = manager(plugin, controllers=False)
    block_claim(node.api)
    claim = node.api.get(PersistentVolumeClaim, "claim", "default")
    claim.status.capacity = {"storage": "1Gi"}
    node.api.replace_status(claim)
    node.mount_pod(block_pod(), timeout=30)

    def fail(error):
        def action():
            raise error

        plugin.trouble["node_expand"] = action

    fail(FailedPreconditionError("in use"))
    _grown(node.api)
    (record,) = node._now.parts.populator.records()
    node._now.mounting.resolve(record)
    actual = node._now.parts.services.actual
    (name,) = actual.volumes()
    until(lambda: actual.get_volume(name).resize_hold.value == "in-use")
    fail(OperationError("INTERNAL"))
    node.mount_pod(block_pod(), timeout=30)
    assert (plugin.count("map_pod_device"), plugin.count("node_expand")) == (2, 1)
    assert [mount.state.value for mount in actual.get_volume(name).pods.values()] == ["mounted"]
    node.host.flush_events(10)
    told = [event for event in node.api.list(Event).items if event.reason == "SuccessfulMountVolume"]
    assert [event.count for event in told] == [1, 1]
    node.unmount_pod("web", timeout=30)
