"""What is told of a pod that is for another node, with a manager at work and from the records; and of a mere status."""

import pytest

from volumehost.api.objects import Pod
from volumehost.errors import OperationError, VolumesFailedError
from volumehost.node.explaining.explain import explain_recorded

pytestmark = pytest.mark.root


def test_whoever_asks_hears_for_which_node_it_is(manager, bind, nfs, pod_with, root, volume_of):
    node = manager(bind())
    node.api.create({"apiVersion": "v1", "kind": "Pod", **pod_with(nfs("v"), nodeName="there")})
    live = node.explain(node.api.get(Pod, "web", "default"))
    recorded = explain_recorded(root, node.api, "default", "web")
    for told in (live, recorded):
        assert told.waits_for == (f"node there, which the pod is for; this is {node.host.get_node_name()}",)
        assert told.advice == volume_of(told).advice == ()


def test_whoever_asks_for_a_pod_of_this_node_hears_what_mounts_it(manager, bind, nfs, pod_with, volume_of):
    node = manager(bind())
    document = pod_with(nfs("v"), nodeName=node.host.get_node_name())
    document["metadata"]["namespace"] = "team"
    node.api.create({"apiVersion": "v1", "kind": "Pod", **document})
    told = node.explain(node.api.get(Pod, "web", "team"))
    assert told.waits_for == ()
    assert volume_of(told).advice == ("'volumehost mount -n team web' mounts it",)


def test_a_status_is_as_good_as_the_pod(manager, bind, nfs, pod_with, fails, volume_of):
    """A program that has the status from a manager need not look for the object."""
    plugin = bind()
    plugin.trouble["set_up"] = fails(OperationError("away"))
    node = manager(plugin)
    with pytest.raises(VolumesFailedError):
        node.mount_pod(pod_with(nfs("v")), timeout=20, attempts=1)
    (status,) = node.status()
    assert node.explain(status).summary == "1 of 1 volume is not mounted"
    plugin.trouble.clear()
    node.unmount_pod("web", timeout=20)
    assert node.explain(status).volumes == ()
