"""A manager that starts while things are not as they should be (BR-15, BR-56, BR-57, full disks)."""

import os
import subprocess
import sys
import threading

import pytest

from volumehost.api.objects import Pod
from volumehost.errors import RootDirectoryError, StoreError, WaitTimeoutError
from volumehost.loader.events import ProbeResult
from volumehost.loader.prober import EntryPointProber
from volumehost.mount import syscalls
from volumehost.node.status.recorded import read_status

pytestmark = pytest.mark.root


class LateProber:
    """Finds what the real one finds, from the time it is let; before that it fails."""

    def __init__(self):
        self.real = EntryPointProber()
        self.broken = True
        self.probes = 0

    def init(self):
        self.real.init()

    def probe(self):
        self.probes += 1
        if self.broken:
            raise OSError("site-packages does not answer")
        return self.real.probe()


class EmptyProber:
    """Never finds anything."""

    def init(self):
        pass

    def probe(self):
        return ProbeResult()


def _many(make_pod, count):
    return [make_pod({"name": "cache", "emptyDir": {"medium": "Memory"}}, name=f"pod-{n}") for n in range(count)]


@pytest.mark.parametrize("prober", [LateProber, EmptyProber])
def test_br15_plugins_that_are_not_found_at_start_cost_no_volume(
    manager, make_pod, mounts, nothing_left, until, prober, kept
):
    with manager(enter=False) as node:
        for pod in _many(make_pod, 20):
            node.mount_pod(pod, timeout=30)
    assert len(mounts()) == 20
    with manager(enter=False, prober=prober()) as node:
        assert len(node.status()) == 20
        node._now.parts.reconciler.resync()
        kept(node, "pod-0", "no volume plugin matched name")
    assert len(mounts()) == 20
    with manager(enter=False) as node:
        until(lambda: len(mounts()) == 19, what="the one that was to be unmounted is")
        assert len(node.unmount_all(timeout=30)) >= 19
    nothing_left()


def test_br15_a_plugin_that_shows_up_late_takes_over(manager, make_pod, mounts, nothing_left, until):
    prober = LateProber()
    node = manager(prober=prober)
    pod = make_pod({"name": "cache", "emptyDir": {"medium": "Memory"}})
    with pytest.raises(Exception, match="no volume plugin matched"):
        node.mount_pod(pod, timeout=20)
    prober.broken = False
    until(lambda: node.status()[0].ready, what="the volume is mounted once its plugin is found")
    node.unmount_pod("web", timeout=30)
    nothing_left()


def test_br57_a_mount_table_that_changes_all_the_time_confuses_nobody(
    manager, make_pod, tmp_path, mounts, nothing_left
):
    with manager(enter=False) as node:
        for pod in _many(make_pod, 10):
            node.mount_pod(pod, timeout=30)
    churn, stop, failures = tmp_path / "churn", threading.Event(), []
    for number in range(200):
        (churn / str(number)).mkdir(parents=True)

    def change():
        number = 0
        while not stop.is_set():
            target = str(churn / str(number % 200))
            try:
                syscalls.mount("c", target, "tmpfs", 0, "size=4096")
                syscalls.umount2(target, 0)
            except OSError as error:
                failures.append(error)
                return
            number += 1

    threads = [threading.Thread(target=change) for _ in range(1)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            with manager(enter=False) as node:
                states = {volume.state for pod in node.status() for volume in pod.volumes}
                assert states == {"mounted"}
                assert node.mount_pod(_many(make_pod, 1)[0], timeout=30).ready
            assert len(mounts()) == 10
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert failures == []
    manager().unmount_all(timeout=30)
    nothing_left()


@pytest.fixture
def small_root(tmp_path):
    """A root directory on a tmpfs of 1 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    syscalls.mount("small", str(place), "tmpfs", 0, "size=1048576,nr_inodes=1000")
    yield str(place / "root")
    syscalls.umount2(str(place), syscalls.MNT_DETACH)


def _fill(path):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(descriptor, b"x" * 4096):
            pass
    except OSError:
        pass
    finally:
        os.close(descriptor)


def test_a_full_disk_refuses_new_work_and_never_keeps_anything_from_being_unmounted(manager, make_pod, small_root):
    from volumehost.mount.mountinfo import read_mount_table

    node = manager(root=small_root)
    pod = make_pod({"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": "64Ki"}})
    (volume,) = node.mount_pod(pod, timeout=30).volumes
    filler = f"{os.path.dirname(small_root)}/filler"
    _fill(filler)
    with pytest.raises((StoreError, RootDirectoryError, WaitTimeoutError)):
        node.mount_pod(make_pod({"name": "cache", "emptyDir": {"medium": "Memory"}}, name="second"), timeout=0.3)
    unmounting = node._now.unmounting
    unmounting.end(node.status()[0].uid, "default", "web")
    node._now.parts.reconciler.run()
    assert node._now.parts.waits.wait(
        (node.status()[0].uid,), lambda: volume.path not in {mount.path for mount in read_mount_table()}, 30
    )
    os.unlink(filler)
    node.unmount_all(timeout=30)
    assert os.listdir(f"{small_root}/pods") == []


def test_a_store_that_is_damaged_is_an_error_and_nothing_is_unmounted(manager, make_pod, mounts, root):
    with manager(enter=False) as node:
        node.mount_pod(make_pod(), timeout=30)
    for name in os.listdir(root):
        if name.startswith("store.sqlite3"):
            os.unlink(f"{root}/{name}")
    with open(f"{root}/store.sqlite3", "wb") as file:
        file.write(b"no database" * 1000)
    with pytest.raises(StoreError):
        manager()
    assert len(mounts()) == 1
    assert read_status(root).pods[0].volumes[0].state == "mounted"


def test_a_store_that_is_lost_costs_no_data(manager, make_pod, mounts, root, until):
    with manager(enter=False) as node:
        paths = {volume.volume: volume.path for volume in node.mount_pod(make_pod(), timeout=30).volumes}
    with open(f"{paths['scratch']}/precious", "w") as file:
        file.write("mine")
    for name in os.listdir(root):
        if name.startswith(("store.sqlite3", "volumes.journal")):
            os.unlink(f"{root}/{name}")
    with manager(enter=False) as node:
        node.mount_pod(make_pod({"name": "other", "emptyDir": {}}, name="other"), timeout=30)
        (left,) = [pod for pod in node.status() if pod.note]
        assert {volume.volume for volume in left.volumes} == {"scratch", "cache"}
        (orphan,) = node.orphans()
        assert any("still mounted" in line for line in orphan.keeps)
    with open(f"{paths['scratch']}/precious") as file:
        assert file.read() == "mine"
    assert mounts() == [paths["cache"]]


def test_entering_loads_nothing_of_kubernetes(root):
    program = (
        "import sys\nfrom volumehost import VolumeManager\n"
        "with VolumeManager(sys.argv[1]) as manager: manager.status()\n"
        "heavy = {'kubernetes', 'grpc', 'pydantic', 'rich', 'asyncio', 'requests'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program, root], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_pods_of_a_store_that_was_lost_stay_until_a_command_names_them(manager, make_pod, mounts, root, until):
    """Another store came in its place: that it lacks them is no word (BR-51). What it tells of goes on as ever."""
    with manager(enter=False) as node:
        status = node.mount_pod(make_pod(), timeout=30)
    paths = {volume.volume: volume.path for volume in status.volumes}
    with open(f"{paths['scratch']}/precious", "w") as file:
        file.write("mine")
    for name in os.listdir(root):
        if name.startswith("store.sqlite3"):
            os.unlink(f"{root}/{name}")
    cache = {"name": "cache", "emptyDir": {"medium": "Memory"}}
    for adopt in (False, True):  # each time anew
        with manager(enter=False, adopt=adopt) as node:
            assert node.mount_pod(make_pod(cache, name="other"), timeout=30).ready
            assert "stay mounted until" in node.notes()[0]
            node.unmount_pod("other", timeout=30)
            assert mounts() == [paths["cache"]]
    with open(f"{paths['scratch']}/precious") as file:
        assert file.read() == "mine"
    with manager(enter=False) as node:
        node.unmount_pod(status.uid, timeout=30)
        assert mounts() == []
    with manager(enter=False) as node:  # from now on it is the store
        assert node.notes() == []
        node.mount_pod(make_pod(cache, name="other"), timeout=30)
        node.api.patch(Pod, "other", {"metadata": {"finalizers": None}}, "default")
        node.api.delete(Pod, "other", "default")
    with manager(enter=False):
        until(lambda: mounts() == [])
