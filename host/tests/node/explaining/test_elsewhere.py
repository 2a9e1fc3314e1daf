"""What is told of a pod that is for another node, with a manager at work and from the records."""

import pytest

from volumehost.api.objects import Pod
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
