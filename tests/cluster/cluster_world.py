"""A cluster of real processes: a controller, the agents of nodes, a CSI driver beside each, on one fake API server.

The test itself is what else a cluster has: the scheduler, and whoever runs containers.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from volumehost.agent.permissions import NODE_PERMISSIONS
from volumehost.controller.permissions import CONTROLLER_PERMISSIONS
from volumehost.daemon.rbac import Permission, rbac_objects
from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table
from volumehost.testing.agents import PATIENCE, AgentProcess
from volumehost.testing.api_server import ApiServer
from volumehost_csi_kit.fake import FakeDriverProcess

NAMESPACE = "volumehost"
DRIVER = "fake.csi.example.com"
AGENT, CONTROLLER = (f"system:serviceaccount:{NAMESPACE}:volumehost-{name}" for name in ("agent", "controller"))


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE, told: Callable[[], str] = str) -> Any:
    """Wait for a condition; what it gave."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {seconds:g} s\n{told()}")
        pause.wait(0.02)
    return found


class Daemon:
    """A ``volumehost`` process that goes on until it is told to end; may be started again."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.log_file = log
        self._command = [sys.executable, "-m", "volumehost", "-v", *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        with open(self.log_file, "ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *more], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """``kill -9``."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE)

    @property
    def log(self) -> str:
        return self.log_file.read_text() if self.log_file.exists() else ""


class Sidecars(threading.Thread):
    """What runs beside a CSI driver's controller service in every cluster: attaches, detaches and grows what is asked.

    Only the objects are looked after; the driver keeps its volumes in a directory that all nodes see.
    """

    def __init__(self, server: ApiServer) -> None:
        super().__init__(daemon=True)
        self._objects = server.objects
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(0.02):
            with contextlib.suppress(LookupError):  # it was there a moment ago
                self._attach()
                self._grow()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def _attach(self) -> None:
        for each in self._objects.list("volumeattachments"):
            name, finalizers = each["metadata"]["name"], each["metadata"].get("finalizers", [])
            if each["metadata"].get("deletionTimestamp"):
                self._objects.delete("volumeattachments", name)
            elif not each.get("status", {}).get("attached"):
                mine = {"finalizers": [*finalizers, "external-attacher/fake"]}
                self._objects.patch("volumeattachments", name, {"metadata": mine, "status": {"attached": True}})

    def _grow(self) -> None:
        for claim in self._objects.list("persistentvolumeclaims"):
            wanted, status = claim["spec"]["resources"]["requests"]["storage"], claim.get("status", {})
            volume = claim["spec"].get("volumeName")
            if not volume or status.get("phase") != "Bound":
                continue
            if self._objects.get("persistentvolumes", volume)["spec"]["capacity"]["storage"] == wanted:
                continue
            self._objects.patch("persistentvolumes", volume, {"spec": {"capacity": {"storage": wanted}}})
            pending = {"type": "FileSystemResizePending", "status": "True"}
            grown = {
                "conditions": [pending],
                "allocatedResources": {"storage": wanted},
                "allocatedResourceStatuses": {"storage": "NodeResizePending"},
            }
            name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
            self._objects.patch("persistentvolumeclaims", name, {"status": grown}, namespace)


class WorldNode:
    """A node: its root directory, its driver and its agent."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        place = world.base / name
        place.mkdir()
        syscalls.mount("root", str(place), "tmpfs", 0, "")
        self.root = f"{place}/root"
        os.makedirs(f"{self.root}/plugins_registry")
        self.driver = FakeDriverProcess(
            f"unix://{place}/csi.sock",
            f"{place}/driver",
            registration_dir=f"{self.root}/plugins_registry",
            name=DRIVER,
            mounts="bind",
            data_dir=str(world.storage),
        )
        options = ["--kubeconfig", world.kubeconfig(AGENT), "--node-name", name]
        self.agent = AgentProcess(self.root, *options, log_file=world.base / f"{name}.log")

    def start(self) -> None:
        self.world.server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}})
        self.driver.start()
        self.agent.start()

    def volume(self, uid: str, volume: str) -> Path:
        """Where a claim's volume of a pod is mounted."""
        return Path(f"{self.root}/pods/{uid}/volumes/kubernetes.io~csi/{volume}/mount")

    @property
    def in_use(self) -> list[str]:
        status = self.world.server.objects.get("nodes", self.name).get("status", {})
        return list(status.get("volumesInUse") or [])


class World:
    """The whole; a context manager that ends every process and unmounts everything."""

    def __init__(self, server: ApiServer, base: Path) -> None:
        self.server, self.base = server, base
        self.storage = base / "storage"
        self.storage.mkdir()
        for name, permissions in (("agent", NODE_PERMISSIONS), ("controller", CONTROLLER_PERMISSIONS)):
            self.grant(name, permissions)
        self.nodes = {name: WorldNode(self, name) for name in ("node-1", "node-2")}
        self.sidecars = Sidecars(server)
        options = ["--kubeconfig", self.kubeconfig(CONTROLLER), "--lease-namespace", NAMESPACE]
        options += ["--root-dir", str(base / "controller")]
        (base / "controller").mkdir()
        config = [
            '[plugins."kubernetes.io/host-path"]',
            "provisioning_enabled = true",
            f'attributes = {{ base_dir = "{self.storage}" }}',
        ]
        (base / "controller" / "config.toml").write_text("\n".join(config))
        self.controller = Daemon(base / "controller.log", "controller", *options)

    def __enter__(self) -> Self:
        self.sidecars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.sidecars.stop()
        self.controller.kill()
        for node in self.nodes.values():
            node.agent.kill()
            node.driver.kill()
        for mount in reversed(read_mount_table()):
            if mount.path.startswith(f"{self.base}/"):
                with contextlib.suppress(OSError):
                    syscalls.umount2(mount.path, syscalls.MNT_DETACH)

    def grant(self, daemon: str, permissions: Sequence[Permission]) -> None:
        """Let the daemon do this, and nothing else."""
        name = f"volumehost-{daemon}"
        for each in rbac_objects(name, NAMESPACE, name, permissions):
            self.server.objects.put(each)

    def kubeconfig(self, user: str = "admin") -> str:
        path = self.base / user.rpartition(":")[2]
        return self.server.kubeconfig(path.with_suffix(".kubeconfig"), user=user)

    def start(self) -> None:
        """Start everything, and wait until the driver is known on every node."""
        self.controller.start()
        for node in self.nodes.values():
            node.start()
        self.until(lambda: all(map(self._registered, self.nodes)), "the driver's registration")

    def _registered(self, node: str) -> bool:
        found = self.server.objects.find("csinodes", node) or {}
        return any(each["name"] == DRIVER for each in found.get("spec", {}).get("drivers") or [])

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        return until(condition, what, told=self.story)

    def story(self) -> str:
        """What each has to say, for a test that fails."""
        logs = [f"--- controller\n{self.controller.log[-4000:]}"]
        logs += [f"--- {name}\n{node.agent.log[-4000:]}" for name, node in self.nodes.items()]
        denied = {(each.user, each.verb, each.permission) for each in self.server.requests.all() if each.code == 403}
        return "\n".join([f"refused: {sorted(denied)}", *logs])

    # --- what the rest of a cluster does --------------------------------------------------------------------------

    def run_pod(self, node: str, name: str = "web", **spec: Any) -> str:
        """A pod that the scheduler has given to the node; its uid."""
        volumes = spec.pop("volumes", [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
        container = {"name": "c", "image": "i", "volumeMounts": mounts}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "nodeName": node,
                "serviceAccountName": "default",
                "containers": [container],
                "volumes": volumes,
                **spec,
            },
        }
        uid: str = self.server.objects.put(pod)["metadata"]["uid"]
        return uid

    def end_pod(self, name: str = "web") -> None:
        """Its containers have ended, and whoever ran them deletes it."""
        self.server.objects.patch("pods", name, {"status": {"phase": "Succeeded"}})
        self.server.objects.delete("pods", name)

    def wait_for_mount(self, node: str, uid: str, volume: str) -> Path:
        path = self.nodes[node].volume(uid, volume)
        self.until(lambda: is_mounted(path), f"a mount at {path}")
        return path

    def attachments(self) -> dict[str, bool]:
        """The nodes that there are VolumeAttachments for, and whether they are attached."""
        found = self.server.objects.list("volumeattachments")
        return {each["spec"]["nodeName"]: bool(each.get("status", {}).get("attached")) for each in found}


def is_mounted(path: Path) -> bool:
    return any(mount.path == str(path) for mount in read_mount_table())
