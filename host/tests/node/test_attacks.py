"""A workload attacks the host through what it can write to: subpaths (BR-71) and projected content (BR-72)."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost import hookimpl
from volumehost.api.objects import Pod
from volumehost.errors import PayloadError, UnsafePathError
from volumehost.sdk import AtomicWriter, FileProjection, make_directories, remove_all_one_filesystem

pytestmark = pytest.mark.root

EXCHANGER = Path(__file__).parents[1] / "mount" / "exchanger.py"


def pod_of(*mounts, volume):
    return {
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": list(mounts)}], "volumes": [volume]},
    }


def identity(path):
    status = os.stat(path)
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def exchanging(one, other):
    """Exchange two names in a tight loop, by a process of its own, for as long as the block takes or they are there."""
    with subprocess.Popen([sys.executable, str(EXCHANGER), one, other], stdout=subprocess.PIPE) as attacker:
        try:
            assert attacker.stdout.readline() == b"ready\n"
            yield
        finally:
            attacker.kill()


@pytest.fixture
def canary(tmp_path):
    """A directory of the host that has to stay as it is, by content, owner, mode and time."""
    path = tmp_path / "canary"
    (path / "sub" / "end").mkdir(parents=True)
    (path / "file").write_text("host file")
    os.chmod(path / "file", 0o640)

    def state():
        found = {}
        for directory, _, files in os.walk(path):
            for name in ("", *files):
                status = os.stat(f"{directory}/{name}")
                found[directory, name] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns)
        return found

    before = state()
    yield str(path)
    assert state() == before
    assert (path / "file").read_text() == "host file"


# --- subpaths -------------------------------------------------------------------------------------------------------


def test_br71_containers_get_the_volumes_own_directory_or_nothing(manager, bind, nfs, data, canary, mounts):
    """The whole way: a subpath is made and bound while a process of the workload exchanges a part of it."""
    os.mkdir(f"{data}/part")
    os.symlink(canary, f"{data}/evil")
    node = manager(bind())
    subpath = {"name": "v", "mountPath": "/d", "subPath": "part/sub/end"}
    status = node.mount_pod(pod_of(subpath, volume=nfs()), timeout=20)
    given, bound, refused = 0, set(), set()
    with exchanging(f"{data}/part", f"{data}/evil"):
        for _ in range(5000):
            if given >= 20 and refused:
                break
            try:
                (mount,) = node.container_mounts(status)[0].mounts
            except UnsafePathError as error:
                refused.add(error.reason)
                continue
            given += 1
            bound.add(identity(mount.host_path))
    assert given >= 20
    (honest,) = [name for name in ("part", "evil") if not os.path.islink(f"{data}/{name}")]
    assert bound == {identity(f"{data}/{honest}/sub/end")}
    where = 'for volumeMount "v" of container "c"'
    assert refused <= {f"failed to create subPath directory {where}", f"failed to prepare subPath {where}"}
    assert refused
    node.unmount_pod("web", timeout=20)
    assert mounts() == []


@pytest.mark.parametrize("leads_to", ["{canary}", "../canary", "/proc/self/root{canary}"])
@pytest.mark.parametrize("subpath", ["link", "link/sub", "link/new/dir", "deep/link", "deep/link/new"])
def test_br71_links_that_lead_out(manager, bind, nfs, data, canary, mounts, leads_to, subpath):
    os.mkdir(f"{data}/deep")
    for place, up in (("", ""), ("deep/", "../")):
        target = leads_to.format(canary=canary)
        os.symlink(up + target if target.startswith("..") else target, f"{data}/{place}link")
    node = manager(bind())
    mount = {"name": "v", "mountPath": "/d", "subPath": subpath}
    status = node.mount_pod(pod_of(mount, volume=nfs()), timeout=20)
    with pytest.raises(UnsafePathError) as caught:
        node.container_mounts(status)
    assert canary not in str(caught.value)
    assert str(caught.value).endswith(' subPath for volumeMount "v" of container "c"') or "directory" in str(
        caught.value
    )
    assert len(mounts()) == 1
    assert not os.path.exists(f"{node.root_dir}/pods/{status.uid}/volume-subpaths")


# --- projected content ----------------------------------------------------------------------------------------------


@pytest.fixture
def projecting(bind):
    """A plugin that writes files into the pod's directory, and anew at each refresh; the workload may write there."""

    class Projecting(bind):
        remount = True
        generation = 0

        @hookimpl
        def requires_remount(self, spec):
            return True

        @hookimpl
        def new_mounter(self, spec, pod):
            made = super().new_mounter(spec, pod)
            made.set_up = lambda args: self.write(made.target)
            return made

        @hookimpl
        def new_unmounter(self, volume_name, pod_uid):
            made = super().new_unmounter(volume_name, pod_uid)
            made.tear_down = lambda: remove_all_one_filesystem(made.target)
            return made

        def write(self, directory):
            self.generation += 1
            make_directories(directory)
            os.chmod(directory, 0o777)
            text = f"generation {self.generation}".encode()
            payload = {"a": FileProjection(text, 0o600), "sub/b": FileProjection(text, 0o600)}
            AtomicWriter(directory, sync=False).write(payload)

    return Projecting("example.com/projecting")


@pytest.fixture
def projected(manager, projecting, nfs):
    """A pod with projected content: the manager, the volume's directory, and how to refresh it."""
    node = manager(projecting)
    status = node.mount_pod(pod_of({"name": "v", "mountPath": "/d"}, volume=nfs()), timeout=20)

    def refresh():
        pod = node.api.get(Pod, "web", "default")
        node.sync_pod(pod)
        node.wait_for_pod(pod, timeout=20)
        for name in ("a", "sub/b"):
            assert Path(refresh.path, name).read_text() == f"generation {projecting.generation}"

    refresh.node, refresh.path = node, status.volumes[0].path
    return refresh


@pytest.mark.parametrize(
    "leads_to", ["{canary}", "{canary}/sub", "../../../../../../canary", "/proc/self/root{canary}"]
)
@pytest.mark.parametrize("name", ["..data", "..data_tmp", "a", "sub", "..2020_01_01_00_00_00.1"])
def test_br72_updates_and_teardown_leave_the_host_alone(projected, canary, name, leads_to):
    def attack():
        place = f"{projected.path}/{name}"
        if os.path.lexists(place):
            os.unlink(place)
        os.symlink(leads_to.format(canary=canary), place)

    attack()
    projected()
    attack()
    projected.node.unmount_pod("web", timeout=20)
    assert os.listdir(f"{projected.node.root_dir}/pods") == []


def test_br72_a_directory_of_a_generation_that_became_a_link(projected, canary):
    generation = f"{projected.path}/{os.readlink(f'{projected.path}/..data')}"
    os.unlink(f"{generation}/sub/b")
    os.rmdir(f"{generation}/sub")
    os.symlink(canary, f"{generation}/sub")
    projected()
    projected.node.unmount_pod("web", timeout=20)


def test_br72_exchanged_all_the_time(projected, projecting, canary):
    """An update may fail, and be tried again: that harms nobody but the workload that plays this game."""
    evil = f"{projected.path}/evil"
    os.symlink(canary, evil)
    written = 0
    with exchanging(f"{projected.path}/..data", evil):
        for _ in range(100):
            with contextlib.suppress(PayloadError):
                projecting.write(projected.path)
                written += 1
        projected.node.unmount_pod("web", timeout=20)
    assert written
    assert os.listdir(f"{projected.node.root_dir}/pods") == []
