"""What one controller has begun and another one goes on with: VolumeAttachments that nobody would end otherwise."""

from __future__ import annotations

from volumehost.api.objects import Pod, VolumeAttachment
from volumehost_csi.names import attachment_name


def test_br_47_a_request_of_the_former_leader_that_was_under_way_when_this_one_looked(cluster, wait) -> None:
    """Its VolumeAttachment came later than the first look; the pod is gone, and nothing else would tell of it."""
    cluster.node()
    cluster.driver()
    cluster.volume()
    daemon = cluster.start()
    world = wait(lambda: daemon.work and daemon.work.world and daemon.work.world.ready and daemon.work.world, "it")
    cluster.put(
        "VolumeAttachment",
        attachment_name("data", "csi.example.com", "n1"),
        "storage.k8s.io/v1",
        spec={"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "data"}},
    )
    wait(lambda: daemon.work.cached.list(VolumeAttachment).items[0].status.attached, "it to be attached, and heard of")
    assert world.look_again() > 0  # not yet
    assert not world.attachments.pairs()
    world._second_look_at = 0.0
    assert world.look_again() is None
    wait(lambda: not cluster.attachments(), "it to be ended, since no pod wants it")


def test_br_78_a_node_that_is_made_anew_and_told_only_later_who_attaches_for_it(cluster, wait) -> None:
    """Its pod went with the former node."""
    cluster.node()
    cluster.driver()
    cluster.volume()
    cluster.pod()
    daemon = cluster.start()
    wait(lambda: cluster.attached() == ["data"], "the attachment")
    cluster.attacher.works = False
    cluster.objects.delete("nodes", "n1")
    cluster.put("Node", "n1", status={"conditions": [{"type": "Ready", "status": "True"}]})
    wait(lambda: not daemon.work.world.attachments.pairs(), "the node to be its own")
    cluster.end_pod()
    wait(lambda: not daemon.work.cached.list(Pod).items, "that to be known")
    cluster.attacher.works = True
    cluster.objects.patch(
        "nodes", "n1", {"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
    )
    wait(lambda: not cluster.attachments(), "the detach")
