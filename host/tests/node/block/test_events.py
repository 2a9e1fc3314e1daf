"""Events of raw block volumes (MAP-01, MAP-10, MAP-12, UNMAP-01)."""

import pytest

from volumehost.api.objects import Event
from volumehost.errors import OperationError, VolumeHostError, VolumesFailedError

pytestmark = pytest.mark.root


def told(node):
    node.host.flush_events(10)
    return sorted(
        (event.type, event.reason, event.message.partition('"')[0])
        for event in node.api.list(Event).items
        if event.reason != "SuccessfulAttachVolume"
    )


def fail():
    raise OperationError("no")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("set_up_device", "MapVolume.SetUpDevice failed for volume "),
        ("map_pod_device", "MapVolume.MapPodDevice failed for volume "),
    ],
)
def test_map12_a_step_fails(manager, block_disk, block_claim, block_pod, step, words):
    plugin = block_disk()
    plugin.trouble[step] = fail
    node = manager(plugin)
    block_claim(node.api)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(block_pod(), timeout=30, attempts=1)
    assert told(node) == [("Warning", "FailedMapVolume", words)]


def test_map10_mapped_and_unmapped(manager, block_disk, block_claim, block_pod):
    plugin = block_disk()
    node = manager(plugin)
    block_claim(node.api)
    node.mount_pod(block_pod(), timeout=30)
    success = ("Normal", "SuccessfulMountVolume", "MapVolume.MapPodDevice succeeded for volume ")
    assert told(node) == [success, success]
    plugin.trouble["unmap_pod_device"] = fail
    with pytest.raises(VolumeHostError):
        node.unmount_pod("web", timeout=0.2)
    assert told(node) == [success, success]
    plugin.trouble.clear()
    node.unmount_pod("web", timeout=30)


def test_map01_another_nodes_volume(manager, block_disk, block_claim, block_pod):
    node = manager(block_disk(), controllers=False)
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}
    terms = [{"matchExpressions": [expression]}]
    block_claim(node.api, volume={"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}})
    with pytest.raises(VolumesFailedError):
        node.mount_pod(block_pod(), timeout=30, attempts=1)
    assert told(node) == [("Warning", "FailedMount", "MapVolume.NodeAffinity check failed for volume ")]
