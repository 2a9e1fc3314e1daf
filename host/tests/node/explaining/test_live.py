"""What a manager at work says of volumes that are not ready: BR-83 and what BR-53 wants to be seen."""

import os
import re
import subprocess
import threading

import pytest

from volumehost.errors import OperationError, VolumesFailedError
from volumehost.node.explaining.explanation import PodExplanation

pytestmark = pytest.mark.root


def _pod(node, name="web"):
    return next(status for status in node.status() if status.name == name)


def _explain(node, name="web"):
    from volumehost.api.objects import Pod

    return node.explain(node.api.get(Pod, name, "default"))


def test_br83_one_of_three_volumes_fails_and_everything_about_it_is_told(
    manager, bind, nfs, pod_with, volume_of, here, fails
):
    good, bad = bind(), bind("example.com/bad")
    bad.sources = ("cephfs",)
    bad.trouble["set_up"] = fails(OperationError("PERMISSION_DENIED: bad key"))
    node = manager(good, bad)
    keys = {"name": "keys", "cephfs": {"monitors": ["m"], "path": "/x"}}
    with pytest.raises(VolumesFailedError) as caught:
        node.mount_pod(pod_with(nfs("a"), keys, nfs("b")), timeout=20, attempts=2)
    told = _explain(node)
    assert (told.label, told.ready, told.live) == ("default/web", False, True)
    assert told.summary == "1 of 3 volumes is not mounted"
    volume = volume_of(told, "keys")
    assert (volume.state, volume.operation, volume.step, volume.attempts) == ("failed", "volume_mount", "set-up", 2)
    assert here(volume) == "set-up"
    assert any("PERMISSION_DENIED: bad key" in line for line in volume.error)
    assert volume.advice
    assert 0 <= volume.retry_in <= 1
    assert any(line.startswith("the next attempt, in") for line in volume.waits_for)
    assert [volume_of(told, name).sequence for name in "ab"] == [(), ()]
    # The error of the wait says the same.
    (detail,) = caught.value.details
    for line in ("volume keys (example.com/bad): failed, operation volume_mount, 2 attempts failed at step set-up",
                 "here     set it up for the pod", "PERMISSION_DENIED: bad key"):  # fmt: skip
        assert line in detail
    assert re.search(r"next retry in \d\.\d s", detail)


def test_a_pod_that_is_ready_needs_no_explanation(manager, bind, nfs, pod_with):
    node = manager(bind())
    node.mount_pod(pod_with(nfs("v"), nfs("w")), timeout=20)
    told = _explain(node)
    assert told.ready
    assert told.lines() == ["pod default/web: all volumes are mounted"]


def test_a_pod_without_volumes_uses_none(manager, bind, pod_with):
    node = manager(bind())
    node.mount_pod(pod_with(), timeout=20)
    assert _explain(node).summary == "no container uses a volume"


def test_it_survives_the_way_over_a_socket(manager, bind, nfs, pod_with, fails):
    plugin = bind()
    plugin.trouble["set_up"] = fails(OperationError("away"))
    node = manager(plugin)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(nfs("v")), timeout=20, attempts=1)
    told = _explain(node)
    assert PodExplanation.from_dict(told.to_dict()) == told
    assert told.to_dict()["volumes"][0]["uniqueName"].startswith("example.com/bind/")
    assert PodExplanation.from_dict({**told.to_dict(), "ofALaterVersion": 1}) == told


def test_no_plugin_for_the_volume(manager, bind, nfs, pod_with, volume_of, here):
    node = manager(bind())
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(nfs("v"), {"name": "x", "emptyDir": {}}), timeout=20)
    volume = volume_of(_explain(node), "x")
    assert here(volume) == "plugin"
    assert any("a volume plugin for it" in line for line in volume.waits_for)
    assert any("no volume plugin matched" in line for line in volume.error)
    assert any("pip" in line for line in volume.advice)


def test_two_plugins_for_the_volume(manager, bind, nfs, pod_with, volume_of, here):
    node = manager(bind(), bind("example.com/other"))
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(nfs("v")), timeout=20)
    volume = volume_of(_explain(node), "v")
    assert (here(volume), volume.waits_for) == ("plugin", ("that one plugin alone is for it",))
    assert any("multiple volume plugins matched: example.com/bind,example.com/other" in line for line in volume.error)
    assert any("VOLUMEHOST_PLUGINS_DISABLE" in line for line in volume.advice)


def test_br52_an_operation_that_hangs_is_told_with_its_age_and_where_it_is(
    manager, bind, nfs, pod_with, volume_of, here, until, unready
):
    gate, plugin = threading.Event(), bind()
    plugin.trouble["set_up"] = lambda: gate.wait(60)
    node = manager(plugin)
    unready(node, pod_with(nfs("v")), "operation volume_mount at step set-up")
    try:
        until(lambda: volume_of(_explain(node)).hangs)
        volume = volume_of(_explain(node))
        assert (volume.state, volume.step, volume.attempts) == ("mounting", "set-up", 0)
        assert here(volume) == "set-up"
        assert volume.age > 1
        assert any("test_live.py" in line for line in volume.hangs), volume.hangs
    finally:
        gate.set()


def test_another_operation_on_the_same_volume_is_what_it_waits_for(
    manager, disk, claimed, pod_with, claimed_volume, volume_of, until, unready
):
    gate, plugin = threading.Event(), disk()
    plugin.trouble["mount_device"] = lambda: gate.wait(60)
    node = manager(plugin)
    claimed(node.api)
    for name in ("one", "two"):
        unready(node, pod_with(claimed_volume(), name=name), "at step mount-device")
    try:
        waiting = [volume_of(_explain(node, name)) for name in ("one", "two")]
        running = [volume for volume in waiting if volume.age is not None]
        (other,) = [volume for volume in waiting if volume.age is None]
        assert len(running) == 1
        (line,) = other.waits_for
        assert re.search(
            r"operation volume_mount of pod default/(one|two) .* running for \d+\.\d s at step mount-device", line
        )
    finally:
        gate.set()
    until(lambda: all(status.ready for status in node.status()))


def test_br42_a_volume_for_one_pod_names_the_pod_that_has_it(
    manager, bind, claimed, pod_with, claimed_volume, volume_of, here
):
    node = manager(bind())
    modes = {"accessModes": ["ReadWriteOncePod"]}
    claimed(node.api, claim=dict(modes), volume=dict(modes))
    node.mount_pod(pod_with(claimed_volume(), name="first"), timeout=20)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(claimed_volume(), name="second"), timeout=20, attempts=1)
    volume = volume_of(_explain(node, "second"))
    assert here(volume) == "check"
    assert any(line.startswith("pod default/first, which has the volume") for line in volume.waits_for)
    assert "end pod default/first: 'volumehost unmount first'" in volume.advice


def test_a_claim_that_is_not_there(manager, bind, pod_with, claimed_volume, volume_of, here):
    node = manager(bind())
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(claimed_volume("absent")), timeout=20, attempts=1)
    volume = volume_of(_explain(node))
    assert here(volume) == "claim"
    assert volume.source == "claim default/absent"
    assert "its claim default/absent, which is not there" in volume.waits_for
    assert any("volumehost apply" in line for line in volume.advice)


def test_a_claim_that_the_controllers_cannot_provision_has_their_own_words(
    manager, bind, claimed, pod_with, claimed_volume, volume_of, here, unready
):
    node = manager(bind())
    node.api.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
                     "provisioner": "csi.example.com"})  # fmt: skip
    node.api.create(_claim("data", "fast"))
    caught = unready(node, pod_with(claimed_volume("data")), "this host has no driver csi.example.com")
    volume = volume_of(_explain(node))
    assert here(volume) == "provision"
    assert volume.attempts >= 1
    assert any("this host has no driver csi.example.com" in line for line in volume.error)
    assert any("volumehost drivers register" in line for line in volume.advice)
    assert any(line.startswith("its claim default/data, which is Pending") for line in volume.waits_for)
    assert "this host has no driver csi.example.com" in caught.value.details[0]
    assert "PVC is not bound" not in caught.value.details[0]


def _claim(name, storage_class):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def test_br84_an_unmount_names_the_process_that_keeps_it_busy(
    manager, bind, nfs, pod_with, volume_of, here, until, kept
):
    node = manager(bind())
    (mounted,) = node.mount_pod(pod_with(nfs("v")), timeout=20).volumes
    holder = subprocess.Popen(["sleep", "60"], cwd=mounted.path)
    try:
        until(lambda: os.readlink(f"/proc/{holder.pid}/cwd") == mounted.path)
        caught = kept(node, "web")
        told = _explain(node)
        assert (told.state, told.summary) == ("unmounting", "1 volume is still on the node")
        volume = volume_of(told)
        assert (volume.direction, here(volume)) == ("unmount", "tear-down")
        assert "here     unmount it from the pod" in caught.value.details[0]
        # On a busy machine the search may run out of time.
        named = f"process {holder.pid} (sleep): working directory"
        until(lambda: any(named in line for line in volume_of(_explain(node)).waits_for))
        until(lambda: any(f"process {holder.pid}" in line for line in volume_of(_explain(node)).advice))
    finally:
        holder.kill()
        holder.wait()
    until(lambda: node.status() == [])


def test_br48_a_volume_that_is_only_on_the_node_still_is_told_of_its_pod(
    manager, disk, claimed, pod_with, claimed_volume, fails, kept
):
    plugin = disk()
    node = manager(plugin)
    claimed(node.api)
    node.mount_pod(pod_with(claimed_volume()), timeout=20)
    plugin.trouble["detach"] = fails(OperationError("INTERNAL: try again"))
    kept(node, "web")
    told = _explain(node)
    (volume,) = [each for each in told.volumes if each.sequence]
    assert (volume.volume, volume.state) == ("pv-claim", "still attached to the node")
    assert [point.name for point in volume.sequence if point.state == "here"] == ["detach"]
    assert any("INTERNAL: try again" in line for line in volume.error)


def test_br51_a_pod_that_is_only_marked_for_deletion_waits_for_the_word_that_its_workload_ended(
    manager, bind, nfs, pod_with
):
    from volumehost.api.objects import Pod

    node = manager(bind())
    node.mount_pod(pod_with(nfs("v")), timeout=20)
    node.api.delete(Pod, "web", "default")
    told = _explain(node)
    assert told.summary == "all volumes are mounted"
    assert any("its workload has ended" in line for line in told.waits_for)
    assert told.advice == ("'volumehost unmount web' says that it has ended",)


def test_a_pod_that_nobody_asked_this_manager_for(manager, bind, nfs, pod_with, volume_of, here):
    from volumehost.node.populating.pod_objects import apply_pod

    node = manager(bind())
    apply_pod(node.api, pod_with(nfs("v")))
    volume = volume_of(_explain(node))
    assert volume.state == "not-mounted"
    assert any("was not told to mount the pod" in line for line in volume.waits_for)


def test_br53_a_backoff_shows_its_attempts_and_its_next_one(manager, bind, nfs, pod_with, volume_of, fails, until):
    plugin = bind()
    plugin.trouble["set_up"] = fails(OperationError("away"))
    node = manager(plugin)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(nfs("v")), timeout=20, attempts=2)
    volume = volume_of(_explain(node))
    assert volume.attempts == 2
    assert 0 < volume.retry_in <= 1
    del plugin.trouble["set_up"]
    until(lambda: _pod(node).ready)
    assert _explain(node).ready


def test_br15_a_plugin_that_went_is_named_with_its_distribution(manager, bind, nfs, pod_with, volume_of, here, kept):
    """What is mounted is left alone until its plugin is back; what is to be unmounted waits for it."""
    with manager(bind(), enter=False) as node:
        node.mount_pod(pod_with(nfs("v")), timeout=20)
        journal = node._now.parts.services.journal
        uid = _pod(node).uid
        (volume,) = [name for name, _ in journal.keys_of_pod(uid)]
        journal.note({"v": volume, "p": uid, "dist": "acme-bind", "ver": "1.2", "state": "uncertain"})
    node = manager()
    told = volume_of(_explain(node))
    assert (told.state, here(told)) == ("waiting", "plugin")
    assert "its volume plugin example.com/bind, of acme-bind 1.2, which is not there" in told.waits_for
    assert "install it again: pip install acme-bind==1.2" in told.advice
    caught = kept(node, "web", "no volume plugin matched name")
    gone = volume_of(_explain(node))
    assert (gone.direction, here(gone)) == ("unmount", "subpaths")
    assert any("no volume plugin matched name" in line for line in gone.error)
    assert "install it again: pip install acme-bind==1.2" in gone.advice
    assert "acme-bind==1.2" in caught.value.details[0]


def test_a_mounted_volume_that_could_not_be_refreshed_is_ready_and_told(
    manager, bind, nfs, pod_with, volume_of, fails, until
):
    plugin = bind()
    plugin.remount = True
    node = manager(plugin)
    node.mount_pod(pod_with(nfs("v")), timeout=20)
    plugin.trouble["set_up"] = fails(OperationError("the token has expired", hint="renew it"))
    node.mount_pod(pod_with(nfs("v")), timeout=20)
    until(lambda: volume_of(_explain(node)).error)
    told = _explain(node)
    assert (told.ready, told.summary) == (True, "all volumes are mounted")
    volume = volume_of(told)
    assert (volume.sequence, volume.advice) == ((), ("renew it",))
    text = "\n".join(told.lines())
    assert "the token has expired" in text
    assert "what to do: renew it" in text
    assert "the others" not in text


def test_br15_what_belongs_to_no_known_pod_is_left_alone_and_says_why(manager, bind, nfs, pod_with, volume_of, root):
    with manager(bind(), enter=False) as node:
        node.mount_pod(pod_with(nfs("v")), timeout=20)
        journal, uid = node._now.parts.services.journal, _pod(node).uid
        journal.note(*({"v": name, "p": uid, "state": "uncertain"} for name, _ in journal.keys_of_pod(uid) if name))
    for name in os.listdir(root):
        if name.startswith("store.sqlite3"):
            os.unlink(f"{root}/{name}")
    node = manager(bind(), told_pods=True)
    (status,) = node.status()
    told = node.explain(status)
    assert (told.label, told.notes) == ("default/web", ("the pod is not in the API",))
    assert volume_of(told).waits_for == ("the list of all pods: before that is known, nothing is unmounted",)
    node.set_known_pods([])
