"""An inspection, and the plan of a repair, leave no trace: no byte, no time, no lock, also beside a manager."""

import os
import stat
from pathlib import Path

import pytest

from volumehost.hosts.lock import lock_holder
from volumehost.inspection.inspect import inspect_root
from volumehost.inspection.repair import plan_repair
from volumehost.mount import syscalls

pytestmark = pytest.mark.root


def snapshot(root):
    """Everything below a directory, mounts included, with all times and content. Looking changes none of it."""
    found, left = {}, [root]
    while left:
        path = left.pop()
        status = os.lstat(path)
        content = None
        if stat.S_ISDIR(status.st_mode):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOATIME)
            left += [f"{path}/{name}" for name in os.listdir(descriptor)]
            os.close(descriptor)
        elif stat.S_ISREG(status.st_mode):
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOATIME)) as file:
                content = file.read()
        times = status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns
        found[path] = (status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_nlink, times, content)
    return found


@pytest.fixture
def strict(area):
    """Every look that does not avoid it would change a time here."""
    syscalls.mount("", str(area), "", syscalls.MS_REMOUNT | syscalls.MS_STRICTATIME, "")


def fill(kubelet):
    """Pods of every state, and something for every kind of finding."""
    known, orphan = kubelet.pod(1), kubelet.pod(2)
    kubelet.csi(known)
    kubelet.empty_dir(known, memory=True)
    kubelet.projected(known)
    kubelet.block(known)
    kubelet.subpath(known, "pv-1", kubelet.data("vol-1"))
    kubelet.csi(orphan, "vol-2", "pv-2")
    Path(kubelet.empty_dir(orphan), "file").write_text("mine")
    kubelet.stage("vol-3")
    kubelet.record(kubelet.staging("vol-4"), driverName="csi.example.com", volumeHandle="vol-4")
    bare = kubelet.nfs(known)
    syscalls.umount2(bare, 0)
    Path(bare, "late").write_text("x")
    Path(kubelet.csi(known, "vol-5", "pv-5")).parent.joinpath("vol_data.json").write_bytes(b"")
    return known


def test_a_kubelets_directory_is_as_it_was(kubelet, strict):
    known = fill(kubelet)
    pods = kubelet.pods_file(known)
    before, mounts = snapshot(kubelet.root), kubelet.mounts()
    assert len({kind for kind, _ in (each.key for each in kubelet.inspect(pods=pods).findings)}) > 4
    assert snapshot(kubelet.root) == before
    from volumehost.inspection.inspect import Sources

    assert plan_repair(kubelet.root, Sources(pods=pods)).plan.repairs
    assert snapshot(kubelet.root) == before
    assert kubelet.mounts() == mounts


def test_it_works_on_a_read_only_filesystem(kubelet):
    syscalls.mount(kubelet.root, kubelet.root, "", syscalls.MS_BIND, "")
    known = fill(kubelet)
    syscalls.mount("", kubelet.root, "", syscalls.MS_BIND | syscalls.MS_REMOUNT | syscalls.MS_RDONLY, "")
    with pytest.raises(OSError, match="Read-only"):
        Path(kubelet.root, "x").touch()
    before = snapshot(kubelet.root)
    found = kubelet.inspect(known)
    assert {"orphaned-pod", "leaked-device-mount", "files-under-mount-point"} <= {each.kind for each in found.findings}
    assert snapshot(kubelet.root) == before


def test_beside_a_manager_at_work_nothing_changes_and_nobody_waits(own, strict):
    with own() as manager:
        manager.mount_pod(own.pod())
        manager._now.parts.services.journal.flush()
        holder = lock_holder(own.root)
        before = snapshot(own.root)
        found = inspect_root(own.root)
        assert snapshot(own.root) == before
        assert lock_holder(own.root) == holder == os.getpid()
        assert found.pods[0].volumes[0].state == "mounted"
        assert [each.kind for each in found.findings] == []


def test_when_nobody_is_at_work_nothing_changes_either(own, strict):
    with own() as manager:
        manager.mount_pod(own.pod())
    before = snapshot(own.root)
    found = inspect_root(own.root)
    plan_repair(own.root)
    assert snapshot(own.root) == before
    assert found.pods[0].label == "default/web"


def test_it_works_on_this_hosts_directory_when_that_is_read_only(own):
    os.makedirs(own.root)
    syscalls.mount(own.root, own.root, "", syscalls.MS_BIND, "")
    with own() as manager:
        manager.mount_pod(own.pod())
    syscalls.mount("", own.root, "", syscalls.MS_BIND | syscalls.MS_REMOUNT | syscalls.MS_RDONLY, "")
    before = snapshot(own.root)
    found = inspect_root(own.root)
    assert found.sources == ("store (1 pod)", "journal (1 pod)")
    assert found.pods[0].volumes[0].witnesses.journal == "mounted"
    assert snapshot(own.root) == before
