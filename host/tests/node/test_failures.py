"""What fails or hangs concerns itself alone, is tried again with backoff, and is explained (BR-18, -52, -53, -83)."""

import os
import re
import threading

import pytest

from volumehost.api.objects import Event, Pod
from volumehost.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    MountError,
    ObjectNotFoundError,
    OperationError,
    RemovalError,
    StillMountedError,
    VolumesFailedError,
    WaitTimeoutError,
)
from volumehost.hosts.lock import lock_holder
from volumehost.loader.manager import VolumePluginManager
from volumehost.mount import syscalls

pytestmark = pytest.mark.root


def _pod(*volumes, name="web"):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


def _raise(error):
    def action():
        raise error

    return action


class Once:
    """Raises the first few times."""

    def __init__(self, error, times=1):
        self.error, self.left = error, times

    def __call__(self):
        if self.left:
            self.left -= 1
            raise self.error


def test_br83_the_timeout_says_volume_plugin_operation_attempts_error_and_next_retry(
    manager, bind, disk, nfs, clock, unready
):
    good, bad = bind(), bind("example.com/bad")
    bad.sources = ("iscsi",)
    bad.trouble["new_mounter"] = _raise(OperationError("PERMISSION_DENIED: bad key"))
    node = manager(good, bad, clock=clock)  # which stands, so that it is not tried again
    wrong = {"name": "keys", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}
    caught = unready(node, _pod(nfs("a"), wrong, nfs("b")), r"unmounted volumes=\[keys\](?s:.*)attempt failed")
    (told,) = caught.value.details
    line = told.splitlines()[0]
    assert line.startswith("volume keys (example.com/bad): failed")
    assert "operation volume_mount" in line
    assert "1 attempt failed at step check" in line
    assert re.search(r"next retry in 0\.\d s", line)
    assert "PERMISSION_DENIED: bad key" in told
    assert all(each in str(caught.value) for each in told.splitlines())
    states = {volume.volume: volume.state for volume in node.status()[0].volumes}
    assert states == {"a": "mounted", "keys": "failed", "b": "mounted"}


def test_a_volume_that_fails_once_is_mounted_by_the_retry(manager, bind, nfs):
    plugin = bind()
    plugin.trouble["set_up"] = Once(MountError("busy"))
    assert manager(plugin).mount_pod(_pod(nfs("a")), timeout=30).ready
    assert plugin.count("set_up") == 2


def test_a_caller_may_give_up_after_so_many_attempts(manager, bind, nfs):
    plugin = bind()
    plugin.trouble["set_up"] = _raise(MountError("no such device"))
    node = manager(plugin)
    with pytest.raises(VolumesFailedError, match="no such device"):
        node.mount_pod(_pod(nfs("a")), timeout=60, attempts=2)
    assert plugin.count("set_up") == 2


def test_br53_no_retry_before_its_time_and_one_event_with_a_count(manager, bind, nfs):
    plugin = bind()
    plugin.trouble["set_up"] = _raise(MountError("no such device"))
    with manager(plugin, enter=False) as node:
        with pytest.raises(VolumesFailedError):
            node.mount_pod(_pod(nfs("a")), timeout=60, attempts=2)
        for _ in range(20):
            node._now.parts.reconciler.resync()
        assert plugin.count("set_up") == 2
        node.host.flush_events(10)
        (event,) = node.api.list(Event, "default").items
        assert (event.reason, event.count) == ("FailedMount", 2)


def test_br53_a_changed_pod_starts_afresh(manager, bind, nfs, tmp_path):
    plugin = bind()
    node = manager(plugin)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(_pod(nfs("a", path="/absent/source")), timeout=60, attempts=3)
    pod = node.api.get(Pod, "web", "default")
    (tmp_path / "other").mkdir()
    pod.spec.volumes[0].nfs.path = str(tmp_path / "other")
    node.sync_pod(pod)  # the delay after three failures is two seconds; the new path is tried at once
    entry = node._now.parts.pending.find(_key(node))
    assert entry is None or entry.running or entry.backoff.attempts <= 1
    assert node.wait_for_pod(pod, timeout=30).ready


def _key(node):
    from volumehost.node.execution.pending import OperationKey

    (volume,) = node._now.parts.services.desired.volumes_of_pod(node.status()[0].uid)
    return OperationKey(volume, node.status()[0].uid)


def test_br18_one_volume_that_cannot_be_torn_down_does_not_keep_the_others(
    manager, bind, nfs, mounts, troubled_mounter
):
    node = manager(bind(), mounter=troubled_mounter)
    for name in ("p1", "p2", "p3"):
        node.mount_pod(_pod(nfs("a"), nfs("b"), nfs("c"), name=name), timeout=20)
    broken = node.api.get(Pod, "p2", "default").metadata.uid
    stuck = f"{node.root_dir}/pods/{broken}/volumes/example.com~bind/b"

    def refuse(target):
        if target == stuck:
            raise StillMountedError("held by process 1", subject=target)

    troubled_mounter.before_unmount = refuse
    with pytest.raises(WaitTimeoutError, match="1 of 3 pods could not be unmounted") as caught:
        node.unmount_all(timeout=0.6)
    assert "held by process 1" in str(caught.value)
    assert mounts() == [stuck]
    assert [status.name for status in node.status()] == ["p2"]
    troubled_mounter.before_unmount = lambda target: None
    assert node.unmount_all(timeout=30) == ["default/p2"]
    assert mounts() == []


@pytest.mark.parametrize("error", [SystemExit(3), RecursionError("deep"), MemoryError("all"), StopIteration()])
def test_whatever_a_plugin_raises_only_its_own_volume_fails(manager, bind, nfs, error):
    plugin = bind()
    plugin.trouble["new_mounter"] = Once(error)
    node = manager(plugin)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(_pod(nfs("a")), timeout=30, attempts=1)
    assert node.wait_for_pod(node.api.get(Pod, "web", "default"), timeout=30).ready


def test_br52_a_hung_set_up_holds_up_itself_alone_and_is_shown_with_its_age(manager, bind, nfs, until, mounts, unready):
    gate, hung = threading.Event(), bind("example.com/hung")
    hung.sources = ("iscsi",)
    hung.trouble["set_up"] = lambda: gate.wait(60)
    wrong = {"name": "h", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}
    node = manager(bind(), hung)
    try:
        caught = unready(node, _pod(nfs("a"), wrong, name="stuck"), "operation volume_mount at step set-up")
        assert re.search(r"operation volume_mount at step set-up for \d\.\d s", str(caught.value))
        for number in range(10):
            node.mount_pod(_pod(nfs("a"), name=f"ok-{number}"), timeout=20)
            node.unmount_pod(f"ok-{number}", timeout=20)
        (status,) = node.status()
        (volume,) = [volume for volume in status.volumes if volume.volume == "h"]
        assert (volume.state, volume.step) == ("mounting", "set-up")
        assert volume.age > 0
    finally:
        gate.set()


def test_br52_a_plugin_that_hangs_when_it_is_asked_does_not_keep_others_out(manager, bind, nfs):
    gate, hung = threading.Event(), bind("example.com/hung")
    hung.sources = ("iscsi",)
    node = manager(bind(), hung, plugin_manager=VolumePluginManager(ask_timeout=0.3))
    node._now.parts.populator._resolver._together = 0.3
    hung.trouble["can_support"] = lambda: gate.wait(60)
    wrong = {"name": "h", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}
    try:
        with pytest.raises((VolumesFailedError, WaitTimeoutError)) as caught:
            node.mount_pod(_pod(nfs("a"), wrong), timeout=20)
        assert "volume h" in str(caught.value)
        states = {volume.volume: volume.state for volume in node.status()[0].volumes}
        assert states == {"a": "mounted", "h": "pending"}
    finally:
        gate.set()


def test_what_could_not_be_resolved_is_tried_again_by_itself(manager, bind, nfs, claimed, until):
    plugin = bind()
    node = manager(plugin)
    pod = _pod({"name": "v", "persistentVolumeClaim": {"claimName": "claim"}})
    with pytest.raises(VolumesFailedError, match="failed to fetch PVC"):
        node.mount_pod(pod, timeout=20)
    claimed(node.api)
    until(lambda: node.status()[0].ready)


def test_leaving_while_an_operation_hangs_keeps_the_root_directory_locked(manager, bind, nfs, root, caplog):
    gate, plugin = threading.Event(), bind()
    plugin.trouble["set_up"] = lambda: gate.wait(60)
    node = manager(plugin, enter=False, exit_grace=0.05)
    with node:
        parts = node._now.parts
        with pytest.raises(WaitTimeoutError):
            node.mount_pod(_pod(nfs("a")), timeout=0.1)
    try:
        assert lock_holder(root) == os.getpid()
        assert "stays locked" in caplog.text
        assert "set-up" in caplog.text
    finally:
        gate.set()
        assert parts.pool.stop(20)
        parts.host.get_kube_client().close()
        parts.lock.release()


def test_a_pod_that_is_unmounted_while_its_set_up_hangs_leaves_nothing(manager, bind, nfs, mounts, root, until):
    """The caller's wait is over, but the word stands: the manager completes it as soon as the set-up ends."""
    gate, begun, plugin = threading.Event(), threading.Event(), bind()

    def hang():
        begun.set()
        gate.wait(60)

    plugin.trouble["set_up"] = hang
    node = manager(plugin)
    results = []

    def mount():
        try:
            node.mount_pod(_pod(nfs("a")), timeout=60)
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=mount)
    thread.start()
    try:
        assert begun.wait(30)
        with pytest.raises(WaitTimeoutError):
            node.unmount_pod("web", timeout=0.2)
        thread.join(30)
        assert "being unmounted" in str(results[0])
        assert [status.name for status in node.status()] == ["web"]
    finally:
        gate.set()
    until(lambda: node.status() == [], 30, "the end of the pod")
    assert mounts() == []
    assert os.listdir(f"{root}/pods") == []
    with pytest.raises(ObjectNotFoundError):
        node.unmount_pod("web", timeout=30)


def test_pods_that_come_and_go_all_at_once_leave_nothing(manager, bind, nfs, mounts, root):
    """Mounting and unmounting the same few pods from several threads: whatever the order, nothing is left."""
    node = manager(bind())
    unexpected = []

    def work(seed):
        for number in range(25):
            name = f"pod-{(seed + number) % 3}"
            try:
                if (seed + number) % 2:
                    node.mount_pod(_pod(nfs("a"), nfs("b"), name=name), timeout=30)
                else:
                    node.unmount_pod(name, timeout=30)
            except (FailedPreconditionError, ObjectNotFoundError, ConflictError, AlreadyExistsError):
                pass
            except Exception as error:
                unexpected.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert unexpected == []
    node.unmount_all(timeout=60)
    assert mounts() == []
    assert os.listdir(f"{root}/pods") == []
    assert node.status() == []


# --- what is in the way -----------------------------------------------------------------------------------------


def test_br62_a_mount_that_is_none_of_its_volumes_keeps_the_pods_directory(manager, bind, nfs, root, data):
    node = manager(bind())
    uid = node.mount_pod(_pod(nfs("a")), timeout=20).uid
    foreign = f"{root}/pods/{uid}/x"
    os.mkdir(foreign)
    syscalls.mount(data, foreign, "", syscalls.MS_BIND, "")
    with pytest.raises(StillMountedError, match="mount point"):
        node.unmount_pod("web", timeout=20)
    with open(f"{data}/file") as file:
        assert file.read() == "content"
    assert [status.name for status in node.status()] == ["web"]
    syscalls.umount2(foreign, 0)
    node.unmount_pod("web", timeout=20)
    assert node.status() == []
    with open(f"{data}/file") as file:
        assert file.read() == "content"


def test_br70_files_written_below_the_mount_point_after_the_unmount_are_kept(
    manager, bind, nfs, root, troubled_mounter, kept
):
    node = manager(bind(), mounter=troubled_mounter)
    (volume,) = node.mount_pod(_pod(nfs("a")), timeout=20).volumes

    def write(target):
        with open(f"{target}/late", "w") as file:
            file.write("still here")

    troubled_mounter.after_unmount = write
    kept(node, "web", "late")
    troubled_mounter.after_unmount = lambda target: None
    with open(f"{volume.path}/late") as file:
        assert file.read() == "still here"
    assert not node.host.get_mounter().is_mount_point(volume.path)
    os.unlink(f"{volume.path}/late")
    node.unmount_pod("web", timeout=30)
    assert os.listdir(f"{root}/pods") == []


def test_a_file_that_appeared_among_the_volumes_is_kept_and_reported(manager, bind, nfs, root):
    node = manager(bind())
    uid = node.mount_pod(_pod(nfs("a")), timeout=20).uid
    os.makedirs(f"{root}/pods/{uid}/volumes/example.com~other/b")
    with open(f"{root}/pods/{uid}/volumes/example.com~other/b/data", "w") as file:
        file.write("mine")
    with pytest.raises(RemovalError, match="data"):
        node.unmount_pod("web", timeout=20)
    assert os.path.exists(f"{root}/pods/{uid}/volumes/example.com~other/b/data")


def test_br58_a_mount_that_vanished_is_not_handed_out(manager, bind, nfs):
    node = manager(bind())
    status = node.mount_pod(_pod(nfs("a")), timeout=20)
    syscalls.umount2(status.volumes[0].path, syscalls.MNT_DETACH)
    with pytest.raises(FailedPreconditionError, match='cannot find volume "a"'):
        node.container_mounts(status)
    assert node.mount_pod(_pod(nfs("a")), timeout=20).ready
    assert node.container_mounts(status)[0].mounts[0].host_path == status.volumes[0].path


def test_a_refresh_that_fails_leaves_the_mounted_volume_usable_and_is_told(manager, bind, nfs):
    plugin = bind()
    plugin.remount = True
    node = manager(plugin)
    node.mount_pod(_pod(nfs()))
    plugin.trouble["set_up"] = Once(OperationError("the server is away"))
    status = node.mount_pod(_pod(nfs()))
    assert status.ready
    assert "the server is away" in status.volumes[0].error
    assert node.container_mounts(status)[0].mounts


def test_br70_unmounting_all_pods_does_not_time_out_when_waiting_would_not_help(manager, bind, nfs, root):
    node = manager(bind())
    status = node.mount_pod(_pod(nfs()))
    kept = f"{root}/pods/{status.uid}/volumes/file"
    with open(kept, "w") as file:
        file.write("content")
    with pytest.raises(VolumesFailedError, match="which were kept"):
        node.unmount_all()
    os.unlink(kept)
    assert node.unmount_all() == ["default/web"]


def test_br52_what_is_done_later_does_not_wait_for_what_hangs(manager, bind):
    parts = manager(bind())._now.parts
    end, done = threading.Event(), threading.Event()
    try:
        parts.later(0, lambda: end.wait(60))
        parts.later(0, done.set)
        assert done.wait(30)
    finally:
        end.set()


def test_two_volumes_that_would_share_a_directory_are_not_taken_for_one(manager, bind, nfs, claimed, tmp_path):
    """The PersistentVolume of the claim has the name that the pod gave to a volume of its own."""
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    node = manager(bind())
    claimed(node.api, path=str(tmp_path / "other"))
    other = {"name": "other", "persistentVolumeClaim": {"claimName": "claim"}}
    with pytest.raises(VolumesFailedError, match=r"volume pv-claim of the pod leads to the same directory") as caught:
        node.mount_pod(_pod(nfs("pv-claim", str(tmp_path / "own")), other))
    assert len(caught.value.details) == 1
    read_only = {"name": "ro", "persistentVolumeClaim": {"claimName": "claim", "readOnly": True}}
    assert node.mount_pod(_pod(other, read_only, name="twice")).ready
