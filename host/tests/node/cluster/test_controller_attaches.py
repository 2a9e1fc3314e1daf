"""Volumes that a controller attaches: reported as in use, then mounted, and given back (VERIFY-01 to -04)."""

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import Node, Pod
from volumehost.errors import FailedPreconditionError, ObjectNotFoundError
from volumehost.node.state.states import Attachability
from volumehost.testing.api_server import Rule

pytestmark = pytest.mark.root

STEPS = {"attach", "wait_for_attach", "mount_device", "set_up", "tear_down", "unmount_device", "detach"}


@pytest.fixture
def volume(data):
    return f"example.com/disk/{data}"


def steps(plugin):
    return [call[0] for call in plugin.calls if call[0] in STEPS]


def state(manager, pod):
    return manager.pod_status(pod).volumes[0]


def test_verify04_scen03_reported_then_attached_then_mounted_and_given_back(
    cluster, node_of, disk, claimed, volume, until
):
    plugin = disk()
    cluster.add_node()
    node = node_of(plugin)
    claimed(cluster.api)
    pod = cluster.run_pod()
    node.sync_pod(pod)
    until(lambda: cluster.in_use() == [volume])
    until(lambda: "not in volumesAttached" in state(node, pod).error)
    assert steps(plugin) == []
    explained = node.explain(pod)
    assert "attach/detach controller" in str(explained.to_dict())
    cluster.attach(volume)
    assert node.wait_for_pod(pod, timeout=20).ready
    assert steps(plugin) == ["wait_for_attach", "mount_device", "set_up"]
    assert next(call for call in plugin.calls if call[0] == "wait_for_attach")[1] == "/dev/example"
    node.end_pod(pod.metadata.uid, "default", "web")
    until(lambda: cluster.in_use() == [])
    assert steps(plugin)[3:] == ["tear_down", "unmount_device"]


def test_scen06_an_attachment_counts_only_in_a_state_that_has_the_volume_in_use(
    cluster, node_of, disk, claimed, volume, until
):
    """What was attached before it was reported may be on its way to be detached."""
    plugin = disk()
    cluster.add_node()
    cluster.attach(volume)
    node = node_of(plugin)
    claimed(cluster.api)
    pod = cluster.run_pod()
    with cluster.server.deny(verb="patch", resource="nodes/status"):
        node.sync_pod(pod)
        until(lambda: "volumesInUse" in state(node, pod).error and "forbidden" in state(node, pod).error)
        assert steps(plugin) == []
    assert node.wait_for_pod(pod, timeout=20).ready
    assert cluster.in_use() == [volume]


def test_one_write_for_each_change_and_none_while_nothing_changes(cluster, node_of, disk, claimed, volume, until):
    cluster.add_node()
    node = node_of(disk())
    claimed(cluster.api)
    pod = cluster.run_pod()
    node.sync_pod(pod)
    until(lambda: cluster.in_use() == [volume])
    cluster.attach(volume)
    assert node.wait_for_pod(pod, timeout=20).ready
    cluster.server.requests.clear()
    for _ in range(3):
        cluster.api.patch(Node, "n1", {"metadata": {"labels": {"beat": "1"}}})
        node.parts.services.attachments.wake()
    until(lambda: not node.parts.services.attachments._wake.is_set())
    assert cluster.server.requests.count(verb="patch", resource="nodes/status") == 0


def test_the_node_asks_for_the_controller(cluster, node_of, disk, until):
    cluster.add_node()
    node_of(disk())
    until(lambda: "volumes.kubernetes.io/controller-managed-attach-detach" in cluster.node().metadata.annotations)


def test_without_a_node_object_it_is_said_and_nothing_is_lost(cluster, node_of, disk, claimed, volume, until):
    node = node_of(disk())
    claimed(cluster.api)
    pod = cluster.run_pod()
    node.sync_pod(pod)
    until(lambda: "there is no Node object n1" in state(node, pod).error)
    assert "there is no Node object n1" in node.parts.services.attachments.problem
    cluster.add_node()
    until(lambda: cluster.in_use() == [volume])
    cluster.attach(volume)
    assert node.wait_for_pod(pod, timeout=20).ready
    assert node.parts.services.attachments.problem == ""


def test_br78_a_node_that_is_made_anew_is_told_all_again(cluster, node_of, disk, claimed, volume, until):
    plugin = disk()
    cluster.add_node()
    node = node_of(plugin)
    claimed(cluster.api)
    pod = cluster.run_pod()
    node.sync_pod(pod)
    until(lambda: cluster.in_use() == [volume])
    cluster.attach(volume)
    assert node.wait_for_pod(pod, timeout=20).ready
    former = cluster.node().metadata.uid
    cluster.server.recreate("nodes", "n1")
    until(lambda: cluster.node().metadata.uid != former and cluster.in_use() == [volume])
    assert "tear_down" not in steps(plugin)


def test_br78_adc02_what_is_in_use_is_told_before_the_controller_is_asked_for(
    cluster, node_of, disk, claimed, volume, until
):
    """In between, the controller would detach what is mounted here."""
    cluster.add_node()
    node = node_of(disk())
    claimed(cluster.api)
    pod = cluster.run_pod()
    node.sync_pod(pod)
    until(lambda: cluster.in_use() == [volume])
    cluster.attach(volume)
    assert node.wait_for_pod(pod, timeout=20).ready
    cluster.api.delete(Node, "n1")
    cluster.server.requests.clear()
    cluster.add_node()
    until(lambda: "volumes.kubernetes.io/controller-managed-attach-detach" in cluster.node().metadata.annotations)
    writes = [each.subresource for each in cluster.server.requests.all() if each.verb == "patch"]
    assert writes[:2] == ["status", ""]


def test_br78_an_answer_about_a_node_that_is_gone_is_no_news(cluster, node_of, disk, until):
    """It comes after the watch has told of its end, or of the node that has its name now."""
    former = cluster.add_node()
    attachments = node_of(disk()).parts.services.attachments
    until(lambda: attachments.node_uid == former.metadata.uid)
    cluster.api.delete(Node, "n1")
    until(lambda: not attachments.node_uid)
    attachments._patched(lambda: former)
    assert attachments.node_uid == ""
    now = cluster.add_node()
    until(lambda: attachments.node_uid == now.metadata.uid)
    attachments._patched(lambda: former)
    assert attachments.node_uid == now.metadata.uid


def test_recon_l_05_until_all_pods_are_known_nothing_is_taken_from_the_list(cluster, node_of, disk, until):
    cluster.add_node()
    cluster.api.patch_status(Node, "n1", {"status": {"volumesInUse": ["example.com/disk/other"]}})
    node = node_of(disk(), known=None)
    until(lambda: node.parts.services.attachments.node_uid)
    node.parts.services.attachments.wake()
    until(lambda: "volumes.kubernetes.io/controller-managed-attach-detach" in cluster.node().metadata.annotations)
    assert cluster.in_use() == ["example.com/disk/other"]
    node.set_known_pods([])
    node.parts.services.attachments.wake()
    until(lambda: cluster.in_use() == [])


def test_scen17_scen20_a_restart_without_records_asks_node_status_what_is_attached(
    cluster, node_of, manager, disk, claimed, volume, until, root
):
    """Nobody guesses: until the Node is known the volume is neither forgotten nor left out of what is in use."""
    cluster.add_node()
    claimed(cluster.api)
    pod = cluster.run_pod()
    with manager(disk(), api=cluster.api, node_name="n1", cluster=True, told_pods=True, enter=False) as former:
        former.set_known_pods([pod])
        former.sync_pod(pod)
        until(lambda: cluster.in_use() == [volume])
        cluster.attach(volume)
        assert former.wait_for_pod(pod, timeout=20).ready
    plugin = disk()
    with cluster.server.unreachable():
        node = node_of(plugin, known=[pod])
        actual = node.parts.services.actual
        assert volume in actual.possibly_attached()
    until(lambda: node.parts.services.attachments.node_uid)
    node.sync_pod(pod)
    assert node.wait_for_pod(pod, timeout=20).ready
    assert actual.get_volume(volume).attachability is Attachability.TRUE
    assert "attach" not in steps(plugin)
    assert cluster.in_use() == [volume]


def test_br49_pop31_a_volume_that_needs_no_attaching_any_more_waits_for_nobody(
    cluster, node_of, disk, claimed, volume, until
):
    plugin = disk()
    cluster.add_node()
    node = node_of(plugin)
    claimed(cluster.api)
    pod = cluster.run_pod()
    node.sync_pod(pod)
    until(lambda: cluster.in_use() == [volume])
    plugin.attaches = False
    node.sync_pod(pod)
    assert node.wait_for_pod(pod, timeout=20).ready
    node.parts.services.attachments.wake()
    until(lambda: cluster.in_use() == [])


def test_a_list_that_somebody_else_changes_is_put_right_and_that_is_said_once(
    cluster, node_of, disk, claimed, volume, until, caplog
):
    """A kubelet for the same Node would write its own list again and again."""
    cluster.add_node()
    node = node_of(disk())
    claimed(cluster.api)
    node.sync_pod(cluster.run_pod())
    until(lambda: cluster.in_use() == [volume])
    assert "somebody else" not in caplog.text
    for _ in range(2):
        cluster.api.patch_status(Node, "n1", {"status": {"volumesInUse": None}})
        until(lambda: cluster.in_use() == [volume])
    assert caplog.text.count("was changed by somebody else") == 1


def test_drained_nothing_is_in_use_though_it_is_wanted(cluster, node_of, disk, claimed, volume, until, mounts):
    """BR-54: the controller may detach all of it; the next manager asks for it again."""
    cluster.add_node()
    node = node_of(disk())
    claimed(cluster.api)
    pod = cluster.run_pod()
    node.sync_pod(pod)
    until(lambda: cluster.in_use() == [volume])
    cluster.attach(volume)
    assert node.wait_for_pod(pod, timeout=20).ready
    node.drain(timeout=20)
    assert cluster.in_use() == []
    assert mounts() == []


def test_verify04_a_pod_that_comes_while_the_volume_is_being_withdrawn_waits_until_it_is_in_use_again(
    cluster, node_of, disk, claimed, volume, until
):
    """The controller may detach it from the moment on that it is not listed, which may be any while a write is sent."""
    plugin = disk()
    cluster.add_node()
    node = node_of(plugin)
    claimed(cluster.api)
    first = cluster.run_pod("first")
    node.sync_pod(first)
    until(lambda: cluster.in_use() == [volume])
    cluster.attach(volume)
    assert node.wait_for_pod(first, timeout=20).ready
    answered = []
    writes = lambda: cluster.server.requests.all(verb="patch", resource="nodes/status")  # noqa: E731
    plugin.trouble["wait_for_attach"] = lambda: answered.append([request.code for request in writes()])
    cluster.server.faults.add(Rule(verb="patch", resource="nodes/status", delay=0.5))
    cluster.server.requests.clear()
    node.end_pod(first.metadata.uid, "default", "first")
    until(writes)
    second = cluster.run_pod("second")
    node.sync_pod(second)
    assert node.wait_for_pod(second, timeout=20).ready
    assert answered == [[200, 200]]
    assert cluster.in_use() == [volume]


def test_a_write_whose_answer_is_lost_is_made_again(cluster, node_of, disk, claimed, volume, until):
    """Whether it came about is not known: what the cache says then is no reason to leave it."""
    cluster.add_node()
    node = node_of(disk())
    claimed(cluster.api)
    cluster.server.faults.add(Rule(verb="patch", resource="nodes/status", drop=True, when="after"))
    node.sync_pod(cluster.run_pod())
    until(lambda: cluster.server.requests.count(verb="patch", resource="nodes/status") == 2)
    until(lambda: not node.parts.services.attachments.problem)
    assert cluster.in_use() == [volume]


def test_a_pod_is_mounted_as_the_cluster_has_it_and_only_where_it_is_bound(cluster, node_of, bind, nfs, data):
    cluster.add_node()
    node = node_of(bind())
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    here = {"nodeName": "n1", "containers": [container], "volumes": [nfs()]}
    for name, spec in (("web", here), ("elsewhere", {**here, "nodeName": "n2"})):
        cluster.api.create(to_object(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}))
    assert node.mount_pod({"metadata": {"name": "web"}}, timeout=20).ready
    assert cluster.api.get(Pod, "web", "default").metadata.finalizers == []
    with pytest.raises(FailedPreconditionError, match="bound to n2, and this is n1"):
        node.mount_pod({"metadata": {"name": "elsewhere"}})
    with pytest.raises(ObjectNotFoundError):
        node.mount_pod({"metadata": {"name": "none"}})
