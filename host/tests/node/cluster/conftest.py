"""A volume manager as the node of a cluster: a fake API server, and a test that plays the attach/detach controller."""

import pytest

from volumehost.api.convert import to_object
from volumehost.api.kubernetes import connect
from volumehost.api.objects import Node, Pod
from volumehost.testing.api_server import ApiServer

NODE = "n1"


class Cluster:
    """The server, a client of it, and what the controller of the test does."""

    def __init__(self, server, client, path):
        self.server, self.api, self.kubeconfig = server, client, path

    def add_node(self, name=NODE, **metadata):
        return self.api.create(to_object(Node, {"metadata": {"name": name, **metadata}}))

    def node(self, name=NODE):
        return self.api.get(Node, name)

    def in_use(self, name=NODE):
        return self.node(name).status.volumes_in_use

    def attach(self, *volumes, path="/dev/example", name=NODE):
        """What ``volumesAttached`` says from now on."""
        attached = [{"name": volume, "devicePath": path} for volume in volumes]
        return self.api.patch_status(Node, name, {"status": {"volumesAttached": attached or None}})

    def run_pod(self, name="web", claim="claim", node=NODE):
        """A pod that is bound to the node."""
        container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        source = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
        spec = {"nodeName": node, "containers": [container], "volumes": [source]}
        return self.api.create(to_object(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}))


@pytest.fixture
def cluster(tmp_path):
    with ApiServer() as server:
        path = server.kubeconfig(tmp_path / "kubeconfig")
        client = connect(path)
        yield Cluster(server, client, path)
        client.close()


@pytest.fixture
def node_of(manager, cluster):
    """Makes a manager of the cluster's node, with all pods told."""

    def make(*plugins, known=(), **options):
        made = manager(*plugins, api=options.pop("api", cluster.api), node_name=NODE, cluster=True, told_pods=True,
                       **options)  # fmt: skip
        if known is not None:
            made.set_known_pods(known)
        return made

    return make
