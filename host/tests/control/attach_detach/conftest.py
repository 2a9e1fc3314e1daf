"""A small cluster for attach/detach: nodes, volumes, claims and pods in a store, the plugin of ``disks``, a plane."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from volumehost.api.client import ApiClient
from volumehost.api.objects import Event, Node, PersistentVolumeClaim, Pod
from volumehost.api.store import EmbeddedStore
from volumehost.control.attach_detach.nodes import MANAGED, OUT_OF_SERVICE
from volumehost.control.attach_detach.world import AttachDetachSettings
from volumehost.control.cluster import ATTACH_DETACH, ClusterControl, ClusterPlane
from volumehost.control.writes import update_status
from volumehost.loader.manager import VolumePluginManager

sys.path.insert(0, str(Path(__file__).parent))  # for fake_disks.py: tests are imported without a package

from fake_disks import PLUGIN, Disks

PATIENCE = 30.0


class Cluster:
    def __init__(self, api: ApiClient, disks: Disks) -> None:
        self.api, self.disks = api, disks
        self.plugins = VolumePluginManager()
        assert self.plugins.init_plugins([disks]) == []
        self.planes: list[ClusterPlane] = []

    # --- objects ----------------------------------------------------------------------------------------------------

    def node(self, name: str = "n1", *, ready: bool = True, managed: bool = True) -> Node:
        annotations = {MANAGED: "true"} if managed else {}
        node = self.api.create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}
        )
        self.ready(name, ready)
        return node  # type: ignore[return-value]

    def ready(self, name: str, ready: bool) -> None:
        from volumehost.api.objects import Condition

        def change(node: Node) -> None:
            node.status.conditions = [Condition(type="Ready", status="True" if ready else "Unknown")]

        update_status(self.api, self.api.get(Node, name), change)

    def taint(self, name: str) -> None:
        taints = [{"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}]
        self.api.patch(Node, name, {"spec": {"taints": taints}})

    def uses(self, node: str, *volumes: str) -> None:
        """The node tells that it uses these disks."""

        def change(fresh: Node) -> None:
            fresh.status.volumes_in_use = [f"{PLUGIN}/{each}" for each in volumes]

        update_status(self.api, self.api.get(Node, node), change)

    def volume(self, name: str = "d1", modes: tuple[str, ...] = ("ReadWriteOnce",), namespace: str = "default") -> None:
        """A disk, its PersistentVolume and a claim that is bound to it, all of one name."""
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "accessModes": list(modes),
                    "resources": {"requests": {"storage": "1Gi"}},
                    "volumeName": name,
                    "storageClassName": "",
                },
            }
        )
        claim = self.api.get(PersistentVolumeClaim, name, namespace)
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": list(modes),
                    "gcePersistentDisk": {"pdName": name},
                    "claimRef": {"name": name, "namespace": namespace, "uid": claim.metadata.uid},
                },
            }
        )

        def bound(fresh: PersistentVolumeClaim) -> None:
            fresh.status.phase = "Bound"

        update_status(self.api, claim, bound)

    def pod(self, name: str, node: str, *volumes: str, namespace: str = "default") -> Pod:
        return self.api.create(  # type: ignore[return-value]
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "nodeName": node,
                    "containers": [{"name": "c", "image": "registry.example.com/c"}],
                    "volumes": [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in volumes],
                },
            }
        )

    def end(self, name: str, namespace: str = "default") -> None:
        """The pod is gone."""
        self.api.delete(Pod, name, namespace)

    # --- the controllers --------------------------------------------------------------------------------------------

    def start(self, *, max_wait: float | None = 3600.0) -> ClusterPlane:
        control = ClusterControl(
            frozenset({ATTACH_DETACH}), attach_detach=AttachDetachSettings(max_wait_for_unmount=max_wait)
        )
        plane = ClusterPlane(self.api, self.api, self.plugins, control, first_delay=0.05)
        plane.plane.start()
        self.planes.append(plane)
        return plane

    def stop(self) -> None:
        while self.planes:
            assert self.planes.pop().plane.stop(PATIENCE)

    def wait(self, predicate: Callable[[], bool], what: str) -> None:
        if self.planes:
            self.planes[-1].plane.wait_until(predicate, PATIENCE, what)

    def settle(self) -> None:
        plane = self.planes[-1].plane
        plane.wait_until(plane.settled, PATIENCE, "the plane to settle")

    # --- what came of it --------------------------------------------------------------------------------------------

    def listed(self, node: str) -> dict[str, str]:
        """What the node's status lists as attached: disk to device."""
        status = self.api.get(Node, node).status
        return {each.name.removeprefix(f"{PLUGIN}/"): each.device_path for each in status.volumes_attached}

    def events(self, reason: str) -> list[Event]:
        return [each for each in self.api.list(Event).items if each.reason == reason]

    def wait_listed(self, node: str, *disks: str) -> None:
        self.wait(lambda: set(self.listed(node)) == set(disks), f"{node} to have {disks}")


@pytest.fixture(params=["embedded", "api server"])
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApiClient]:
    """The embedded store, and a strict API server through the caches that the daemon has."""
    if request.param == "embedded":
        with EmbeddedStore(str(tmp_path / "store.sqlite3")) as store:
            yield store
        return
    from volumehost.api.kubernetes import CachedClient, connect
    from volumehost.controller.fenced_client import FencedClient
    from volumehost.testing.api_server import ApiServer

    with ApiServer() as server:
        client = connect(server.kubeconfig(tmp_path / "kubeconfig"))
        with CachedClient(client, []) as cached:
            yield FencedClient(cached, None).client
        client.close()


@pytest.fixture
def cluster(api: ApiClient) -> Iterator[Cluster]:
    made = Cluster(api, Disks())
    try:
        yield made
    finally:
        made.disks.may_attach.set()
        made.stop()
        made.plugins.close()
