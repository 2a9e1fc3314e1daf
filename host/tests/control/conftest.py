"""A small world for controllers: the real embedded store, a fake driver, the real plane, recorded events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import KubeObject, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from volumehost.api.store import EmbeddedStore
from volumehost.control.drivers import unknown_driver
from volumehost.control.machinery.controller import ControlContext, Controller
from volumehost.control.machinery.progress import Steps
from volumehost.control.plane import ControlPlane
from volumehost.loader.manager import VolumePluginManager
from volumehost.storage_driver import StorageDriver
from volumehost.testing.plugin_host import RecordedEvent, RecordingEvents
from volumehost.testing.storage_driver import FakeStorageDriver

PATIENCE = 30.0
NODE = "node-1"
DRIVER = "driver.example.com"


class World:
    """``api`` and what controllers work with; ``run`` starts a plane with the controllers given."""

    def __init__(self, path: Path) -> None:
        self.api = EmbeddedStore(str(path / "store.sqlite3"))
        self.plugins = VolumePluginManager()
        self.driver = FakeStorageDriver(DRIVER)
        self.drivers: dict[str, StorageDriver] = {DRIVER: self.driver}
        self.recorder = RecordingEvents()
        self.steps = Steps()
        self.external_drivers = False
        self.volume_in_use: Callable[[str, str], bool] = lambda _node, _volume: False
        self.planes: list[ControlPlane] = []

    def find_driver(self, name: str) -> StorageDriver:
        if name not in self.drivers:
            raise unknown_driver(name, "looking for a driver")
        return self.drivers[name]

    def context(self, **changes: Any) -> ControlContext:
        given: dict[str, Any] = {
            "api": self.api,
            "plugins": self.plugins,
            "driver": self.find_driver,
            "knows_driver": self.drivers.__contains__,
            "node_name": NODE,
            "event": self.recorder.event,
            "progress": self.steps,
            "wall_clock": time.time,
            "external_drivers": self.external_drivers,
            "volume_in_use": self.volume_in_use,
        }
        return ControlContext(**(given | changes))

    def claim(self, name: str = "data", namespace: str = "default") -> PersistentVolumeClaim:
        return self.api.get(PersistentVolumeClaim, name, namespace)

    def volume(self, name: str) -> PersistentVolume:
        return self.api.get(PersistentVolume, name)

    def volumes(self) -> list[PersistentVolume]:
        return self.api.list(PersistentVolume).items

    def bound(self, name: str = "data") -> bool:
        return self.claim(name).status.phase == "Bound"

    def run_all(self, *, first_delay: float = 0.05) -> ControlPlane:
        """A plane at work with every controller of the package."""
        from volumehost.control.assembly import all_controllers

        plane = ControlPlane(
            self.api, lambda plane: all_controllers(self.context(api=plane.api)), self.steps, first_delay=first_delay
        )
        plane.start()
        self.planes.append(plane)
        return plane

    def run(
        self,
        *make: Callable[[ControlContext], Controller],
        clock: Callable[[], float] = time.monotonic,
        first_delay: float = 0.05,
    ) -> ControlPlane:
        """A plane at work with these controllers."""

        def prepare(plane: ControlPlane) -> Sequence[Controller]:
            return [each(self.context(api=plane.api)) for each in make]

        plane = ControlPlane(self.api, prepare, self.steps, clock=clock, first_delay=first_delay)
        plane.start()
        self.planes.append(plane)
        return plane

    def stop(self) -> None:
        while self.planes:
            assert self.planes.pop().stop(PATIENCE)

    def close(self) -> None:
        self.stop()
        self.plugins.close()
        self.api.close()

    def settle(self) -> None:
        """Wait until everything was looked at."""
        self.planes[-1].wait_until(self.planes[-1].settled, PATIENCE, "the plane to settle")

    def wait(self, predicate: Callable[[], bool], what: str = "a condition") -> None:
        self.planes[-1].wait_until(predicate, PATIENCE, what)

    def events(self, reason: str) -> list[RecordedEvent]:
        return [event for event in self.recorder.events if event.reason == reason]

    def gone(self, obj: KubeObject) -> bool:
        from volumehost.control.writes import fresh_or_none

        return fresh_or_none(self.api, obj) is None


class Make:
    """API objects, not yet in any store."""

    @staticmethod
    def storage_class(
        name: str = "fast",
        *,
        provisioner: str = DRIVER,
        delayed: bool = False,
        default: bool = False,
        parameters: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> StorageClass:
        marks = dict(annotations or {})
        if default:
            marks["storageclass.kubernetes.io/is-default-class"] = "true"
        return to_object(
            StorageClass,
            {
                "metadata": {"name": name, "annotations": marks},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer" if delayed else "Immediate",
                "parameters": dict(parameters or {}),
                **fields,
            },
        )

    @staticmethod
    def claim(
        name: str = "data",
        *,
        size: str = "1Gi",
        storage_class: str | None = "fast",
        modes: Sequence[str] = ("ReadWriteOnce",),
        namespace: str = "default",
        annotations: Mapping[str, str] | None = None,
        limit: str = "",
        **fields: Any,
    ) -> PersistentVolumeClaim:
        resources: dict[str, Any] = {"requests": {"storage": size}}
        if limit:
            resources["limits"] = {"storage": limit}
        spec: dict[str, Any] = {"accessModes": list(modes), "resources": resources, **fields}
        if storage_class is not None:
            spec["storageClassName"] = storage_class
        metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
        return to_object(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})

    @staticmethod
    def volume(
        name: str = "pv",
        *,
        size: str = "1Gi",
        storage_class: str = "fast",
        modes: Sequence[str] = ("ReadWriteOnce",),
        policy: str = "Retain",
        claim_ref: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> PersistentVolume:
        spec: dict[str, Any] = {
            "accessModes": list(modes),
            "capacity": {"storage": size},
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": policy,
            **fields,
        }
        if not any(source in spec for source in ("csi", "local", "nfs", "hostPath")):
            spec["hostPath"] = {"path": f"/srv/{name}"}
        if claim_ref is not None:
            spec["claimRef"] = dict(claim_ref)
        return to_object(PersistentVolume, {"metadata": {"name": name, **(metadata or {})}, "spec": spec})

    @staticmethod
    def pod(name: str = "web", *, claims: Sequence[str] = (), node: str = "", volumes: Sequence[Any] = ()) -> Pod:
        used = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": each}} for i, each in enumerate(claims)]
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "volumes": [*used, *volumes]}
        if node:
            spec["nodeName"] = node
        return to_object(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


class ManualClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 1000.0

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


@pytest.fixture(scope="session")
def make() -> type[Make]:
    return Make


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
