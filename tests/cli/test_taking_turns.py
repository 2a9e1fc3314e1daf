"""One command at a time works on a root directory; the others wait for their turn, and say so."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from volumehost.api.objects import Pod
from volumehost.api.store import EmbeddedStore
from volumehost.hosts.lock import RootDirLock
from volumehost.hosts.root_dir import prepare_root_dir
from volumehost.mount.mounter import LinuxMounter

pytestmark = pytest.mark.root

MEMORY = "emptyDir: {medium: Memory, sizeLimit: 1Mi}"


@pytest.fixture
def locked(volumehost) -> Iterator[None]:
    """Another process, this one, works on the root directory."""
    lock = RootDirLock(prepare_root_dir(str(volumehost.root_dir)))
    lock.acquire()
    yield
    lock.release()


def test_while_another_works_mounting_waits_and_then_times_out_and_status_works(
    volumehost, manifest, pod_manifest, locked
) -> None:
    path = manifest(pod_manifest(a=MEMORY))
    done = volumehost("mount", "-f", path, "--timeout", "200ms")
    assert done.code == 4
    assert f"process {os.getpid()}" in done.err
    assert "hint: " in done.err
    assert volumehost("unmount", "--all", "--timeout", "200ms").code == 4
    assert volumehost("apply", "-f", path).code == 0
    assert volumehost("get", "pods").code == 0
    status = volumehost("status", "-o", "json")
    assert status.code == 0
    assert status.json()["managerPid"] == os.getpid()
    assert f"process {os.getpid()} works on this root directory" in volumehost("status").err


def test_delete_of_a_mounted_pod_is_done_when_whoever_has_the_root_directory_did_it(
    volumehost, manifest, pod_manifest, mounts_below
) -> None:
    """An agent sees the mark and unmounts; the command only has to wait for that."""
    assert volumehost("mount", "-f", manifest(pod_manifest(a=MEMORY))).code == 0
    (path,) = mounts_below(volumehost.root_dir)
    lock = RootDirLock(str(volumehost.root_dir))
    lock.acquire()
    process = volumehost.start("delete", "pod", "web", "--timeout", "60s")
    try:
        with EmbeddedStore(str(volumehost.root_dir / "store.sqlite3")) as store:
            for event in store.watch(Pod, "default", timeout=30):
                if event.type != "BOOKMARK" and event.object.metadata.deletion_timestamp:
                    break
            else:
                pytest.fail("the pod was never marked")
            LinuxMounter().unmount(path)
            store.patch(Pod, "web", {"metadata": {"finalizers": None}}, "default")
        out, err = process.communicate(timeout=60)
    finally:
        lock.release()
        process.kill()
        process.wait()
    assert (process.returncode, out) == (0, "pod/web deleted\n")
    assert err in {"", f"waiting: process {os.getpid()} works on the root directory\n"}


def test_a_mount_that_waits_for_its_turn_gets_it(volumehost, manifest, pod_manifest, mounts_below) -> None:
    path = manifest(pod_manifest(a=MEMORY))
    lock = RootDirLock(prepare_root_dir(str(volumehost.root_dir)))
    lock.acquire()
    process = volumehost.start("mount", "-f", path)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line == f"waiting: process {os.getpid()} works on the root directory\n"
        lock.release()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (0, "")
    assert "mounted" in out
    assert len(mounts_below(volumehost.root_dir)) == 1


def test_commands_at_the_same_time_take_turns(volumehost, manifest, pod_manifest, mounts_below) -> None:
    files = [manifest(pod_manifest(f"web{number}", a=MEMORY), f"{number}.yaml") for number in range(4)]
    processes = [volumehost.start("mount", "-f", path) for path in files]
    outcomes = [(process.communicate(timeout=60), process.returncode) for process in processes]
    assert [code for _, code in outcomes] == [0, 0, 0, 0], outcomes
    assert len(mounts_below(volumehost.root_dir)) == 4
    assert volumehost("unmount", "--all").code == 0
    assert mounts_below(volumehost.root_dir) == []
