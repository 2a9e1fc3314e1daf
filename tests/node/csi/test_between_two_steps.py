"""What happens to a claim's volume between two steps: its records go, its attachment goes, its host goes."""

import glob
import os
import threading

import pytest

from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from volumehost.errors import VolumesFailedError, WaitTimeoutError
from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table
from volumehost.node.journal.journal import read_journal
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root

NAME = "fake.csi.example.com"
UNMOUNT = ["NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"]


def _claim(node):
    return node.api.get(PersistentVolumeClaim, "claim", "default")


def _ask(node, size):
    claim = _claim(node)
    claim.spec.resources.requests = {"storage": size}
    node.api.replace(claim)


@pytest.fixture
def wanted(pod):
    return {"Filesystem": pod(), "Block": pod(claims=(), devices=("claim",))}


@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_recon12_a_volume_in_use_is_told_by_its_directories_when_the_journal_is_lost(
    manager, driver, claim, wanted, root, node_calls, nothing_left, mode
):
    node = manager()
    claim(node.api, mode=mode)
    node.mount_pod(wanted[mode], timeout=60)
    node.__exit__(None, None, None)
    os.unlink(f"{root}/volumes.journal")
    driver.clear_calls()
    with manager(enter=False) as node:
        node.unmount_pod("web", timeout=60)
        assert node_calls() == UNMOUNT
        assert node.api.list(VolumeAttachment).items == []
        nothing_left()


@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_recon12_and_is_staged_and_published_again_for_the_pod_that_wants_it(
    manager, driver, claim, wanted, root, node_calls, nothing_left, mode
):
    node = manager()
    claim(node.api, mode=mode)
    node.mount_pod(wanted[mode], timeout=60)
    node.__exit__(None, None, None)
    os.unlink(f"{root}/volumes.journal")
    driver.clear_calls()
    with manager(enter=False) as node:
        assert node.mount_pod(wanted[mode], timeout=60).ready
        assert node_calls() == ["NodeStageVolume", "NodePublishVolume"]
        node.unmount_pod("web", timeout=60)
        nothing_left()


@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_br57_what_a_start_without_a_journal_has_recorded_is_no_reason_to_unmount_what_is_in_use(
    manager, driver, claim, wanted, root, mounts, node_calls, nothing_left, until, mode
):
    node = manager()
    claim(node.api, mode=mode)
    node.mount_pod(wanted[mode], timeout=60)
    node.__exit__(None, None, None)
    os.unlink(f"{root}/volumes.journal")
    before = {mount.path: mount.mount_id for mount in read_mount_table() if mount.path in mounts()}
    driver.clear_calls()
    with manager(enter=False):  # nobody wants the pod here: it is only looked at, and recorded
        until(lambda: any(record.get("state") for record in read_journal(f"{root}/volumes.journal").entries.values()))
    with manager(enter=False) as node:
        assert node.mount_pod(wanted[mode], timeout=60).ready
        assert node_calls() == ["NodeStageVolume", "NodePublishVolume"]
        assert {mount.path: mount.mount_id for mount in read_mount_table() if mount.path in mounts()} == before
        node.unmount_pod("web", timeout=60)
        nothing_left()


@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_br58_what_is_gone_is_published_anew_though_the_driver_counts_it_and_no_record_tells_of_it(
    manager, driver, claim, wanted, root, mounts, node_calls, nothing_left, mode
):
    """As after a process that was killed before it could write down that it had mounted it."""
    node = manager()
    claim(node.api, mode=mode)
    node.mount_pod(wanted[mode], timeout=60)
    node.__exit__(None, None, None)
    os.unlink(f"{root}/volumes.journal")
    (published,) = [path for path in mounts() if "/pods/" in path or "/publish/" in path]
    syscalls.umount2(published, 0)
    driver.clear_calls()
    with manager(enter=False) as node:
        assert node.mount_pod(wanted[mode], timeout=60).ready
        assert published in mounts()
        assert node_calls()[-2:] == ["NodeUnpublishVolume", "NodePublishVolume"]
        node.unmount_pod("web", timeout=60)
        nothing_left()


def test_br46_an_attachment_that_is_deleted_while_its_volume_is_staged_is_kept_until_it_is_not(
    manager, driver, claim, pod, until, node_calls, nothing_left
):
    node = manager()
    claim(node.api)
    driver.script(Rule("NodeStageVolume", hang=True))
    mounting = threading.Thread(target=lambda: node.mount_pod(pod(), timeout=60))
    mounting.start()
    try:
        driver.wait_for("NodeStageVolume")
        (attachment,) = node.api.list(VolumeAttachment).items
        name = attachment.metadata.name
        node.api.delete(VolumeAttachment, name)
        until(lambda: node.api.get(VolumeAttachment, name).status.detach_error is not None, 30)
        assert "ControllerUnpublishVolume" not in node_calls()
    finally:
        driver.release()
        mounting.join(60)
    node.unmount_pod("web", timeout=60)
    assert node_calls()[-3:] == UNMOUNT
    nothing_left()


@pytest.mark.parametrize("when", ["before", "after"])
def test_br44_an_expansion_whose_answer_was_lost_goes_on_after_a_restart(
    manager, driver, claim, pod, until, node_calls, when
):
    """Killed before the claim tells of it: the node asks once more, and a driver that has done it says so."""
    node = manager()
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    driver.script(Rule("NodeExpandVolume", times=None, when=when, code="UNAVAILABLE"))
    _ask(node, "32Mi")
    until(lambda: "NodeExpandVolume" in node_calls(), 30)
    node.__exit__(None, None, None)
    driver.clear_script()
    driver.clear_calls()
    with manager(enter=False) as node:
        assert _claim(node).status.allocated_resource_statuses == {"storage": "NodeResizeInProgress"}
        assert node.mount_pod(pod(), timeout=60).ready
        assert node_calls() == ["NodeStageVolume", "NodePublishVolume", "NodeExpandVolume"]
        claim_now = _claim(node)
        assert claim_now.status.capacity == {"storage": "32Mi"}
        assert (claim_now.status.allocated_resource_statuses, claim_now.status.conditions) == ({}, [])
        node.unmount_pod("web", timeout=60)


def test_br31_a_probe_that_fails_after_a_driver_died_in_a_stage_proves_nothing(
    manager, driver, claim, pod, node_calls, nothing_left
):
    """The call was cut off, and then the driver cannot even say what it can: it may have staged the volume."""
    node = manager(attach_required=False)
    claim(node.api)
    driver.script(Rule("NodeStageVolume", when="after", code="UNAVAILABLE"))
    with pytest.raises((VolumesFailedError, WaitTimeoutError)):
        node.mount_pod(pod(), timeout=60, attempts=1)
    driver.script(Rule("NodeGetCapabilities", times=None, code="INTERNAL"))
    node.drivers.unregister(NAME)
    node.drivers.register(NAME, driver.endpoint)
    with pytest.raises((VolumesFailedError, WaitTimeoutError)):
        node.mount_pod(pod(), timeout=60, attempts=3)
    driver.clear_script()
    node.unmount_pod("web", timeout=60)
    assert node_calls()[-1] == "NodeUnstageVolume"
    nothing_left()


@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_a_volume_that_never_came_about_leaves_no_record_that_says_so(manager, driver, claim, wanted, root, mode):
    """A record alone would count as a device in use after a restart, and keep the volume from being deleted (BR-48)."""
    node = manager(attach_required=False)
    claim(node.api, mode=mode)
    node.control.wait_until(lambda: _claim(node).status.phase == "Bound", 60, "the claim")
    node.drivers.unregister(NAME)
    with pytest.raises((VolumesFailedError, WaitTimeoutError), match=NAME):
        node.mount_pod(wanted[mode], timeout=3, attempts=1)
    node.unmount_pod("web", timeout=60)
    assert not glob.glob(f"{root}/plugins/kubernetes.io/csi/**/vol_data.json", recursive=True)
    node.drivers.register(NAME, driver.endpoint)
    node.__exit__(None, None, None)
    with manager(enter=False) as node:
        node.api.delete(PersistentVolumeClaim, "claim", "default")
        node.control.wait_until(lambda: not node.api.list(PersistentVolume).items, 60, "the volume to go")
