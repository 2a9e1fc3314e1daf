"""What drivers do wrong, and what the host makes of it (BR-27, -31, -32, -38, -39, -42, -47 to -49, -55, -58)."""

import itertools
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from volumehost.api.objects import CSIDriver, PersistentVolumeClaim, VolumeAttachment
from volumehost.errors import VolumesFailedError, WaitTimeoutError
from volumehost.mount import syscalls
from volumehost.node.journal.journal import Journal
from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit.endpoints import dial
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root

NAME = "fake.csi.example.com"


def _volumes(node):
    return node._now.parts.services.actual.volumes()


def test_br27_a_driver_that_registers_late_is_waited_for_and_then_at_once_used(
    manager, driver, claim, pod, until, nothing_left, unready
):
    node = manager(register=False, attach_required=False)
    inline = {"name": "scratch", "csi": {"driver": NAME}}
    unready(node, pod(claims=(), volumes=[inline]), rf"(?s)waiting, operation volume_mount.*{NAME}")
    node.drivers.register(NAME, driver.endpoint)
    until(lambda: node.status()[0].ready, 20)
    node.unmount_pod("web", timeout=60)
    nothing_left()


def test_br27_after_a_restart_nothing_is_declared_clean_before_the_driver_is_there(
    manager, driver, claim, pod, root, until, nothing_left, kept
):
    node = manager(attach_required=False)
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    node.__exit__(None, None, None)
    shutil.rmtree(f"{root}/drivers")  # the driver registers by itself, later
    node = manager(enter=False)
    with node:
        kept(node, "web", NAME)
        assert [status.name for status in node.status()] == ["web"]
        node.drivers.register(NAME, driver.endpoint)
        until(lambda: node.status() == [], 20)
        until(lambda: _volumes(node) == [], 20)
        nothing_left()


@pytest.mark.parametrize(
    ("call", "undone"), [("NodeStageVolume", "NodeUnstageVolume"), ("NodePublishVolume", "NodeUnpublishVolume")]
)
@pytest.mark.parametrize("restart", [False, True])
def test_br31_what_may_have_been_done_is_undone(
    manager, driver, claim, pod, node_calls, nothing_left, call, undone, restart
):
    """The driver does the work, and says that it took too long."""
    node = manager(attach_required=False)
    claim(node.api)
    driver.script(Rule(call, times=None, when="after", code="DEADLINE_EXCEEDED"))
    with pytest.raises(VolumesFailedError, match="DEADLINE_EXCEEDED"):
        node.mount_pod(pod(), timeout=60, attempts=1)
    if restart:
        node.__exit__(None, None, None)
        node = manager(enter=False)
        node.__enter__()
    try:
        node.unmount_pod("web", timeout=60)
    finally:
        if restart:
            node.__exit__(None, None, None)
    assert undone in node_calls()
    nothing_left()


def test_err10_a_final_failure_leaves_nothing_to_undo(manager, driver, claim, pod, node_calls, nothing_left):
    node = manager(attach_required=False)
    claim(node.api)
    driver.script(Rule("NodeStageVolume", times=None, code="INTERNAL"))
    with pytest.raises(VolumesFailedError, match="INTERNAL"):
        node.mount_pod(pod(), timeout=60, attempts=1)
    node.unmount_pod("web", timeout=60)
    assert set(node_calls()) == {"NodeStageVolume"}
    nothing_left()


def test_br32_a_pod_that_comes_while_the_unstage_fails_gets_a_stage_of_its_own(
    manager, driver, claim, pod, node_calls, nothing_left, kept
):
    node = manager(attach_required=False)
    claim(node.api)
    node.mount_pod(pod("one"), timeout=60)
    driver.script(Rule("NodeUnstageVolume", times=2, when="after", code="INTERNAL"))
    kept(node, "one", "still mounted on the node")
    node.mount_pod(pod("two"), timeout=60)
    calls = node_calls()
    last = len(calls) - 1 - calls[::-1].index("NodeUnstageVolume")
    assert calls[last + 1 :] == ["NodeStageVolume", "NodePublishVolume"]
    node.unmount_pod("two", timeout=60)
    nothing_left()


def test_br38_a_refresh_that_fails_leaves_the_mount_and_the_next_one_refreshes_it(manager, driver, claim, pod, until):
    node = manager(attach_required=False, republish=True)
    claim(node.api)
    (volume,) = node.mount_pod(pod(), timeout=60).volumes
    with open(f"{volume.path}/kept", "w") as file:
        file.write("content")
    driver.script(Rule("NodePublishVolume", code="INTERNAL"))
    with open(f"{volume.path}/kept") as held:
        node._now.mounting.sync()
        until(lambda: [call.code for call in driver.calls("NodePublishVolume")][1:2] == ["INTERNAL"])
        assert node.status()[0].ready
        assert held.read() == "content"
        until(lambda: [call.code for call in driver.calls("NodePublishVolume")][2:3] == ["OK"], 20)
    assert os.path.exists(f"{volume.path}/kept")
    node.unmount_pod("web", timeout=60)


def test_br39_calls_for_one_volume_never_overlap_and_busy_is_no_failure(
    manager, driver, claim, pod, node_calls, nothing_left
):
    node = manager(attach_required=False)
    claim(node.api, access="ReadWriteMany")
    names = [f"pod-{number}" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: node.mount_pod(pod(name), timeout=60), names))
        driver.script(Rule("NodeUnpublishVolume", times=3, code="ABORTED", message="an operation is pending"))
        list(pool.map(lambda name: node.unmount_pod(name, timeout=60), names))
    of_volume = [call for call in driver.calls() if getattr(call.request, "volume_id", "") and "Node" in call.name]
    spans = sorted((call.started, call.ended) for call in of_volume)
    assert len(spans) > 12
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert node_calls(codes=True).count(("NodeUnpublishVolume", "ABORTED")) == 3
    nothing_left()


def test_br42_a_second_pod_on_a_volume_for_one_pod_is_refused_by_the_host(manager, driver, claim, pod, until):
    node = manager(attach_required=False)
    claim(node.api, access="ReadWriteOncePod")
    node.mount_pod(pod("one"), timeout=60)
    with pytest.raises(VolumesFailedError, match="ReadWriteOncePod access mode and is already in use by another pod"):
        node.mount_pod(pod("two"), timeout=60, attempts=1)
    assert len(driver.calls("NodePublishVolume")) == 1
    node.unmount_pod("one", timeout=60)
    until(lambda: next(status for status in node.status() if status.name == "two").ready, 20)
    node.unmount_pod("two", timeout=60)


# --- attaching --------------------------------------------------------------------------------------------------


def test_br47_an_attach_that_may_have_worked_is_detached_after_a_restart(
    manager, driver, claim, pod, node_calls, until, nothing_left
):
    node = manager()
    claim(node.api)
    driver.script(Rule("ControllerPublishVolume", times=None, when="after", code="DEADLINE_EXCEEDED"))
    with pytest.raises((WaitTimeoutError, VolumesFailedError)):
        node.mount_pod(pod(), timeout=5, attempts=1)
    assert "ControllerPublishVolume" in node_calls()
    node.__exit__(None, None, None)
    node = manager(enter=False)
    with node:
        node.unmount_pod("web", timeout=60)
        assert node_calls()[-1] == "ControllerUnpublishVolume"
        assert node.api.list(VolumeAttachment).items == []
        assert _volumes(node) == []


def test_br48_a_detach_that_fails_is_repeated_and_the_pod_waits_for_it(
    manager, driver, claim, pod, node_calls, nothing_left
):
    node = manager()
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    driver.script(Rule("ControllerUnpublishVolume", times=2, code="INTERNAL"))
    node.unmount_pod("web", timeout=60)
    codes = [code for name, code in node_calls(codes=True) if name == "ControllerUnpublishVolume"]
    assert codes == ["INTERNAL", "INTERNAL", "OK"]
    assert node.api.list(VolumeAttachment).items == []
    nothing_left()


def test_br49_a_driver_object_that_comes_later_and_wants_no_attaching(
    manager, driver, claim, pod, until, node_calls, nothing_left
):
    """Without the object an attachment is begun, which the driver never grants."""
    driver.script(Rule("ControllerPublishVolume", times=None, code="UNAVAILABLE"))
    node = manager(driver_object=False)
    claim(node.api)
    with pytest.raises((WaitTimeoutError, VolumesFailedError)):
        node.mount_pod(pod(), timeout=2)
    (attachment,) = node.api.list(VolumeAttachment).items
    assert not attachment.status.attached
    node.api.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": NAME},
            "spec": {"attachRequired": False},
        }
    )
    assert node.api.get(CSIDriver, NAME).spec.attach_required is False
    until(lambda: node.status()[0].ready, 30)
    until(lambda: node.api.list(VolumeAttachment).items == [], 30)
    node.unmount_pod("web", timeout=60)
    nothing_left()


# --- what is left after a crash ---------------------------------------------------------------------------------


@pytest.mark.parametrize("journal", [True, False])
@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_br55_killed_between_unpublish_and_unstage(
    manager, driver, claim, pod, root, until, node_calls, mounts, journal, mode, kept
):
    node = manager(attach_required=False)
    claim(node.api, mode=mode)
    wanted = pod() if mode == "Filesystem" else pod(claims=(), devices=("claim",))
    node.mount_pod(wanted, timeout=60)
    driver.script(Rule("NodeUnstageVolume", times=None, code="INTERNAL"))
    kept(node, "web")
    node.__exit__(None, None, None)
    driver.clear_script()
    driver.clear_calls()
    if not journal:
        os.unlink(f"{root}/volumes.journal")
    node = manager(enter=False, adopt=True)
    with node:
        until(lambda: _volumes(node) == [], 30)
        assert node_calls() == ["NodeUnstageVolume"]
        assert [path for path in mounts() if "/plugins/" in path] == []


def test_br55_who_does_not_adopt_leaves_devices_that_only_the_disk_tells_of(manager, driver, claim, pod, root, kept):
    node = manager(attach_required=False)
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    driver.script(Rule("NodeUnstageVolume", times=None, code="INTERNAL"))
    kept(node, "web")
    node.__exit__(None, None, None)
    os.unlink(f"{root}/volumes.journal")
    driver.clear_script()
    driver.clear_calls()
    with manager(enter=False) as node:
        node._now.parts.reconciler.resync()
        assert len(_volumes(node)) == 1
        assert driver.calls("NodeUnstageVolume") == []
        node.mount_pod(pod("two"), timeout=60)  # it is staged anew, and from now on it is this host's
        node.unmount_pod("two", timeout=60)
        assert _volumes(node) == []
    assert len(driver.calls("NodeUnstageVolume")) == 1


def test_br58_after_a_reboot_it_is_staged_and_published_again(manager, driver, claim, pod, root, node_calls):
    """The driver may still count what is gone: told so first, it counts the next one once."""
    node = manager(attach_required=False, boot_id="one")
    claim(node.api)
    node.mount_pod(pod(), timeout=60)
    node.__exit__(None, None, None)
    with dial(driver.endpoint) as channel:  # behind the host's back
        node_service = stubs.NodeStub(channel)
        (published,) = [call.request for call in driver.calls("NodePublishVolume")]
        node_service.NodeUnpublishVolume(
            csi.NodeUnpublishVolumeRequest(volume_id=published.volume_id, target_path=published.target_path)
        )
        node_service.NodeUnstageVolume(
            csi.NodeUnstageVolumeRequest(
                volume_id=published.volume_id, staging_target_path=published.staging_target_path
            )
        )
    driver.clear_calls()
    with manager(enter=False, boot_id="two") as node:
        (volume,) = node.mount_pod(pod(), timeout=60).volumes
        assert volume.mounted
        calls = ["NodeUnpublishVolume", "NodeUnstageVolume", "NodeStageVolume", "NodePublishVolume"]
        assert node_calls() == calls
        node.unmount_pod("web", timeout=60)


@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_a_driver_that_misses_the_stage_is_asked_to_stage_again(
    manager, driver, claim, pod, node_calls, nothing_left, mode
):
    """As when an unstage that had timed out was at work still while the volume was staged again for the next pod."""
    node = manager(attach_required=False)
    claim(node.api, mode=mode)
    driver.script(Rule("NodePublishVolume", code="FAILED_PRECONDITION"))
    node.mount_pod(pod() if mode == "Filesystem" else pod(claims=(), devices=("claim",)), timeout=60)
    assert node_calls() == ["NodeStageVolume", "NodePublishVolume", "NodeStageVolume", "NodePublishVolume"]
    node.unmount_pod("web", timeout=60)
    nothing_left()


@pytest.mark.parametrize("mounting", ["bind", "none"])
def test_br61_what_is_staged_still_as_another_pod_had_wanted_it_is_staged_anew(
    manager, driver, claim, pod, node_calls, nothing_left, mounting, kept
):
    """That pod went while its volume could not be unstaged; the driver refuses to stage it for another group."""
    driver.configure(mounts=mounting)
    node = manager()
    claim(node.api)
    driver.script(Rule("NodeUnstageVolume", code="UNAVAILABLE", times=None))
    node.mount_pod(pod("one"), timeout=60)
    kept(node, "one")
    wanted = pod("two")
    wanted["spec"]["securityContext"] = {"fsGroup": 2000}
    driver.wait_for("NodeUnstageVolume", 3, ended=True)  # the next attempt comes two seconds later
    driver.clear_calls()
    driver.clear_script()
    node.mount_pod(wanted, timeout=60)
    stages = [("NodeStageVolume", "ALREADY_EXISTS"), ("NodeUnstageVolume", "OK"), ("NodeStageVolume", "OK")]
    assert node_calls(codes=True) == [*stages, ("NodePublishVolume", "OK")]
    node.unmount_pod("two", timeout=60)
    nothing_left()


def test_br61_it_is_staged_anew_also_after_a_kill_while_it_was_unstaged(
    manager, driver, claim, pod, root, node_calls, nothing_left, kept
):
    """The pod has begun to have it then, as far as anybody knows."""
    node = manager()
    claim(node.api)
    driver.script(Rule("NodeUnstageVolume", code="UNAVAILABLE", times=None))
    node.mount_pod(pod("one"), timeout=60)
    kept(node, "one")
    wanted = pod("two")
    wanted["spec"]["securityContext"] = {"fsGroup": 2000}
    with pytest.raises((VolumesFailedError, WaitTimeoutError)):
        node.mount_pod(wanted, timeout=20, attempts=3)
    node.__exit__(None, None, None)
    _forget_outcomes(root)
    driver.clear_script()
    driver.clear_calls()
    with manager(enter=False) as node:
        assert node.mount_pod(wanted, timeout=60).ready
        assert node_calls().count("NodeUnstageVolume") == 1
        node.unmount_pod("two", timeout=60)
        nothing_left()


@pytest.mark.parametrize("first", ["one", "two"])
def test_br61_pods_of_other_groups_go_on_to_share_a_device_after_a_restart(
    manager, driver, claim, pod, node_calls, nothing_left, first
):
    """It is staged for the first one's group, which the driver minds when it is asked again for the other's."""
    wanted = pod("two")
    wanted["spec"]["securityContext"] = {"fsGroup": 2000}
    node = manager()
    claim(node.api)
    node.mount_pod(pod("one"), timeout=60)
    node.mount_pod(wanted, timeout=60)
    node.__exit__(None, None, None)
    driver.clear_calls()
    with manager(enter=False) as node:
        for each in (wanted, pod("one")) if first == "two" else (pod("one"), wanted):
            assert node.mount_pod(each, timeout=60, attempts=1).ready
        assert "NodeUnstageVolume" not in node_calls()
        assert node_calls().count("NodeStageVolume") == 1
        node.unmount_pod("one", timeout=60)
        node.unmount_pod("two", timeout=60)
        nothing_left()


def test_br61_the_first_pod_goes_while_nobody_works_and_the_other_keeps_the_device(
    manager, driver, claim, pod, root, node_calls, nothing_left
):
    wanted = pod("two")
    wanted["spec"]["securityContext"] = {"fsGroup": 2000}
    node = manager()
    claim(node.api)
    node.mount_pod(wanted, timeout=60)
    (kept,) = node.mount_pod(pod("one"), timeout=60).volumes
    node.unmount_pod("two", timeout=60)
    node.__exit__(None, None, None)
    with manager(enter=False) as node:
        assert node.mount_pod(pod("one"), timeout=60, attempts=1).volumes[0].path == kept.path
        node.unmount_pod("one", timeout=60)
        nothing_left()


def _forget_outcomes(root):
    """Leave the journal as a process does that is killed before it has written down how its set-ups went."""
    journal = Journal(f"{root}/volumes.journal", boot_id="one")
    journal.open()
    for (volume, pod), record in journal.entries().items():
        if volume and "state" in record:
            journal.write({"v": volume, "p": pod, "state": "mounting", "is_mount": None, "path": ""})
        elif volume:
            journal.write({"v": volume, "dev": "mounting"})
    journal.close()


@pytest.mark.parametrize("journal", ["kept", "lost", "without outcomes"])
@pytest.mark.parametrize("boot", ["one", "two"])
def test_br58_what_has_gone_and_the_driver_still_counts_is_staged_anew(
    manager, driver, claim, pod, root, mounts, boot, journal, until
):
    """Or else two pods would be bound to a bare directory, where what they write is lost."""
    node = manager(boot_id="one")
    claim(node.api)
    for name in ("web", "too"):
        (volume,) = node.mount_pod(pod(name), timeout=60).volumes
    with open(f"{volume.path}/kept", "w") as file:
        file.write("content")
    node.__exit__(None, None, None)
    for path in reversed(mounts()):
        syscalls.umount2(path, 0)
    if journal == "lost":
        os.unlink(f"{root}/volumes.journal")
    elif journal == "without outcomes":
        _forget_outcomes(root)
    with manager(enter=False, boot_id=boot) as node:
        for name in ("web", "too"):
            (volume,) = node.mount_pod(pod(name), timeout=60).volumes
            assert volume.mounted
            with open(f"{volume.path}/kept") as file:
                assert file.read() == "content"
        assert len(mounts()) == 3
        node.unmount_pod("web", timeout=60)
        node.unmount_pod("too", timeout=60)
    assert mounts() == []
    assert not any(volume["staged"] or volume["published"] for volume in driver.state()["volumes"].values())


# --- claims -----------------------------------------------------------------------------------------------------


def test_a_claim_that_cannot_be_provisioned_fails_with_the_drivers_words(manager, driver, claim, pod):
    node = manager()
    claim(node.api)
    driver.script(Rule("CreateVolume", times=None, code="INVALID_ARGUMENT", message="no such pool"))
    with pytest.raises(VolumesFailedError, match="no such pool"):
        node.mount_pod(pod(), timeout=60, attempts=1)
    driver.clear_script()
    node.unmount_pod("web", timeout=60)


def test_a_claim_that_is_being_provisioned_is_waited_for_and_status_tells_the_step(manager, driver, claim, pod, until):
    node = manager()
    claim(node.api)
    driver.script(Rule("CreateVolume", hang=True))
    result = []
    thread = threading.Thread(target=lambda: result.append(node.mount_pod(pod(), timeout=60, attempts=1)))
    thread.start()
    try:
        driver.wait_for("CreateVolume")
        (volume,) = node.status()[0].volumes
        assert volume.state == "pending"
        assert "CreateVolume" in volume.step
        assert result == []
    finally:
        driver.release()
        thread.join(60)
    assert result[0].ready
    assert node.api.get(PersistentVolumeClaim, "claim", "default").status.phase == "Bound"
    node.unmount_pod("web", timeout=60)
