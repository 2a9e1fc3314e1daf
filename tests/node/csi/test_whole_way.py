"""A claim is provisioned, attached, staged, published and all of it undone, by one manager with a real driver process's
calls (CSI-BLK-04, CSI-EPH-01, BR-34, BR-44, BR-46)."""

import os
import stat

import pytest

from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, VolumeAttachment

pytestmark = pytest.mark.root

MOUNT = ["ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"]
UNMOUNT = ["NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"]


def test_a_pod_with_an_unbound_claim_waits_for_it_and_gets_it(manager, driver, claim, pod, node_calls, nothing_left):
    node = manager()
    claim(node.api)
    status = node.mount_pod(pod(), timeout=60)
    (volume,) = status.volumes
    with open(f"{volume.path}/kept", "w") as file:
        file.write("data")
    assert node_calls() == MOUNT
    assert len(node.api.list(VolumeAttachment).items) == 1
    node.unmount_pod("web", timeout=60)
    assert node_calls() == MOUNT + UNMOUNT
    assert node.api.list(VolumeAttachment).items == []
    nothing_left()
    assert node.api.get(PersistentVolumeClaim, "claim", "default").status.phase == "Bound"
    (volume,) = node.mount_pod(pod("again"), timeout=60).volumes
    with open(f"{volume.path}/kept") as file:
        assert file.read() == "data"
    node.unmount_pod("again", timeout=60)


def test_a_raw_block_claim(manager, driver, claim, pod, node_calls, nothing_left, root):
    node = manager()
    claim(node.api, mode="Block")
    status = node.mount_pod(pod(claims=(), devices=("claim",)), timeout=60)
    ((device,),) = [container.devices for container in node.container_mounts(status)]
    assert stat.S_ISBLK(os.stat(device.host_path).st_mode)
    assert device.container_path == "/dev/claim"
    assert node_calls() == MOUNT
    node.unmount_pod("web", timeout=60)
    assert node_calls() == MOUNT + UNMOUNT
    nothing_left()
    left = f"{root}/plugins/kubernetes.io/csi/volumeDevices"
    assert not os.path.exists(left) or [name for name in os.listdir(left) if name.startswith("pv")] == []


def test_an_inline_volume_has_two_calls_and_needs_no_claim(manager, driver, pod, node_calls, nothing_left):
    node = manager()
    inline = {"name": "scratch", "csi": {"driver": "fake.csi.example.com", "volumeAttributes": {"size": "1Mi"}}}
    assert node.mount_pod(pod(claims=(), volumes=[inline]), timeout=60).ready
    node.unmount_pod("web", timeout=60)
    assert node_calls() == ["NodePublishVolume", "NodeUnpublishVolume"]
    nothing_left()


def test_a_generic_ephemeral_volume_comes_and_goes_with_its_pod(manager, driver, pod, nothing_left, until):
    node = manager()
    template = {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fake",
            "resources": {"requests": {"storage": "16Mi"}},
        }
    }
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    assert node.mount_pod(pod(claims=(), volumes=[scratch]), timeout=60).ready
    assert node.api.get(PersistentVolumeClaim, "web-scratch", "default").status.phase == "Bound"
    node.unmount_pod("web", timeout=60)
    nothing_left()
    assert node.api.list(PersistentVolumeClaim).items == []
    assert node.api.list(PersistentVolume).items == []
    assert [call.name for call in driver.calls("DeleteVolume")] == ["DeleteVolume"]


@pytest.mark.parametrize("attach_required", [True, False])
@pytest.mark.parametrize("stages", [True, False])
def test_br34_calls_follow_the_capabilities(manager, driver, claim, pod, node_calls, stages, attach_required):
    if not stages:
        driver.configure(node=tuple(name for name in driver.config.node if name != "STAGE_UNSTAGE_VOLUME"))
    node = manager(attach_required=attach_required)
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    node.unmount_pod("web", timeout=60)
    left_out = {"NodeStageVolume", "NodeUnstageVolume"} if not stages else set()
    left_out |= set() if attach_required else {"ControllerPublishVolume", "ControllerUnpublishVolume"}
    assert node_calls() == [name for name in MOUNT + UNMOUNT if name not in left_out]


def test_a_mounted_claim_grows_online(manager, driver, claim, pod, until, node_calls):
    node = manager()
    made = claim(node.api)
    node.mount_pod(pod(), timeout=60)
    made = node.api.get(PersistentVolumeClaim, "claim", "default")
    made.spec.resources.requests = {"storage": "32Mi"}
    node.api.replace(made)
    until(lambda: node.api.get(PersistentVolumeClaim, "claim", "default").status.capacity == {"storage": "32Mi"})
    assert node_calls().count("NodeExpandVolume") == 1
    assert len(driver.calls("ControllerExpandVolume")) == 1
    node.unmount_pod("web", timeout=60)


def test_exp05_a_device_grows_where_a_pod_still_has_it(manager, driver, claim, pod, until, nothing_left):
    """Each pod has a path of its own; that of the pod which mapped it last may be gone."""
    node = manager()
    claim(node.api, mode="Block")
    for name in ("one", "two"):
        node.mount_pod(pod(name, claims=(), devices=("claim",)), timeout=60)
    first = driver.calls("NodePublishVolume")[0].request.target_path
    node.unmount_pod("two", timeout=60)
    made = node.api.get(PersistentVolumeClaim, "claim", "default")
    made.spec.resources.requests = {"storage": "32Mi"}
    node.api.replace(made)
    until(lambda: node.api.get(PersistentVolumeClaim, "claim", "default").status.capacity == {"storage": "32Mi"})
    (call,) = driver.calls("NodeExpandVolume")
    assert call.request.volume_path == first
    node.unmount_pod("one", timeout=60)
    nothing_left()


def test_br44_no_node_expansion_when_the_controller_says_that_none_is_needed(
    manager, driver, claim, pod, until, node_calls
):
    driver.configure(node_expansion=False)
    node = manager()
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    made = node.api.get(PersistentVolumeClaim, "claim", "default")
    made.spec.resources.requests = {"storage": "32Mi"}
    node.api.replace(made)
    until(lambda: node.api.get(PersistentVolumeClaim, "claim", "default").status.capacity == {"storage": "32Mi"})
    (volume,) = node._now.parts.services.actual.volumes()
    until(lambda: node._now.parts.services.actual.get_volume(volume).size == 32 << 20)
    assert "NodeExpandVolume" not in node_calls()
    node.unmount_pod("web", timeout=60)


def test_many_pods_with_claims_at_once_leave_nothing(manager, driver, claim, pod, nothing_left):
    node = manager()
    names = [f"claim-{number}" for number in range(8)]
    for name in names:
        claim(node.api, name)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: node.mount_pod(pod(f"pod-{name}", claims=(name,)), timeout=90), names))
        list(pool.map(lambda name: node.unmount_pod(f"pod-{name}", timeout=90), names))
    nothing_left()
    assert node.api.list(VolumeAttachment).items == []
