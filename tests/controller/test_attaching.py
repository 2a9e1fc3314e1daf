"""CSI volumes in a cluster: attached and detached through VolumeAttachments that somebody else fulfils."""

from __future__ import annotations

import pytest

from volumehost.control.cluster import CONTROLLERS, SIDECARS
from volumehost.controller.settings import DEFAULT_CONTROLLERS, chosen_controllers


def test_bound_attached_and_detached(cluster, wait) -> None:
    """The binder binds; attach/detach makes the VolumeAttachment, tells the node and waits for the end of its use."""
    cluster.node()
    cluster.driver()
    cluster.volume()
    cluster.pod()
    cluster.start()
    wait(lambda: cluster.attached() == ["data"], "the attachment")
    claim = cluster.objects.get("persistentvolumeclaims", "data", "default")
    assert claim["status"]["phase"] == "Bound"
    (attachment,) = cluster.attachments()
    assert attachment["spec"] == {
        "attacher": "csi.example.com",
        "nodeName": "n1",
        "source": {"persistentVolumeName": "data"},
    }
    assert wait(lambda: cluster.events("SuccessfulAttachVolume"), "the event")
    cluster.uses("n1", "data")
    cluster.end_pod()
    cluster.uses("n1")
    wait(lambda: not cluster.attachments(), "the detach")
    assert cluster.attached() == []


def test_an_attach_without_an_answer_survives_a_restart_and_is_undone(cluster, wait) -> None:
    """BR-47: nobody fulfils it, its pod goes, the controller goes; the next one deletes it."""
    cluster.attacher.works = False
    cluster.node()
    cluster.driver()
    cluster.volume()
    cluster.pod()
    cluster.start()
    wait(cluster.attachments, "the VolumeAttachment")
    assert cluster.attached() == []
    cluster.stop()
    cluster.end_pod()
    cluster.start()
    wait(lambda: not cluster.attachments(), "its end")


def test_what_its_attacher_reports_is_told_and_waited_for(cluster, wait) -> None:
    cluster.attacher.error = "no such disk"
    cluster.node()
    cluster.driver()
    cluster.volume()
    cluster.pod()
    cluster.start()
    event = wait(lambda: cluster.events("FailedAttachVolume"), "the event")[0]
    assert "no such disk" in event["message"]
    cluster.attacher.error = ""
    wait(lambda: cluster.attached() == ["data"], "the attachment")


def test_a_driver_that_turns_out_not_to_attach_leaves_no_phantom(cluster, wait) -> None:
    """BR-49: the CSIDriver object comes after the pod, and says that nothing is attached."""
    cluster.attacher.works = False
    cluster.node()
    cluster.volume()
    cluster.pod()
    cluster.start()
    wait(cluster.attachments, "the VolumeAttachment of a driver that nobody has told of")
    cluster.driver(attach=False)
    wait(lambda: not cluster.attachments(), "its end")


def test_nothing_is_attached_while_drivers_cannot_be_seen(cluster, wait) -> None:
    """BR-49: "not in the cache" is not "does not exist"."""
    user = "system:serviceaccount:x:blind"
    cluster.node()
    cluster.driver(attach=False)
    cluster.volume()
    cluster.pod()
    with (
        cluster.server.deny(user=user, verb="list", resource="csidrivers"),
        cluster.server.deny(user=user, verb="get", resource="csidrivers"),
    ):
        daemon = cluster.start(cluster.settings(user=user))
        work = wait(lambda: daemon.work, "the work")
        wait(lambda: work.failures().get("attach-detach pods"), "the pod to be waited for")
        problem = wait(lambda: next((text for text in work.problems() if "CSIDriver" in text), ""), "a word on why")
        assert "list csidrivers" in problem
        claim = wait(lambda: cluster.objects.get("persistentvolumeclaims", "data", "default"), "the claim")
        assert claim["status"]["phase"] == "Bound", "other controllers work on"
        assert not cluster.attachments()


def test_two_pods_on_two_nodes_follow_one_another(cluster, wait) -> None:
    """ADC-41, -42: the second waits, is told who has the volume, and gets it."""
    cluster.node("n1")
    cluster.node("n2")
    cluster.driver()
    cluster.volume()
    cluster.pod("old", "n1")
    cluster.start()
    wait(lambda: cluster.attached("n1") == ["data"], "the first")
    cluster.pod("new", "n2")
    event = wait(lambda: cluster.events("FailedAttachVolume"), "the event")[0]
    assert "Multi-Attach error" in event["message"]
    assert "used by pod(s) old" in event["message"]
    cluster.end_pod("old")
    wait(lambda: cluster.attached("n2") == ["data"], "the second")
    assert cluster.attached("n1") == []


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([], DEFAULT_CONTROLLERS),
        (["*"], DEFAULT_CONTROLLERS),
        (["binder"], {"binder"}),
        (["-binder"], DEFAULT_CONTROLLERS - {"binder"}),
        (["*", "csi-attacher", "-expander"], DEFAULT_CONTROLLERS - {"expander"} | {"csi-attacher"}),
    ],
)
def test_controllers_are_chosen_as_kubernetes_does(words, chosen) -> None:
    assert chosen_controllers(words) == chosen


def test_the_sidecars_work_is_theirs_unless_asked_for() -> None:
    assert DEFAULT_CONTROLLERS.isdisjoint(SIDECARS)
    assert chosen_controllers([], sidecars=True) == frozenset(CONTROLLERS)


def test_an_unknown_controller_is_told_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean attach-detach"):
        chosen_controllers(["attachdetach"])
