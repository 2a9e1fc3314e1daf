"""A controller that does not lead any more calls no plugin, however far it had come: another one decides now."""

from __future__ import annotations

import threading

from volumehost.control.attach_detach.world import AttachDetachSettings
from volumehost.control.cluster import ATTACH_DETACH, ClusterControl, ClusterPlane
from volumehost.controller.fenced_client import NotLeaderError


def test_what_was_decided_within_a_term_is_not_begun_after_it(cluster) -> None:
    """Otherwise a process that was stopped for a minute would detach what its successor has attached meanwhile."""
    over = threading.Event()

    def may_call() -> None:
        if over.is_set():
            raise NotLeaderError("others lead")

    control = ClusterControl(frozenset({ATTACH_DETACH}), attach_detach=AttachDetachSettings())
    plane = ClusterPlane(cluster.api, cluster.api, cluster.plugins, control, may_call=may_call, first_delay=1000.0)
    plane.plane.start()
    cluster.planes.append(plane)
    cluster.node()
    cluster.volume()
    cluster.pod("web", "n1", "d1")
    cluster.wait_listed("n1", "d1")
    over.set()
    cluster.end("web")
    cluster.wait(lambda: plane.plane.failing()["attach-detach"] == 1, "the detach to be refused")
    assert cluster.disks.attached == {"d1": {"n1"}}
    assert [name for name, *_ in cluster.disks.calls] == ["attach"]
