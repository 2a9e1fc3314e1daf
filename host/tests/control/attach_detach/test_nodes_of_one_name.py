"""Nodes that change hands or come again under their name: what is attached there is neither forgotten nor torn away."""

from __future__ import annotations

from typing import Any

import pytest
from fake_disks import PLUGIN

from volumehost.api.objects import AttachedVolume, Node
from volumehost.control.attach_detach.nodes import MANAGED
from volumehost.control.attach_detach.world import AttachDetachSettings
from volumehost.control.cluster import ATTACH_DETACH, ClusterControl, ClusterPlane
from volumehost.control.writes import update_status


@pytest.fixture
def attached(cluster):
    """A pod on node n1 with disk d1, and a controller at work."""
    cluster.node("n1")
    cluster.volume("d1")
    cluster.pod("web", "n1", "d1")
    cluster.start()
    cluster.wait_listed("n1", "d1")
    cluster.settle()
    return cluster


def managed(cluster, *, by_controller: bool) -> None:
    annotations = {MANAGED: "true" if by_controller else None}
    cluster.api.patch(Node, "n1", {"metadata": {"annotations": annotations}})


def test_adc_02_what_is_attached_to_a_node_that_is_ours_again_is_detached_when_nobody_wants_it(attached) -> None:
    """Without the annotation the node does it by itself; its pod goes meanwhile; then it is the controller's again."""
    plane = attached.planes[-1]
    managed(attached, by_controller=False)
    attached.wait(lambda: not plane.world.attachments.pairs(), "it to be the node's own")
    attached.end("web")
    attached.settle()
    managed(attached, by_controller=True)
    attached.wait(lambda: not attached.disks.attached["d1"], "the detach")
    attached.wait_listed("n1")


def test_adc_02_and_what_a_pod_wants_there_stays_attached_all_the_while(attached) -> None:
    plane = attached.planes[-1]
    managed(attached, by_controller=False)
    attached.wait(lambda: not plane.world.attachments.pairs(), "it to be the node's own")
    attached.settle()
    managed(attached, by_controller=True)
    attached.wait(lambda: bool(plane.world.attachments.pairs()), "it to be the controller's")
    attached.settle()
    assert attached.listed("n1") == {"d1": "/dev/d1"}
    assert not [call for call in attached.disks.calls if call[0] == "detach"]


def test_adc_02_a_node_that_comes_with_attached_volumes(attached) -> None:
    """The list in its status is not simply cleared."""
    attached.disks.attached["d2"] = {"n2"}
    attached.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}})

    def change(node: Node) -> None:
        node.status.volumes_attached = [AttachedVolume(name=f"{PLUGIN}/d2", device_path="/dev/d2")]

    update_status(attached.api, attached.api.get(Node, "n2"), change)
    attached.settle()
    attached.api.patch(Node, "n2", {"metadata": {"annotations": {MANAGED: "true"}}})
    attached.wait(lambda: not attached.disks.attached["d2"], "the detach")
    attached.wait_listed("n2")


def test_br_78_a_node_made_anew_may_be_another_machine(attached) -> None:
    """What is believed to be attached to it is asked for at once, not at the next look."""
    attached.disks.attached.clear()
    attached.api.delete(Node, "n1")
    attached.node("n1")
    attached.wait(lambda: attached.disks.calls == [("attach", "d1", "n1")] * 2, "the disk to be attached to that one")
    attached.wait_listed("n1", "d1")


class OldView:
    """An API whose cache of nodes hears nothing any more."""

    def __init__(self, api: Any, node: Node) -> None:
        self._api, self._node = api, node

    def get(self, kind: type[Any], name: str, namespace: str = "") -> Any:
        return self._node if kind is Node else self._api.get(kind, name, namespace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)


def test_adc_32_no_force_on_an_old_view_of_a_node(attached) -> None:
    """It was unhealthy when it was last heard of; it has been well for long, and uses the volume."""
    attached.stop()
    attached.uses("n1", "d1")
    attached.ready("n1", False)
    seen = attached.api.get(Node, "n1")
    attached.ready("n1", True)
    attached.end("web")
    control = ClusterControl(frozenset({ATTACH_DETACH}), attach_detach=AttachDetachSettings(max_wait_for_unmount=0.0))
    view: Any = OldView(attached.api, seen)
    plane = ClusterPlane(view, attached.api, attached.plugins, control, first_delay=0.05)
    plane.plane.start()
    attached.planes.append(plane)
    attached.wait(lambda: plane.world is not None and plane.world.ready, "the start")
    attached.settle()
    assert attached.disks.attached == {"d1": {"n1"}}
    assert attached.listed("n1") == {"d1": "/dev/d1"}
