"""Status from the records of a root directory: without its lock, beside whoever works there (BR-83)."""

import json
import os
import subprocess
import sys

import pytest

from volumehost import hookimpl
from volumehost.errors import RootDirectoryError, VolumesFailedError, WaitTimeoutError
from volumehost.mount import syscalls
from volumehost.node.status.recorded import read_status

pytestmark = pytest.mark.root


def _pod(*volumes, name="web"):
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": list(volumes)}}


def _raise(error):
    def action():
        raise error

    return action


def _volumes(status, name="web"):
    (pod,) = [pod for pod in status.pods if pod.name == name]
    return {volume.volume: volume for volume in pod.volumes}


def test_a_root_directory_that_is_not_there_holds_nothing_and_is_not_made(tmp_path):
    status = read_status(tmp_path / "absent")
    assert (status.pods, status.manager_pid, status.notes) == ((), None, ())
    assert os.listdir(tmp_path) == []


def test_it_needs_the_same_form_of_path(tmp_path):
    with pytest.raises(RootDirectoryError):
        read_status(f"{tmp_path}/x/")


def test_beside_the_manager_and_after_it(manager, bind, nfs, root, until):
    unused = {**nfs("idle"), "name": "idle"}
    with manager(bind(), enter=False) as node:
        pod = _pod(nfs("a"))
        pod["spec"]["volumes"].append(unused)
        node.mount_pod(pod, timeout=20)
        until(lambda: _volumes(read_status(root))["a"].state == "mounted")
        status = read_status(root)
        assert status.manager_pid == os.getpid()
        assert _volumes(status)["idle"].state == "unused"
    status = read_status(root)
    assert status.manager_pid is None
    volume = _volumes(status)["a"]
    assert (volume.state, volume.mounted, volume.plugin) == ("mounted", True, "example.com/bind")
    assert status.pods[0].state == "mounted"
    assert os.path.exists(f"{volume.path}/file")


def test_another_process_reads_it_while_the_manager_holds_the_lock(manager, bind, nfs, root):
    program = (
        "import json, sys; from volumehost.node.status.recorded import read_status;"
        "s = read_status(sys.argv[1]);"
        "print(json.dumps([s.manager_pid, [p.to_dict() for p in s.pods]]))"
    )
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
        node._now.parts.services.journal.flush()
        done = subprocess.run([sys.executable, "-c", program, root], check=True, capture_output=True, text=True)
    pid, (pod,) = json.loads(done.stdout)
    assert pid == os.getpid()
    assert pod["volumes"][0]["state"] == "mounted"


def test_a_failure_is_told_with_its_attempts_and_the_next_try(manager, bind, nfs, root, until):
    plugin = bind()
    plugin.trouble["set_up"] = _raise(ValueError("bad key"))
    with manager(plugin, enter=False) as node:
        with pytest.raises(VolumesFailedError):
            node.mount_pod(_pod(nfs("a")), timeout=20, attempts=2)
        until(lambda: _volumes(read_status(root))["a"].attempts == 2)
        volume = _volumes(read_status(root))["a"]
        assert volume.state == "failed"
        assert "bad key" in volume.error
        assert 0 <= volume.retry_in <= 1
        assert "2 attempts failed at step set-up, last error:" in volume.explain()
    volume = _volumes(read_status(root))["a"]
    assert (volume.state, volume.retry_in) == ("failed", None)


def test_a_volume_that_cannot_be_resolved_is_told_with_the_reason(manager, bind, nfs, root):
    with manager(bind(), enter=False) as node, pytest.raises(VolumesFailedError):
        node.mount_pod(_pod(nfs("a"), {"name": "b", "emptyDir": {}}), timeout=20)
    volume = _volumes(read_status(root))["b"]
    assert volume.state == "pending"
    assert "no volume plugin matched" in volume.error


def test_a_running_operation_is_told_with_step_and_age(manager, bind, nfs, root, until):
    import threading

    gate, plugin = threading.Event(), bind()
    plugin.trouble["set_up"] = lambda: gate.wait(60)
    with manager(plugin, enter=False) as node:
        with pytest.raises(WaitTimeoutError):
            node.mount_pod(_pod(nfs("a")), timeout=0.05)
        try:
            until(lambda: _volumes(read_status(root))["a"].step == "set-up")
            volume = _volumes(read_status(root))["a"]
            assert (volume.state, volume.operation) == ("mounting", "volume_mount")
            assert volume.age > 0.5
        finally:
            gate.set()


def test_br58_what_the_kernel_no_longer_shows_is_lost(manager, bind, nfs, root):
    with manager(bind(), enter=False) as node:
        (volume,) = node.mount_pod(_pod(nfs("a")), timeout=20).volumes
    syscalls.umount2(volume.path, syscalls.MNT_DETACH)
    found = _volumes(read_status(root))["a"]
    assert (found.state, found.mounted) == ("lost", False)
    assert not found.ready


def test_br58_after_a_reboot_everything_is_lost(manager, bind, nfs, root):
    with manager(bind(), enter=False, boot_id="another boot") as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    assert _volumes(read_status(root))["a"].state == "lost"


def test_a_pod_that_only_the_journal_knows(manager, bind, nfs, root):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    for name in os.listdir(root):
        if name.startswith("store.sqlite3"):
            os.unlink(f"{root}/{name}")
    (pod,) = read_status(root).pods
    assert (pod.namespace, pod.name, pod.note) == ("default", "web", "the pod is not in the API")
    assert pod.volumes[0].state == "mounted"
    assert not os.path.exists(f"{root}/store.sqlite3")


def test_br56_a_damaged_journal_and_a_damaged_store_are_noted(manager, bind, nfs, root):
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
    with open(f"{root}/volumes.journal", "ab") as file:
        file.write(b"garbage\n")
    assert any("damaged" in note for note in read_status(root).notes)
    for name in os.listdir(root):
        if name.startswith("store.sqlite3"):
            os.unlink(f"{root}/{name}")
    with open(f"{root}/store.sqlite3", "wb") as file:
        file.write(b"this is no database" * 100)
    status = read_status(root)
    assert any("pods cannot be read" in note for note in status.notes)
    assert status.pods[0].volumes[0].state == "mounted"


def test_an_unmount_that_was_interrupted_is_uncertain(manager, bind, nfs, root, kept):
    plugin = bind()
    plugin.trouble["tear_down"] = _raise(ValueError("busy"))
    with manager(plugin, enter=False) as node:
        node.mount_pod(_pod(nfs("a")), timeout=20)
        kept(node, "web")
    (pod,) = read_status(root).pods
    assert pod.state == "unmounting"
    assert pod.volumes[0].state == "failed"
    assert "busy" in pod.volumes[0].error


def test_a_mount_that_a_link_leads_to_is_not_lost(manager, bind, nfs, root, tmp_path):
    """A plugin may hand out a path of the host, as hostPath does; the mount table has only resolved paths."""
    disk, link = tmp_path / "host" / "disk", tmp_path / "link"
    disk.mkdir()
    link.symlink_to(disk)
    syscalls.mount("disk", str(disk), "tmpfs", 0, "")

    class Shown:
        def __init__(self, path):
            self.path = path

        def get_path(self):
            return self.path

        def set_up(self, args):
            pass

    class Shows(bind):
        @hookimpl
        def new_mounter(self, spec, pod):
            return Shown(spec.volume.nfs.path)

    node = manager(Shows())
    volumes = [nfs("a", str(link)), nfs("b", f"{disk}/")]
    assert node.mount_pod(_pod(*volumes)).ready
    assert [volume.state for volume in read_status(root).pods[0].volumes] == ["mounted", "mounted"]
    syscalls.umount2(str(disk), 0)
    assert [volume.state for volume in read_status(root).pods[0].volumes] == ["lost", "lost"]


def test_br57_a_pod_that_only_its_directory_tells_of_is_uncertain(manager, bind, nfs, root):
    """With the journal lost, or made anew by a command for another pod: never "not mounted" of what is mounted."""
    with manager(bind(), enter=False) as node:
        node.mount_pod(_pod(nfs("a"), name="one"), timeout=20)
        node.mount_pod(_pod(nfs("a"), name="two"), timeout=20)
        node.api.create({"apiVersion": "v1", "kind": "Pod", **_pod(nfs("a"), name="new")})
    os.unlink(f"{root}/volumes.journal")
    states = {pod.name: _volumes(read_status(root), pod.name)["a"].state for pod in read_status(root).pods}
    assert states == {"one": "uncertain", "two": "uncertain", "new": "not-mounted"}
    with manager(bind(), enter=False) as node:
        node.unmount_pod("one", timeout=20)
        node.unmount_pod("two", timeout=20)
    assert [pod.name for pod in read_status(root).pods] == ["new"]
