"""An agent in a process of its own, on the fake API server of this process, with a fake CSI driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from bench.csi import DRIVER
from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table
from volumehost.testing.api_server import ApiServer
from volumehost_csi.names import attachment_name
from volumehost_csi_kit.fake import FakeDriverProcess

NODE, USER = "bench", "agent"
_SECONDS = 60.0


class ClusterNode:
    """A node whose agent is at work; a context manager."""

    def __init__(self, server: ApiServer, base: str) -> None:
        self.server = server
        self.root = f"{base}/root"
        self._base = base
        self._driver = FakeDriverProcess(
            f"unix://{base}/csi.sock",
            f"{base}/driver",
            registration_dir=f"{self.root}/plugins_registry",
            name=DRIVER,
            mounts="bind",
        )
        self._agent: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        put = self.server.objects.put
        put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        put({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": {}})
        os.makedirs(f"{self.root}/plugins_registry")
        self._driver.start()
        program = str(Path(sys.executable).with_name("volumehost"))
        config = self.server.kubeconfig(f"{self._base}/kubeconfig", user=USER, groups=["system:masters"])
        options = ["--kubeconfig", config, "--node-name", NODE, "--root-dir", self.root]
        self._agent = subprocess.Popen([program, "agent", *options], stderr=subprocess.DEVNULL)
        self._wait_until(lambda: self._drivers() == [DRIVER], "the driver is not registered")
        return self

    def __exit__(self, *_: object) -> None:
        if self._agent is not None:
            self._agent.send_signal(signal.SIGTERM)
            self._agent.wait(_SECONDS)
        self._driver.kill()
        for mount in reversed(read_mount_table()):  # an agent leaves its mounts to the next one
            if f"{mount.path}/".startswith(f"{self.root}/"):
                syscalls.umount2(mount.path, syscalls.MNT_DETACH)

    def attached_volume(self, name: str) -> None:
        """A bound claim whose volume the controllers have attached to the node already."""
        common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        request = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
        status = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
        claim = self._put("v1", "PersistentVolumeClaim", name, {**common, **request}, status)
        volume = {
            **common,
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": {"namespace": "default", "name": name, "uid": claim["metadata"]["uid"]},
        }
        self._put("v1", "PersistentVolume", name, volume, {"phase": "Bound"})
        attachment = {"attacher": DRIVER, "nodeName": NODE, "source": {"persistentVolumeName": name}}
        named = attachment_name(name, DRIVER, NODE)
        self._put("storage.k8s.io/v1", "VolumeAttachment", named, attachment, {"attached": True})
        unique = f"kubernetes.io/csi/{DRIVER}^{name}"
        known = self.server.objects.get("nodes", NODE).get("status", {}).get("volumesAttached", [])
        attached = [*known, {"name": unique, "devicePath": ""}]
        self.server.objects.patch("nodes", NODE, {"status": {"volumesAttached": attached}})

    def _put(self, version: str, kind: str, name: str, spec: Any, status: Any) -> Any:
        metadata = {"name": name}
        return self.server.objects.put(
            {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status}
        )

    def start_pod(self, name: str, volume: dict[str, Any]) -> str:
        """Give the node a pod with the volume; its uid."""
        container = {"name": "main", "image": "none", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        spec = {"nodeName": NODE, "containers": [container], "volumes": [{"name": "v", **volume}]}
        pod = self.server.objects.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        uid: str = pod["metadata"]["uid"]
        return uid

    def wait_for_mount(self, uid: str, plugin: str, volume: str) -> None:
        """Until the volume of the pod is mounted."""
        path = f"{self.root}/pods/{uid}/volumes/{plugin}/{volume}"
        path = f"{path}/mount" if plugin.endswith("~csi") else path
        self._wait_until(lambda: any(each.path == path for each in read_mount_table()), f"{path} is not mounted")

    def wait_for_path(self, path: str) -> float:
        """When (``time.perf_counter``) there was something at the path below the root directory."""
        path = f"{self.root}/{path}"
        until = time.monotonic() + _SECONDS
        while not os.path.lexists(path):
            if time.monotonic() > until:
                raise RuntimeError(f"{path} is not there")
            time.sleep(0.0002)
        return time.perf_counter()

    def _drivers(self) -> list[str]:
        found = self.server.objects.find("csinodes", NODE)
        return [each["name"] for each in (found or {}).get("spec", {}).get("drivers") or []]

    @staticmethod
    def _wait_until(holds: Callable[[], bool], problem: str) -> None:
        until = time.monotonic() + _SECONDS
        while not holds():
            if time.monotonic() > until:
                raise RuntimeError(problem)
            time.sleep(0.01)
