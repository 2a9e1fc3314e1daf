"""BR-48, BR-83: a pod that has ended, and whose volume is not off the node: status and explanation tell it alike."""

import os

import pytest

from volumehost.api.objects import NFSVolumeSource, ObjectMeta, PersistentVolume, PersistentVolumeSpec
from volumehost.errors import OperationError
from volumehost.node.explaining.explain import explain_recorded
from volumehost.node.explaining.live_kinds import LiveKinds
from volumehost.node.state.records import AttachedVolume
from volumehost.node.state.states import Attachability
from volumehost.node.status.recorded import read_status
from volumehost.spec import Spec

pytestmark = pytest.mark.root


def test_status_tells_of_a_device_that_is_still_staged(
    manager, disk, claimed, pod_with, claimed_volume, fails, root, kept
):
    plugin = disk()
    with manager(plugin, enter=False) as node:
        claimed(node.api)
        node.mount_pod(pod_with(claimed_volume()), timeout=20)
        plugin.trouble["unmount_device"] = fails(OperationError("target is busy"))
        kept(node, "web")
        (live,) = node.status()
    (recorded,) = read_status(os.fspath(root)).pods
    for status in (live, recorded):
        assert status.state == "unmounting"
        assert "still " in status.note
        assert "on the node" in status.note
        assert "target is busy" in status.note
        assert [volume.state for volume in status.volumes] == ["not-mounted"]
    told = explain_recorded(root, None, "default", "web")
    assert "run 'volumehost unmount web', or the agent: 'volumehost agent'" in told.advice


def test_a_device_whose_record_goes_while_it_is_looked_at_is_told_all_the_same(manager, disk):
    """The spec of a volume is read from the journal, where another thread may have let it go a moment later."""
    node = manager(disk())
    source = NFSVolumeSource("s", "/p")
    volume = PersistentVolume(metadata=ObjectMeta(name="pv"), spec=PersistentVolumeSpec(nfs=source))
    spec, answers = Spec.from_persistent_volume(volume, False), []
    known = AttachedVolume("example.com/disk/x", "example.com/disk", lambda _name: answers.pop(), Attachability.TRUE)
    answers[:] = [None, spec]
    assert node.parts.status.of_device(known).volume == "pv"
    answers[:] = [None, spec]
    assert LiveKinds(node.parts).of_device(known).persistent_volume == "pv"


def test_a_pod_that_has_ended_and_is_gone_has_no_such_note(manager, disk, claimed, pod_with, claimed_volume, root):
    with manager(disk(), enter=False) as node:
        claimed(node.api)
        node.mount_pod(pod_with(claimed_volume()), timeout=20)
        assert [status.note for status in node.status()] == [""]
        node.unmount_pod("web", timeout=20)
        assert node.status() == []
    assert read_status(os.fspath(root)).pods == ()
