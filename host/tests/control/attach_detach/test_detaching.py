"""Detaching: never from a node that uses the volume, unless that node is beyond help."""

from __future__ import annotations

import threading

import pytest

from volumehost.api.objects import Node
from volumehost.errors import OperationError


@pytest.fixture
def attached(cluster):
    """A pod on node n1 with disk d1, which the node uses; no controller runs."""
    cluster.node("n1")
    cluster.node("n2")
    cluster.volume("d1")
    cluster.pod("web", "n1", "d1")
    cluster.start()
    cluster.wait_listed("n1", "d1")
    cluster.uses("n1", "d1")
    cluster.settle()
    cluster.stop()
    return cluster


def detached(cluster) -> bool:
    return ("detach", "d1", "n1") in cluster.disks.calls


def test_not_while_a_healthy_node_uses_it_however_long_that_is(attached) -> None:
    """ADC-30, ADC-32: the time limit is over at once, and means nothing for a healthy node."""
    attached.start(max_wait=0.0)
    attached.end("web")
    attached.settle()
    assert not detached(attached)
    assert attached.listed("n1") == {"d1": "/dev/d1"}
    attached.uses("n1")
    attached.wait(lambda: detached(attached), "the detach")
    assert attached.listed("n1") == {}


def test_from_an_unhealthy_node_when_its_time_is_over(attached) -> None:
    """ADC-30: force-detach."""
    attached.start(max_wait=0.0)
    attached.ready("n1", False)
    attached.end("web")
    attached.wait(lambda: detached(attached), "the forced detach")


def test_not_from_an_unhealthy_node_before(attached) -> None:
    attached.start(max_wait=3600.0)
    attached.ready("n1", False)
    attached.end("web")
    attached.settle()
    assert not detached(attached)


def test_from_a_node_out_of_service_at_once_even_where_forcing_is_off(attached) -> None:
    """ADC-34: the taint works though the timeout is off."""
    attached.start(max_wait=None)
    attached.ready("n1", False)
    attached.end("web")
    attached.settle()
    assert not detached(attached)
    attached.taint("n1")
    attached.wait(lambda: detached(attached), "the detach")


def test_from_a_node_that_is_gone_when_its_time_is_over(attached) -> None:
    attached.start(max_wait=0.0)
    attached.settle()
    attached.api.delete(Node, "n1")
    attached.settle()
    assert not detached(attached), "a pod wants it there still"
    attached.end("web")
    attached.wait(lambda: detached(attached), "the detach")


def test_it_leaves_the_nodes_status_before_it_is_detached(attached) -> None:
    """ADC-33: the node cannot begin to mount it in the meantime."""
    attached.disks.errors = [OperationError("not now")] * 1000
    attached.start()
    attached.uses("n1")
    attached.end("web")
    attached.wait(lambda: detached(attached), "the first try")
    attached.wait_listed("n1")
    attached.disks.errors.clear()
    attached.wait(lambda: not attached.disks.attached["d1"], "the detach")


def test_a_pod_that_comes_back_keeps_it(attached) -> None:
    plane = attached.start()
    attached.end("web")
    attached.wait(lambda: plane.world.ready and not plane.world.wishes.pairs(), "nobody to want it")
    attached.pod("again", "n1", "d1")
    attached.wait(lambda: bool(plane.world.wishes.pairs()), "somebody to want it")
    attached.uses("n1")
    attached.settle()
    assert not detached(attached)
    assert attached.listed("n1") == {"d1": "/dev/d1"}


def test_a_pod_of_which_it_never_becomes_known_what_it_wants_keeps_nothing_for_ever(attached, monkeypatch) -> None:
    """BR-52: a plugin that always fails for one volume is no reason to keep all others of the node."""
    from volumehost.control.attach_detach import detaching

    attached.disks.nameless.add("bad")
    attached.volume("bad")
    attached.pod("other", "n1", "bad")
    plane = attached.start()
    attached.wait(lambda: plane.world.wishes.is_unclear("n1"), "the failure")
    attached.end("web")
    attached.uses("n1")
    attached.settle()
    assert not detached(attached), "it may be the other pod's"
    monkeypatch.setattr(detaching, "UNCLEAR_SECONDS", 0.0)
    attached.uses("n1", "something")
    attached.wait(lambda: detached(attached), "the detach")


def test_a_pod_whose_end_was_told_to_nobody(attached) -> None:
    """ADC-12: it went between two watches. It is looked at from time to time, all the same."""
    from volumehost.control.attach_detach.pods import LOOK_SECONDS, PodWishes
    from volumehost.control.machinery.controller import Key

    plane = attached.start()
    attached.wait(lambda: plane.world.ready, "the start")
    wish = plane.world.wishes.get(plane.world.wishes.pairs()[0])
    volumes = {plane.world.wishes.pairs()[0].volume: wish.wanted}
    looks = PodWishes(plane.world)
    assert looks.reconcile(Key("web", "default")) == LOOK_SECONDS
    gone = Key("gone", "default")
    plane.world.wishes.put(gone, "uid", "n1", volumes, complete=True)
    attached.uses("n1")
    attached.end("web")
    attached.wait(lambda: Key("web", "default") not in plane.world.wishes.pods(), "the pod to be forgotten")
    assert not detached(attached)
    assert looks.reconcile(gone) is None
    attached.wait(lambda: detached(attached), "the detach")


def test_a_pod_that_has_ended_is_no_reason_to_keep_it(attached) -> None:
    """UTIL-15."""
    from volumehost.api.objects import Pod
    from volumehost.control.writes import update_status

    attached.start()

    def change(pod: Pod) -> None:
        pod.status.phase = "Succeeded"

    update_status(attached.api, attached.api.get(Pod, "web", "default"), change)
    attached.uses("n1")
    attached.wait(lambda: detached(attached), "the detach")


def test_what_was_attached_before_a_restart_and_is_not_wanted_any_more_is_detached(attached) -> None:
    """BR-47, ADC-02: the state comes from the node's status."""
    attached.end("web")
    attached.uses("n1")
    attached.start()
    attached.wait(lambda: detached(attached), "the detach")
    attached.wait_listed("n1")


def test_an_attach_in_whose_midst_the_controller_died_is_undone_by_the_next(cluster) -> None:
    """BR-47: it stands on the node before the plugin is asked."""
    cluster.node("n1")
    cluster.volume("d1")
    cluster.disks.may_attach.clear()
    cluster.pod("web", "n1", "d1")
    first = cluster.start()
    assert cluster.disks.reached.wait(30)
    first.plane.stop(0.0)  # as good as killed
    cluster.planes.clear()
    hangs, cluster.disks.may_attach = cluster.disks.may_attach, threading.Event()
    cluster.disks.may_attach.set()
    cluster.end("web")
    cluster.start()
    cluster.wait(lambda: detached(cluster), "the detach")
    cluster.stop()
    hangs.set()
    assert first.plane.stop(20.0)


def test_detaching_is_tried_until_it_works_whatever_comes_of_it(attached) -> None:
    """BR-48: no error counts as success, and what has no users becomes free by itself."""
    attached.disks.errors = [OperationError("INTERNAL"), RuntimeError("a plugin may raise anything")]
    attached.end("web")
    attached.uses("n1")
    attached.start()
    attached.wait(lambda: not attached.disks.attached["d1"], "the detach")
    assert attached.disks.calls.count(("detach", "d1", "n1")) == 3


def test_what_needs_no_attaching_any_more_is_detached(attached) -> None:
    """BR-49, IDENT-06: whether a volume is attached can change while it is."""
    attached.disks.attachable = False
    attached.uses("n1")
    attached.start()
    attached.wait(lambda: detached(attached), "the detach")


def test_nothing_is_taken_from_a_node_whose_pods_cannot_be_told(attached) -> None:
    """A plugin or a cache that cannot answer is no word that a volume is unwanted."""
    attached.disks.attachable = Unknown()
    attached.uses("n1")
    attached.start()
    attached.settle()
    assert not detached(attached)
    attached.end("web")
    attached.wait(lambda: detached(attached), "the detach")


class Unknown:
    def __bool__(self) -> bool:
        raise OperationError("the drivers cannot be listed yet")
