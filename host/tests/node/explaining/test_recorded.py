"""What records tell of volumes when no manager is there to be asked, or another process has the root directory."""

import os
import re
import subprocess

import pytest

from volumehost.errors import ObjectNotFoundError, OperationError, RemovalError, VolumesFailedError, WaitTimeoutError
from volumehost.node.explaining.explain import explain_recorded
from volumehost.node.status.recorded import read_status

pytestmark = pytest.mark.root


@pytest.fixture
def explained(root):
    """The explanation from the records, with the embedded store of the root directory."""
    from volumehost.api.read_only_store import ReadOnlyStore

    def explain(name="web", namespace="default"):
        with ReadOnlyStore(f"{root}/store.sqlite3", untouched=True) as store:
            return explain_recorded(root, store, namespace, name, node_name="here")

    return explain


def _live(node, name="web"):
    from volumehost.api.objects import Pod

    return node.explain(node.api.get(Pod, name, "default"))


def _without_times(volume):
    """What live and recorded explanations have in common, the facts that only a process at work has left out."""
    words = [line for line in volume.waits_for if not line.startswith("the next attempt")]
    points = [(point.name, point.state) for point in volume.sequence]
    return volume.volume, volume.state, volume.operation, volume.step, volume.attempts, points, words, volume.error


def test_nobody_works_on_the_root_directory(manager, bind, nfs, pod_with, fails, explained, root):
    plugin = bind()
    plugin.trouble["set_up"] = fails(OperationError("away"))
    with manager(plugin, enter=False) as node, pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(nfs("v")), timeout=20, attempts=1)
    told = explained()
    assert not told.live
    assert told.waits_for == (f"somebody who works on it: nobody works on this root directory, {root}",)
    assert told.advice == ("run 'volumehost mount web', or the agent: 'volumehost agent'",)


def test_the_other_process_is_named(manager, bind, nfs, pod_with, fails, explained):
    plugin = bind()
    plugin.trouble["set_up"] = fails(OperationError("away"))
    node = manager(plugin)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(nfs("v")), timeout=20, attempts=1)
    told = explained()
    assert told.notes == (f"process {os.getpid()} works on this root directory; this is what it has recorded",)
    assert told.waits_for == ()


def test_br83_the_records_tell_what_the_manager_told(
    manager, bind, nfs, pod_with, claimed_volume, fails, explained, volume_of, until
):
    """A refusal, a missing plugin, a missing claim, a claim that cannot be provisioned: the same, live or not."""
    bad = bind("example.com/bad")
    bad.sources = ("cephfs",)
    bad.trouble["set_up"] = fails(OperationError("PERMISSION_DENIED: bad key"))
    volumes = [
        nfs("good"),
        {"name": "keys", "cephfs": {"monitors": ["m"], "path": "/x"}},
        {"name": "none", "emptyDir": {}},
        claimed_volume("absent", "absent"),
        claimed_volume("data", "data"),
    ]
    with manager(bind(), bad, enter=False) as node:
        node.api.create(_claim("data"))
        with pytest.raises(VolumesFailedError):
            node.mount_pod(pod_with(*volumes), timeout=20, attempts=1)
        for name in ("good", "keys", "absent"):  # at any moment the one may be an attempt ahead of the other
            until(lambda name=name: _without_times(volume_of(explained(), name)) == _without_times(
                volume_of(_live(node), name)))  # fmt: skip
        live = _live(node)
        until(lambda: volume_of(_live(node), "data").attempts and volume_of(explained(), "data").error)
    recorded = explained()
    assert recorded.summary == live.summary == "4 of 5 volumes are not mounted"
    for name in ("none", "data"):
        one, other = volume_of(recorded, name), volume_of(live, name)
        assert [point.state for point in one.sequence] == [point.state for point in other.sequence]
    for name in ("keys", "none", "absent", "data"):
        assert volume_of(recorded, name).advice == volume_of(live, name).advice, name
    assert "there is no storageclass gone" in "\n".join(volume_of(recorded, "data").error)
    assert "no volume plugin matched" in "\n".join(volume_of(recorded, "none").error)


def _claim(name):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gone",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def test_status_has_the_controllers_words_too(manager, bind, pod_with, claimed_volume, root, volume_of):
    with manager(bind(), enter=False) as node:
        node.api.create(_claim("data"))
        with pytest.raises((VolumesFailedError, WaitTimeoutError)):
            node.mount_pod(pod_with(claimed_volume("data")), timeout=20, attempts=1)
    (pod,) = read_status(root).pods
    line = pod.volumes[0].explain()
    assert re.search(r"there is no storageclass gone .*\(failed once\)", line), line


def test_an_attach_that_fails_is_known_without_the_manager(
    manager, disk, claimed, pod_with, claimed_volume, fails, explained, volume_of, here
):
    plugin = disk()
    plugin.trouble["attach"] = fails(OperationError("no room in the controller"))
    with manager(plugin, enter=False) as node:
        claimed(node.api)
        with pytest.raises(VolumesFailedError):
            node.mount_pod(pod_with(claimed_volume()), timeout=20, attempts=1)
        live = volume_of(_live(node))
    volume = volume_of(explained())
    assert (volume.state, volume.operation, volume.step) == ("failed", "volume_attach", "attach")
    assert here(volume) == here(live) == "attach"
    assert any("no room in the controller" in line for line in volume.error)
    assert volume.attempts == 1


def test_br42_the_pod_that_has_the_volume_is_named(
    manager, bind, claimed, pod_with, claimed_volume, explained, volume_of
):
    modes = {"accessModes": ["ReadWriteOncePod"]}
    with manager(bind(), enter=False) as node:
        claimed(node.api, claim=dict(modes), volume=dict(modes))
        node.mount_pod(pod_with(claimed_volume(), name="first"), timeout=20)
        with pytest.raises(VolumesFailedError):
            node.mount_pod(pod_with(claimed_volume(), name="second"), timeout=20, attempts=1)
    volume = volume_of(explained("second"))
    assert "pod default/first, which has the volume; ReadWriteOncePod is for one pod" in volume.waits_for
    assert "end pod default/first: 'volumehost unmount first'" in volume.advice


def test_br84_an_unmount_that_failed_names_who_uses_the_mount_now(
    manager, bind, nfs, pod_with, explained, volume_of, here, until, kept
):
    with manager(bind(), enter=False) as node:
        (mounted,) = node.mount_pod(pod_with(nfs("v")), timeout=20).volumes
        holder = subprocess.Popen(["sleep", "60"], cwd=mounted.path)
        try:
            until(lambda: os.readlink(f"/proc/{holder.pid}/cwd") == mounted.path)
            kept(node, "web")
            node.__exit__(None, None, None)
            named = f"process {holder.pid} (sleep): working directory"
            until(lambda: any(named in line for line in volume_of(explained()).waits_for))
            told = explained()
        finally:
            holder.kill()
            holder.wait()
    assert (told.state, told.summary) == ("unmounting", "1 volume is still on the node")
    assert "run 'volumehost unmount web', or the agent: 'volumehost agent'" in told.advice
    volume = volume_of(told)
    assert (volume.direction, here(volume)) == ("unmount", "tear-down")


def test_br48_a_device_that_is_still_staged_is_told_of_the_pod_that_went(
    manager, disk, claimed, pod_with, claimed_volume, fails, explained, kept
):
    plugin = disk()
    with manager(plugin, enter=False) as node:
        claimed(node.api)
        node.mount_pod(pod_with(claimed_volume()), timeout=20)
        plugin.trouble["unmount_device"] = fails(OperationError("target is busy"))
        kept(node, "web")
    told = explained()
    (volume,) = [each for each in told.volumes if each.sequence]
    assert volume.state == "still mounted on the node"
    assert [point.name for point in volume.sequence if point.state == "here"] == ["unmount-device"]
    assert any("target is busy" in line for line in volume.error)


def test_br70_a_directory_that_cannot_be_removed_is_told(manager, bind, nfs, pod_with, explained, root):
    with manager(bind(), enter=False) as node:
        (mounted,) = node.mount_pod(pod_with(nfs("v")), timeout=20).volumes
        kept = f"{os.path.dirname(mounted.path)}/kept"
        os.mkdir(kept)
        open(f"{kept}/precious", "w").close()
        with pytest.raises(RemovalError):
            node.unmount_pod("web", timeout=20)
    told = explained()
    assert told.summary == "all volumes are unmounted"
    assert any("its directory to be removed" in line and "precious" in line for line in told.waits_for), told


def test_a_ready_pod_and_one_that_is_not_there(manager, bind, nfs, pod_with, explained):
    with manager(bind(), enter=False) as node:
        node.mount_pod(pod_with(nfs("v")), timeout=20)
    told = explained()
    assert told.lines() == ["pod default/web: all volumes are mounted"]
    with pytest.raises(ObjectNotFoundError, match="there is no pod default/other"):
        explained("other")


def test_a_pod_that_only_the_disk_knows_by_its_uid(manager, bind, nfs, pod_with, root, explained):
    with manager(bind(), enter=False) as node:
        status = node.mount_pod(pod_with(nfs("v")), timeout=20)
    for name in os.listdir(root):
        if name.startswith("store.sqlite3"):
            os.unlink(f"{root}/{name}")
    told = explain_recorded(root, None, "default", status.uid)
    assert (told.label, told.notes) == ("default/web", ("the pod is not in the API",))
    assert told.ready


def test_nothing_on_disk_changes(manager, bind, nfs, pod_with, fails, root, explained, snapshot):
    plugin = bind()
    plugin.trouble["set_up"] = fails(OperationError("away"))
    with manager(plugin, enter=False) as node, pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(nfs("v")), timeout=20, attempts=1)
    before = snapshot(root)
    explained()
    assert snapshot(root) == before


def test_of_a_pod_that_ends_what_was_never_mounted_is_gone(
    manager, bind, nfs, pod_with, claimed_volume, fails, explained, volume_of, kept
):
    good, bad = bind(), bind("example.com/bad")
    bad.sources = ("cephfs",)
    bad.trouble["set_up"] = fails(OperationError("away"))
    volumes = (nfs("v"), {"name": "keys", "cephfs": {"monitors": ["m"], "path": "/x"}}, claimed_volume("no", "no"))
    with manager(good, bad, enter=False) as node:
        with pytest.raises(VolumesFailedError):
            node.mount_pod(pod_with(*volumes), timeout=20, attempts=1)
        good.trouble["tear_down"] = fails(OperationError("busy"))
        kept(node, "web")
        live = _live(node)
    for told in (live, explained()):
        assert told.summary == "1 volume is still on the node"
        assert [volume.volume for volume in told.volumes if volume.sequence] == ["v"]
