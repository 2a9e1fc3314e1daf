"""A cluster with the real CSI plugin: an API server, controller daemons, and whoever attaches for the driver."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from volumehost.controller.daemon import ControllerDaemon
from volumehost.controller.leader_election import LeaseSettings
from volumehost.controller.settings import ControllerSettings
from volumehost.daemon.notify import Notifier
from volumehost.testing.api_server import ApiServer

PATIENCE = 30.0
DRIVER = "csi.example.com"
STORAGE = "storage.k8s.io/v1"
MANAGED = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for a condition; what it gave."""
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while True:
        with contextlib.suppress(LookupError):
            if found := condition():
                return found
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        pause.wait(0.01)


class ExternalAttacher(threading.Thread):
    """What the external-attacher does to objects; no driver is behind it. ``works`` is whether it does anything."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(daemon=True)
        self._objects = server.objects
        self._ended = threading.Event()
        self.works = True
        self.error = ""

    def run(self) -> None:
        while not self._ended.wait(0.01):
            for each in self._objects.list("volumeattachments") if self.works else ():
                with contextlib.suppress(LookupError):
                    self._see_to(each["metadata"], each.get("status", {}))

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def _see_to(self, metadata: dict[str, Any], status: dict[str, Any]) -> None:
        name = metadata["name"]
        if metadata.get("deletionTimestamp"):
            self._objects.delete("volumeattachments", name)
        elif self.error:
            message = {"message": self.error, "time": "2026-01-01T00:00:00Z"}
            if status.get("attachError") != message:
                self._objects.patch("volumeattachments", name, {"status": {"attached": False, "attachError": message}})
        elif not status.get("attached"):
            change = {
                "metadata": {"finalizers": ["external-attacher/csi-example-com"]},
                "status": {"attached": True, "attachError": None},
            }
            self._objects.patch("volumeattachments", name, change)


class Cluster:
    """Objects, and the daemons that work on them."""

    def __init__(self, server: ApiServer, directory: Path) -> None:
        self.server, self.objects, self._directory = server, server.objects, directory
        self.attacher = ExternalAttacher(server)
        self.daemons: list[ControllerDaemon] = []

    def settings(self, identity: str = "", *, user: str = "admin", **changes: Any) -> ControllerSettings:
        """Of a daemon that is elected quickly; without an identity there is no election."""
        times = {"duration": 1.5, "renew_deadline": 1.0, "retry_period": 0.05}
        lease = LeaseSettings("kube-system", "volumehost-controller", identity, **times) if identity else None
        kubeconfig = self.server.kubeconfig(self._directory / f"{user.replace(':', '-')}.conf", user=user)
        root_dir = str(self._directory / "root")
        return ControllerSettings(kubeconfig=kubeconfig, lease=lease, root_dir=root_dir, grace=5.0, **changes)

    def start(self, settings: ControllerSettings | None = None) -> ControllerDaemon:
        daemon = ControllerDaemon(settings or self.settings(), notifier=Notifier())
        daemon.start()
        self.daemons.append(daemon)
        return daemon

    def stop(self) -> None:
        for daemon in self.daemons:
            daemon.stop()
        while self.daemons:
            assert self.daemons.pop().join(PATIENCE)

    # --- objects ----------------------------------------------------------------------------------------------------

    def put(self, kind: str, name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
        metadata = {"name": name, **fields.pop("metadata", {})}
        return dict(self.objects.put({"apiVersion": version, "kind": kind, "metadata": metadata, **fields}))

    def node(self, name: str = "n1") -> None:
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.put("Node", name, metadata={"annotations": MANAGED}, status=status)

    def driver(self, *, attach: bool = True) -> None:
        self.put("CSIDriver", DRIVER, STORAGE, spec={"attachRequired": attach})

    def volume(self, name: str = "data", size: str = "1Gi") -> None:
        """A CSI volume and an unbound claim that names it."""
        modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        self.put(
            "PersistentVolume",
            name,
            spec={**modes, "capacity": {"storage": size}, "csi": {"driver": DRIVER, "volumeHandle": name},
                  "persistentVolumeReclaimPolicy": "Retain"},
        )  # fmt: skip
        self.put(
            "PersistentVolumeClaim",
            name,
            metadata={"namespace": "default"},
            spec={**modes, "volumeName": name, "resources": {"requests": {"storage": size}}},
        )

    def pod(self, name: str = "web", node: str = "n1", claim: str = "data") -> None:
        self.put(
            "Pod",
            name,
            metadata={"namespace": "default"},
            spec={
                "nodeName": node,
                "containers": [{"name": "c", "image": "registry.example.com/c"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
            },
        )

    def uses(self, node: str, *volumes: str) -> None:
        names = [f"kubernetes.io/csi/{DRIVER}^{each}" for each in volumes]
        self.objects.patch("nodes", node, {"status": {"volumesInUse": names}})

    def end_pod(self, name: str = "web") -> None:
        self.objects.delete("pods", name, "default")

    def attached(self, node: str = "n1") -> list[str]:
        """The handles of the volumes that the node's status lists as attached."""
        listed = self.objects.get("nodes", node).get("status", {}).get("volumesAttached") or []
        return [each["name"].rpartition("^")[2] for each in listed]

    def attachments(self) -> list[dict[str, Any]]:
        return list(self.objects.list("volumeattachments"))

    def events(self, reason: str) -> list[dict[str, Any]]:
        return [each for each in self.objects.list("events") if each.get("reason") == reason]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ApiServer() as server:
        made = Cluster(server, tmp_path)
        made.attacher.start()
        try:
            yield made
        finally:
            made.stop()
            made.attacher.stop()


@pytest.fixture
def wait() -> Callable[..., Any]:
    return until
