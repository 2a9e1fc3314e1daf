"""A volume manager with its control plane and the CSI plugin, drivers in processes of their own, and volumes' lives."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from volumehost import VolumeManager
from volumehost.api.objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    VolumeSnapshot,
    VolumeSnapshotContent,
)
from volumehost.errors import ObjectNotFoundError, VolumesFailedError, WaitTimeoutError
from volumehost.loader.events import NoProber
from volumehost.mount.mountinfo import read_mount_table
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.fake import Call, FakeDriverProcess, Rule
from volumehost_csi_kit.fake.rules import volume_of

NAME = "fake.csi.example.com"
SNAPSHOTS = "snapshot.storage.k8s.io/v1"
MIB = 1 << 20

#: Deadline of every call in these tests, in seconds.
RPC_TIMEOUT = 1.0


def until(condition: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    """Wait until it is true; returns its value."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds:g} s until {what}"
        pause.wait(0.05)


def refused(step: Callable[..., object], *words: str, seconds: float = 60.0) -> list[str]:
    """Have it tried again and again, for a second each time, until a line of the error has all the words; the lines."""
    deadline = time.monotonic() + seconds
    while True:
        with pytest.raises((VolumesFailedError, WaitTimeoutError)) as caught:
            step(timeout=1.0)
        lines = list(caught.value.details)
        if any(all(word in line for word in words) for line in lines):
            return lines
        assert time.monotonic() < deadline, f"waited {seconds:g} s until {words} are told: {lines}"


def configure(root: str, **attributes: object) -> None:
    """Write the host's configuration; deadlines are short unless told otherwise."""
    told = {"rpc_timeout": RPC_TIMEOUT, "create_timeout": RPC_TIMEOUT, **attributes}
    table = ", ".join(f'{name} = "{value}"' for name, value in told.items())
    os.makedirs(root, exist_ok=True)
    Path(root, "config.toml").write_text(f'[plugins."kubernetes.io/csi"]\nattributes = {{ {table} }}\n')


class World:
    """One root directory and what works on it. ``manager`` is there while it is entered."""

    def __init__(self, root: str, sockets: str, directory: str) -> None:
        self.root = root
        self.sockets = sockets
        self.directory = directory
        self.drivers: dict[str, FakeDriverProcess] = {}
        self.logs: dict[str, CallLog] = {}
        self._manager: VolumeManager | None = None

    # --- who works ----------------------------------------------------------------------------------------------

    def driver(self, name: str = NAME, *, start: bool = True, **config: Any) -> FakeDriverProcess:
        """A driver that mounts for real; it does not register by itself unless it is given where."""
        number = len(self.drivers)
        made = FakeDriverProcess(
            f"unix://{self.sockets}/{number}.sock",
            f"{self.directory}/driver-{number}",
            **{"name": name, "mounts": "bind", **config},
        )
        self.drivers[name] = made
        self.logs[name] = CallLog(made)
        if start:
            made.start()
        return made

    def replace_driver(self, name: str, **config: Any) -> FakeDriverProcess:
        """Another one at the endpoint and with the volumes of one that has ended; it is not started."""
        former = self.drivers[name]
        made = FakeDriverProcess(former.endpoint, former.directory, **{"name": name, "mounts": "bind", **config})
        self.drivers[name] = made
        self.logs[name] = CallLog(made)
        return made

    def begin(self, **options: Any) -> VolumeManager:
        """A new manager takes the root directory."""
        assert self._manager is None
        if not os.path.exists(f"{self.root}/config.toml"):
            configure(self.root)
        made = VolumeManager(
            self.root, **{"plugins": [CSIPlugin()], "prober": NoProber(), "node_name": "here", **options}
        )
        made.__enter__()
        self._manager = made
        return made

    def end(self) -> None:
        """The manager lets go of the root directory."""
        made, self._manager = self._manager, None
        if made is not None:
            made.__exit__(None, None, None)

    def close(self) -> None:
        """End everything, whatever state it is in."""
        for driver in self.drivers.values():
            if driver.pid is not None:
                driver.clear_script()
                driver.release()
        try:
            self.end()
        finally:
            for driver in self.drivers.values():
                driver.kill()

    @property
    def manager(self) -> VolumeManager:
        """The manager that works now."""
        assert self._manager is not None
        return self._manager

    def prepare(self, name: str = NAME, **spec: Any) -> None:
        """Register the driver, and make the objects that go with it: classes of its name's first part."""
        self.manager.drivers.register(name, self.drivers[name].endpoint)
        for each in driver_objects(name, **spec):
            self.manager.api.create(each)

    # --- what is there ------------------------------------------------------------------------------------------

    def mounts(self) -> list[str]:
        """The mount points below the root directory."""
        return sorted(mount.path for mount in read_mount_table() if mount.path.startswith(f"{self.root}/"))

    def left(self) -> list[str]:
        """What must not be there when every pod and claim is gone: on the node, in the API, at the drivers."""
        api = self.manager.api
        found = [f"mount {path}" for path in self.mounts()]
        found += [f"pod directory {name}" for name in os.listdir(f"{self.root}/pods")]
        for kind in (PersistentVolume, PersistentVolumeClaim, VolumeAttachment, VolumeSnapshot, VolumeSnapshotContent):
            found += [f"{kind.__name__} {each.metadata.name}" for each in api.list(kind).items]
        for place, _, files in os.walk(f"{self.root}/plugins/kubernetes.io/csi"):
            if place.endswith("/globalmount") or "vol_data.json" in files or "/volumeDevices/staging/" in place:
                found.append(f"directory {place}")
        for driver in self.drivers.values():
            if driver.pid is not None:
                state = driver.state()
                found += [f"{driver.endpoint}: volume {each}" for each in state["volumes"].values()]
                found += [f"{driver.endpoint}: snapshot {each}" for each in state["snapshots"]]
        return found

    def assert_nothing_left(self, seconds: float = 30.0) -> None:
        """Everything comes to nothing."""
        try:
            until(lambda: not self.left(), "nothing is left", seconds)
        except AssertionError as error:
            raise AssertionError("\n".join(["this is left:", *self.left()])) from error


def driver_objects(name: str, **spec: Any) -> list[dict[str, Any]]:
    """The CSIDriver, a StorageClass that waits for the first pod, and a VolumeSnapshotClass."""
    meta = {"name": name.partition(".")[0]}
    secrets = spec.pop("parameters", {})
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": name},
            "spec": {"attachRequired": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"], **spec},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": meta,
            "provisioner": name,
            "parameters": {key: value for key, value in secrets.items() if "snapshotter" not in key},
            "allowVolumeExpansion": True,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": SNAPSHOTS,
            "kind": "VolumeSnapshotClass",
            "metadata": meta,
            "driver": name,
            "deletionPolicy": "Delete",
            "parameters": {key: value for key, value in secrets.items() if "snapshotter" in key},
        },
    ]


class Life:
    """One claim, the pod that uses it and the snapshot of it, all of one name; the steps of a volume's life."""

    def __init__(self, world: World, name: str, *, driver: str = NAME, mode: str = "Filesystem") -> None:
        self.world, self.name, self.driver_name = world, name, driver
        self.driver = world.drivers[driver]
        self.mode = mode
        made = world.manager.api.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "volumeMode": mode,
                    "storageClassName": driver.partition(".")[0],
                    "resources": {"requests": {"storage": "16Mi"}},
                },
            }
        )
        #: What the driver is asked to call the volume, and what it then calls it.
        self.volume_name = f"pvc-{made.metadata.uid}"
        self.handle = f"vol-{hashlib.sha256(self.volume_name.encode()).hexdigest()[:16]}"
        self.snapshot_handle = ""

    def subject_of(self, call: str) -> str:
        """What a rule for that call names."""
        named = {"CreateVolume": self.volume_name, "DeleteSnapshot": self.snapshot_handle}
        return named.get(call, self.handle)

    def fault(self, call: str, *rules: Rule) -> None:
        """Put rules for this volume alone in force."""
        self.driver.script(*(dataclasses.replace(rule, call=call, volume_id=self.subject_of(call)) for rule in rules))

    def pod(self, name: str = "") -> dict[str, Any]:
        """A pod that uses the claim."""
        use = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        if self.mode == "Block":
            use = {"volumeDevices": [{"name": "data", "devicePath": "/dev/data"}]}
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": self.name}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name or self.name, "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i", **use}], "volumes": [volume]},
        }

    # --- steps --------------------------------------------------------------------------------------------------

    def mount(self, **options: Any) -> Any:
        return self.world.manager.mount_pod(self.pod(), **{"timeout": 40, **options})

    def unmount(self, **options: Any) -> None:
        self.world.manager.unmount_pod(self.name, **{"timeout": 40, **options})

    def claim(self) -> PersistentVolumeClaim:
        return self.world.manager.api.get(PersistentVolumeClaim, self.name, "default")

    def wish(self, size: str = "32Mi") -> None:
        """Ask for the claim to be grown."""
        patch = {"spec": {"resources": {"requests": {"storage": size}}}}
        self.world.manager.api.patch(PersistentVolumeClaim, self.name, patch, "default")

    def has(self, size: str = "32Mi") -> bool:
        return self.claim().status.capacity == {"storage": size}

    def snap(self) -> None:
        """Ask for a snapshot."""
        made = self.world.manager.api.create(
            {
                "apiVersion": SNAPSHOTS,
                "kind": "VolumeSnapshot",
                "metadata": {"name": self.name, "namespace": "default"},
                "spec": {
                    "source": {"persistentVolumeClaimName": self.name},
                    "volumeSnapshotClassName": self.driver_name.partition(".")[0],
                },
            }
        )
        digest = hashlib.sha256(f"snapshot-{made.metadata.uid}".encode()).hexdigest()
        self.snapshot_handle = f"snap-{digest[:16]}"

    def has_snapshot(self) -> bool:
        return self.world.manager.api.get(VolumeSnapshot, self.name, "default").status.ready_to_use is True

    def unsnap(self) -> None:
        self.world.manager.api.delete(VolumeSnapshot, self.name, "default")

    def delete(self) -> None:
        """Delete the claim; what it led to goes with it."""
        self.world.manager.api.delete(PersistentVolumeClaim, self.name, "default")

    def exists(self, kind: Any, name: str, namespace: str = "") -> bool:
        try:
            self.world.manager.api.get(kind, name, namespace)
        except ObjectNotFoundError:
            return False
        return True

    def snapshot_is_gone(self) -> bool:
        return not self.exists(VolumeSnapshot, self.name, "default")

    def is_gone(self) -> bool:
        return not self.exists(PersistentVolumeClaim, self.name, "default") and not self.exists(
            PersistentVolume, self.volume_name
        )

    # --- what the driver was asked --------------------------------------------------------------------------------

    def calls(self) -> list[tuple[str, str]]:
        """The calls about this volume, with the codes that they ended with, in the order of their beginning."""
        return self.world.logs[self.driver_name].about((self.handle, self.volume_name, self.snapshot_handle or "-"))


class CallLog:
    """The calls of one driver, read from its file at most every few milliseconds, however many ask."""

    def __init__(self, driver: FakeDriverProcess) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._read_at = -1.0
        self._calls: list[Call] = []

    def about(self, subjects: Sequence[str]) -> list[tuple[str, str]]:
        """Name and code of the calls about any of these; the code is empty while a call is on its way."""
        asked_at = time.monotonic()
        with self._lock:
            if self._read_at < asked_at:
                self._read_at = time.monotonic()
                self._calls = self._driver.calls()
            calls = self._calls
        return [(call.name, call.code) for call in calls if volume_of(call.request) in subjects]
