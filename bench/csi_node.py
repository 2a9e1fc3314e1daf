"""The volume manager against the four calls by bare grpcio: pods with claims of a null CSI driver, there and back.

Ours is ``mount_pod`` and ``unmount_pod`` of a whole pod: the pod put into the API and taken out (three writes), its
claims and volumes read, the journal synced before each step that reaches outside, the plugin's records synced. The
claims are bound, nothing is attached, and nothing binds, provisions or attaches in the process, as on a node of a
cluster; the last row is with all of that at work. With many workers each has a pod of its own on its way all the time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from bench.csi import DRIVER, ROUNDS, WORKERS, BareCycle, crowd, tmpfs
from bench.measuring import Figure, interleaved
from volumehost import VolumeManager
from volumehost.api.objects import CSIDriver, CSIDriverSpec, ObjectMeta
from volumehost.loader.events import NoProber
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.fake import FakeDriverProcess

VOLUMES = 4


class ManagerCycle:
    """A manager with pods whose claims are bound; one cycle mounts a pod and takes it away again."""

    def __init__(self, base: str, endpoint: str, pods: int, *, volumes: int = 1, controllers: bool = False) -> None:
        self.root = f"{base}/node-{volumes}{'-controlled' if controllers else ''}"
        self._manager = VolumeManager(
            self.root, plugins=[CSIPlugin()], prober=NoProber(), node_name="bench", controllers=controllers
        )
        self._manager.__enter__()
        if controllers:
            self._manager.control.start()
        if not controllers:  # a cluster has its nodes
            self._manager.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bench"}})
        self._manager.drivers.register(DRIVER, endpoint)
        spec = CSIDriverSpec(attach_required=False, volume_lifecycle_modes=["Persistent"])
        self._manager.api.create(CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=spec))
        names = [f"claim-{number}" for number in range(pods * volumes)]
        self._pods = [pod_of(f"pod-{each}", names[each * volumes : (each + 1) * volumes]) for each in range(pods)]
        for number, name in enumerate(names):
            bound_claim(self._manager.api, name, f"node-{number}")

    def close(self) -> None:
        self._manager.__exit__(None, None, None)

    def __call__(self, worker: int = 0) -> None:
        """One cycle."""
        self._manager.mount_pod(self._pods[worker])
        self._manager.unmount_pod(f"pod-{worker}")

    def tidy_journal(self) -> None:
        """Have the journal written out and made small."""
        self._manager.parts.services.journal.arranged_flush()

    def mount_all(self) -> None:
        """Mount every pod, and leave it so."""
        for pod in self._pods:
            self._manager.mount_pod(pod)


def bound_claim(api: Any, name: str, handle: str, driver: str = DRIVER) -> None:
    """A claim of that name that is bound to a volume of that driver."""
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    claim: Any = api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {**common, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    claim.status.phase, claim.status.capacity = "Bound", {"storage": "1Gi"}
    claim = api.replace_status(claim)
    reference = {"namespace": "default", "name": name, "uid": claim.metadata.uid}
    api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                **common,
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": driver, "volumeHandle": handle},
                "claimRef": {"kind": "PersistentVolumeClaim", **reference},
            },
        }
    )


def pod_of(name: str, claims: Sequence[str]) -> dict[str, Any]:
    """A pod that uses the claims."""
    sources = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    mounts = [{"name": claim, "mountPath": f"/{claim}"} for claim in claims]
    container = {"name": "main", "image": "none", "volumeMounts": mounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "volumes": sources},
    }


def _times(base: str) -> Iterator[Figure]:
    endpoint = f"unix://{base}/csi.sock"
    with FakeDriverProcess(endpoint, f"{base}/driver", null=True, name=DRIVER), ExitStack() as stack:
        ours, anchor = ManagerCycle(base, endpoint, WORKERS), BareCycle(base, endpoint)
        stack.callback(ours.close)
        stack.callback(anchor.close)
        for _ in range(20):
            ours()
            anchor()
        alone, bare = interleaved(ours, anchor, rounds=15, batch_seconds=0.1)
        yield Figure("node cycle through the volume manager, 1 worker", alone, bare, "bare grpcio", 2.2, 1.6)
        several = ManagerCycle(base, endpoint, 1, volumes=VOLUMES)
        stack.callback(several.close)
        together, bare = interleaved(several, anchor, rounds=15, batch_seconds=0.1)
        yield Figure(f"the same, per volume of a pod of {VOLUMES}", together / VOLUMES, bare, "bare grpcio", 2.2, 1.6)
        pool = stack.enter_context(ThreadPoolExecutor(WORKERS))
        crowds = [(crowd(pool, ours), crowd(pool, anchor)) for _ in range(ROUNDS + 1)][1:]
        many, bare = (statistics.median(column) for column in zip(*crowds, strict=True))
        yield Figure(f"the same, {WORKERS} workers", many, bare, f"{WORKERS} threads of bare grpcio", 1.6, 1.2)
        controlled = ManagerCycle(base, endpoint, 1, controllers=True)
        stack.callback(controlled.close)
        beside, bare = interleaved(controlled, anchor, rounds=15, batch_seconds=0.1)
        yield Figure("1 worker, the control plane at work beside it", beside, bare, "bare grpcio")


def figures() -> list[Figure]:
    """One worker, a pod of several volumes, and many workers."""
    with tmpfs() as base:
        return list(_times(base))
