"""A node that is full is told on the pods that wait for it (VM-07)."""

import pytest

from volumehost import hookimpl
from volumehost.api.objects import Event
from volumehost.node.cluster.limits import PATIENCE_SECONDS, AttachLimits

pytestmark = pytest.mark.root


@pytest.fixture
def full(disk):
    class Full(disk):
        asked = 0

        @hookimpl
        def verify_exhausted_resource(self, spec):
            self.asked += 1
            return True

    return Full()


def test_vm07_a_full_node_is_told_once_on_the_pod_that_has_waited(cluster, node_of, full, claimed, until, clock):
    cluster.add_node()
    node = node_of(full, clock=clock)
    claimed(cluster.api)
    pod = cluster.run_pod()
    node.sync_pod(pod)
    until(cluster.in_use)
    limits = AttachLimits(node.parts)
    limits.look()
    assert full.asked == 0
    clock.move(PATIENCE_SECONDS)
    for _ in range(2):
        limits.look()
    assert full.asked == 1
    reasons = lambda: [each.reason for each in cluster.api.list(Event, "default").items]  # noqa: E731
    until(lambda: reasons() == ["VolumeAttachmentLimitExceeded"])
    cluster.attach(cluster.in_use()[0])
    until(lambda: not node.parts.services.attachments.waits_for(cluster.in_use()[0]))
    limits.look()
    assert limits._told == set()
