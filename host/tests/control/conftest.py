"""A small world for controllers: the real embedded store, a fake driver, the real plane, recorded events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from volumehost.api.objects import KubeObject
from volumehost.api.store import EmbeddedStore
from volumehost.control.controller import ControlContext, Controller
from volumehost.control.drivers import unknown_driver
from volumehost.control.plane import ControlPlane
from volumehost.control.progress import Steps
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
        }
        return ControlContext(**(given | changes))

    def run(
        self, *make: Callable[[ControlContext], Controller], clock: Callable[[], float] = time.monotonic
    ) -> ControlPlane:
        """A plane at work with these controllers."""

        def prepare(_plane: ControlPlane) -> Sequence[Controller]:
            return [each(self.context()) for each in make]

        plane = ControlPlane(self.api, prepare, self.steps, clock=clock)
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


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
