"""Attaching what pods on managed nodes want, and keeping it attached."""

from __future__ import annotations

from fake_disks import PLUGIN

from volumehost.api.objects import Node
from volumehost.control.attach_detach.maybe_attached import read_marks
from volumehost.errors import OperationError, TransientOperationError


def test_what_a_pod_wants_is_attached_and_stands_in_the_nodes_status(cluster) -> None:
    """ADC-10, ADC-44, ADC-45, ATTACH-02."""
    cluster.node("n1")
    cluster.volume("d1")
    cluster.start()
    cluster.pod("web", "n1", "d1")
    cluster.wait_listed("n1", "d1")
    assert cluster.listed("n1") == {"d1": "/dev/d1"}
    cluster.wait(lambda: bool(cluster.events("SuccessfulAttachVolume")), "an event")
    event = cluster.events("SuccessfulAttachVolume")[0]
    assert event.message == 'AttachVolume.Attach succeeded for volume "d1"'
    assert event.involved_object.name == "web"
    assert event.source.component == "attachdetach-controller"
    cluster.settle()
    assert not read_marks(cluster.api.get(Node, "n1"))


def test_a_claim_that_is_bound_later_is_attached_then(cluster) -> None:
    """ADC-13."""
    cluster.node("n1")
    cluster.start()
    cluster.pod("web", "n1", "d1")
    cluster.settle()
    assert cluster.disks.calls == []
    cluster.volume("d1")
    cluster.wait_listed("n1", "d1")


def test_a_node_that_attaches_for_itself_is_left_alone(cluster) -> None:
    """ADC-02: without the annotation nobody but the node attaches; with it from then on."""
    cluster.node("n1", managed=False)
    cluster.volume("d1")
    cluster.start()
    cluster.pod("web", "n1", "d1")
    cluster.settle()
    assert cluster.disks.calls == []
    cluster.api.patch(
        Node, "n1", {"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
    )
    cluster.wait_listed("n1", "d1")


def test_two_pods_of_a_node_share_one_attachment(cluster) -> None:
    cluster.node("n1")
    cluster.volume("d1")
    cluster.pod("one", "n1", "d1")
    cluster.pod("two", "n1", "d1")
    cluster.start()
    cluster.wait_listed("n1", "d1")
    cluster.end("one")
    cluster.settle()
    assert cluster.disks.calls == [("attach", "d1", "n1")]
    cluster.end("two")
    cluster.wait(lambda: not cluster.disks.attached["d1"], "the detach")
    assert cluster.disks.calls[1:] == [("detach", "d1", "n1")]


def test_another_node_gets_it_when_the_first_has_let_go_and_is_told_why_it_waits(cluster) -> None:
    """ADC-41, ADC-42: the pods of its own namespace that have it are named, those of others counted."""
    cluster.node("n1")
    cluster.node("n2")
    cluster.volume("d1")
    cluster.pod("old", "n1", "d1")
    cluster.start()
    cluster.wait_listed("n1", "d1")
    cluster.uses("n1", "d1")
    cluster.pod("new", "n2", "d1")
    cluster.wait(lambda: bool(cluster.events("FailedAttachVolume")), "the event")
    event = cluster.events("FailedAttachVolume")[0]
    assert event.message == 'Multi-Attach error for volume "d1" Volume is already used by pod(s) old'
    assert event.involved_object.name == "new"
    cluster.end("old")
    cluster.settle()
    assert cluster.disks.calls == [("attach", "d1", "n1")], "it is in use still"
    cluster.uses("n1")
    cluster.wait_listed("n2", "d1")
    assert cluster.disks.calls == [("attach", "d1", "n1"), ("detach", "d1", "n1"), ("attach", "d1", "n2")]
    assert cluster.listed("n1") == {}


def test_adc_43_a_pod_that_comes_later_is_told_again_why_it_waits(cluster) -> None:
    cluster.node("n1")
    cluster.node("n2")
    cluster.volume("d1")
    cluster.pod("old", "n1", "d1")
    plane = cluster.start()
    cluster.wait_listed("n1", "d1")
    for name in ("new", "newer"):
        cluster.pod(name, "n2", "d1")
        told = lambda name=name: [e for e in cluster.events("FailedAttachVolume") if e.involved_object.name == name]  # noqa: E731
        cluster.wait(lambda told=told: bool(told()), f"the event of {name}")
        cluster.end(name)
        cluster.wait(lambda: len(plane.world.wishes.pairs()) == 1, "nobody to want it there")
        cluster.settle()


def test_what_may_be_shared_is_attached_to_several_nodes(cluster) -> None:
    """UTIL-20."""
    cluster.node("n1")
    cluster.node("n2")
    cluster.volume("d1", ("ReadWriteMany",))
    cluster.pod("one", "n1", "d1")
    cluster.pod("two", "n2", "d1")
    cluster.start()
    cluster.wait_listed("n1", "d1")
    cluster.wait_listed("n2", "d1")


def test_two_nodes_that_want_it_at_once_do_not_get_it_both(cluster) -> None:
    cluster.node("n1")
    cluster.node("n2")
    cluster.volume("d1")
    cluster.disks.may_attach.clear()
    cluster.pod("one", "n1", "d1")
    cluster.pod("two", "n2", "d1")
    cluster.start()
    assert cluster.disks.reached.wait(30)
    cluster.disks.may_attach.set()
    cluster.wait(lambda: bool(cluster.listed("n1")) or bool(cluster.listed("n2")), "one of them to have it")
    cluster.settle()
    assert len(cluster.disks.calls) == 1


def test_a_failure_is_told_to_the_pod_and_tried_again(cluster) -> None:
    cluster.node("n1")
    cluster.volume("d1")
    cluster.disks.errors = [OperationError("the disk is on fire")]
    cluster.pod("web", "n1", "d1")
    cluster.start()
    cluster.wait_listed("n1", "d1")
    cluster.wait(lambda: bool(cluster.events("FailedAttachVolume")), "the event")
    message = cluster.events("FailedAttachVolume")[0].message
    assert message == 'AttachVolume.Attach failed for volume "d1" : the disk is on fire'


def test_what_failed_may_be_attached_and_is_detached_when_nobody_wants_it(cluster) -> None:
    """BR-47: an attach that failed in the middle leads to a detach; one that did nothing at all does not."""
    cluster.node("n1")
    cluster.volume("d1")
    cluster.disks.errors = [OperationError("it took too long")] * 1000
    cluster.pod("web", "n1", "d1")
    cluster.start()
    cluster.wait(lambda: bool(cluster.disks.calls), "the call")
    cluster.end("web")
    cluster.wait(lambda: ("detach", "d1", "n1") in cluster.disks.calls, "the detach")
    cluster.disks.errors.clear()
    cluster.disks.calls.clear()
    cluster.disks.errors = [TransientOperationError("nothing was begun")] * 1000
    cluster.volume("d2")
    cluster.pod("web2", "n1", "d2")
    cluster.wait(lambda: ("attach", "d2", "n1") in cluster.disks.calls, "the call")
    cluster.end("web2")
    cluster.settle()
    assert ("detach", "d2", "n1") not in cluster.disks.calls


def test_what_somebody_else_detached_is_attached_again(cluster) -> None:
    """ADC-52: when it is looked at next, here since the controller starts anew."""
    cluster.node("n1")
    cluster.volume("d1")
    cluster.pod("web", "n1", "d1")
    cluster.start()
    cluster.wait_listed("n1", "d1")
    cluster.stop()
    cluster.disks.attached.clear()
    cluster.start()
    cluster.wait(lambda: cluster.disks.calls.count(("attach", "d1", "n1")) == 2, "the second attach")


def test_what_was_taken_from_the_nodes_status_is_put_back(cluster) -> None:
    """A node object that is made anew under its name has a status without volumes."""
    cluster.node("n1")
    cluster.volume("d1")
    cluster.pod("web", "n1", "d1")
    cluster.start()
    cluster.wait_listed("n1", "d1")
    cluster.api.delete(Node, "n1")
    cluster.node("n1")
    cluster.wait_listed("n1", "d1")
    assert cluster.disks.calls == [("attach", "d1", "n1")]


def test_a_foreign_entry_in_the_status_does_not_stay(cluster) -> None:
    from volumehost.api.objects import AttachedVolume
    from volumehost.control.writes import update_status

    cluster.node("n1")
    cluster.start()
    cluster.settle()

    def change(node: Node) -> None:
        node.status.volumes_attached = [AttachedVolume(name=f"{PLUGIN}/other", device_path="/dev/x")]

    update_status(cluster.api, cluster.api.get(Node, "n1"), change)
    cluster.wait_listed("n1")
