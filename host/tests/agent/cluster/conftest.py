"""What an agent in a cluster is made of, in the test's process: nodes of one fake API server, each with its root."""

import contextlib
import os
from pathlib import Path

import pytest

from volumehost import VolumeManager
from volumehost.agent.cluster import ClusterConnection
from volumehost.agent.cluster_pods import ClusterPods
from volumehost.agent.pod_sources import PodSources
from volumehost.agent.settings import AgentSettings
from volumehost.agent.static_pods import StaticPods
from volumehost.api.convert import to_object
from volumehost.api.kubernetes import connect
from volumehost.api.kubernetes.gate import RequestGate
from volumehost.api.objects import Node, Pod
from volumehost.mount.mountinfo import read_mount_table
from volumehost.testing.api_server import ApiServer

EMPTY_DIR = {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}


@pytest.fixture
def place(root):
    """A directory whose filesystem may be mounted on; what is mounted below is unmounted at the end."""
    return Path(root).parent


@pytest.fixture
def server():
    with ApiServer() as made:
        yield made


@pytest.fixture
def api(server, tmp_path):
    """The client of whoever uses the cluster."""
    client = connect(server.kubeconfig(tmp_path / "admin", user="tester"))
    yield client
    client.close()


class NodeAgent:
    """The parts of one node's agent at work. A context manager; may be entered again."""

    def __init__(self, root, name, kubeconfig, static_pods=None):
        self.settings = AgentSettings(root, name, kubeconfig=kubeconfig, static_pods=static_pods)
        self.name, self.root = name, root

    def __enter__(self):
        self._stack = stack = contextlib.ExitStack()
        with stack:
            self.connection = stack.enter_context(
                ClusterConnection(self.settings, self.name, gate=RequestGate(0.05, 0.5))
            )
            self.manager = stack.enter_context(
                VolumeManager(
                    self.root, node_name=self.name, api=self.connection.api, cluster=True, told_pods=True, adopt=True
                )
            )
            sources = [ClusterPods(self.manager, stale=lambda: self.connection.problem_of(Pod))]
            if self.settings.static_pods is not None:
                sources.insert(0, StaticPods(self.manager, self.settings.static_pods, mirrored=False))
            self.sources = PodSources(self.manager, sources)
            stack.callback(self.sources.stop)
            self.sources.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details):
        return self._stack.__exit__(*details)

    def mounted(self):
        """The names of the pods that have something mounted."""
        found = [mount.path for mount in read_mount_table() if mount.path.startswith(f"{self.root}/pods/")]
        return {path.removeprefix(f"{self.root}/pods/").split("/")[0] for path in found}

    def note(self, uid):
        return self.sources.note_of(uid)

    def problems(self):
        return "; ".join(self.sources.problems())


@pytest.fixture
def node_agent(server, place, tmp_path, api):
    """Makes the agent of a node, whose Node object is made as well."""

    def make(name="n1", *, node=True, **options):
        if node and server.objects.find("nodes", name) is None:
            api.create(to_object(Node, {"metadata": {"name": name}}))
        kubeconfig = server.kubeconfig(tmp_path / f"{name}.kubeconfig", user=f"agent-{name}")
        os.makedirs(place / name, exist_ok=True)
        return NodeAgent(str(place / name), name, kubeconfig, **options)

    return make


@pytest.fixture
def run_pod(api):
    """Creates a pod that is bound to a node."""

    def make(name="web", node="n1", **spec):
        container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        wanted = {"nodeName": node, "containers": [container], "volumes": [EMPTY_DIR], **spec}
        return api.create(to_object(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": wanted}))

    return make
