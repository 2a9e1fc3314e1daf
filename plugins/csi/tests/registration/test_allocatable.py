"""Drivers are asked again how many volumes the node can take (CSI-UPD, CSI-EDGE-37)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from volumehost.api.objects import CSIDriver, CSIDriverSpec, ObjectMeta
from volumehost.errors import NotAvailableOnHostError, ObjectNotFoundError, StorageDriverError, StoreError
from volumehost.storage_driver import DriverOrigin
from volumehost_csi.client import NodeInfo
from volumehost_csi.registration.allocatable import AllocatableUpdater
from volumehost_csi.registration.store import DriverInstance, DriverStore
from volumehost_csi.registration.versions import parse_version

A, B = "a.example.com", "b.example.com"


class Clock:
    """Time passes when it is told to; whoever waits for the updater is woken by a look every few milliseconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class World:
    """A store, CSIDriver periods, and a handler that counts refreshes."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = DriverStore()
        self.periods: dict[str, int | None] = {}
        self.error: Exception | None = None
        self.asked: list[tuple[float, str]] = []
        self.fail = False
        self.hold: dict[str, threading.Event] = {}
        self.updater = AllocatableUpdater(self.store, self, self.read, clock=self.clock, look_seconds=10)

    def read(self, name: str) -> CSIDriver:
        if self.error is not None:
            raise self.error
        if name not in self.periods:
            raise ObjectNotFoundError("none")
        spec = CSIDriverSpec(node_allocatable_update_period_seconds=self.periods[name])
        return CSIDriver(metadata=ObjectMeta(name=name), spec=spec)

    def refresh(self, name: str) -> None:
        self.asked.append((self.clock.now, name))
        if name in self.hold:
            assert self.hold[name].wait(30)
        if self.fail:
            raise StorageDriverError("it does not answer", driver=name)

    def add(self, name: str, *, node: bool = True) -> DriverInstance:
        instance = DriverInstance(
            name,
            "/x.sock",
            version=parse_version("1.0"),
            origin=DriverOrigin.SOCKET,
            identity=name,
            node_info=NodeInfo("n") if node else None,
        )
        self.store.add(instance)
        return instance

    def pass_time(self, seconds: float) -> None:
        """One turn of the thread at a later time."""
        self.clock.now += seconds
        with self.updater._condition:
            self.updater._condition.notify_all()


@pytest.fixture
def world(new_threads) -> Iterator[World]:
    world = World()
    world.updater.start()
    yield world
    world.updater.stop(30)
    assert not new_threads("volumehost-allocatable")


@pytest.fixture
def eventually(wait_until) -> Callable[[Callable[[], object], str], object]:
    return wait_until


def test_no_thread_without_drivers(world, eventually) -> None:
    assert world.updater._thread is None
    driver = world.add(A)
    eventually(lambda: world.updater._thread is not None or not world.updater._changed, "looked at")
    world.store.remove(driver)
    eventually(lambda: world.updater._thread is None, "the thread ended")


def test_the_first_refresh_comes_after_one_period_then_each(world, eventually) -> None:
    """CSI-UPD-03, -04."""
    world.periods[A] = 30
    world.add(A)
    eventually(lambda: world.updater.period(A) == 30, "scheduled")
    world.pass_time(29)
    world.pass_time(1)
    eventually(lambda: world.asked == [(1030.0, A)], "the first refresh")
    world.fail = True
    world.pass_time(30)
    eventually(lambda: len(world.asked) == 2, "the second")
    world.pass_time(30)
    eventually(lambda: len(world.asked) == 3, "and one more, though the last one failed")


@pytest.mark.parametrize("period", [None, 0, "absent"])
def test_without_a_period_nothing_is_asked(world, eventually, period) -> None:
    """CSI-UPD-05, CSI-EDGE-37."""
    if period != "absent":
        world.periods[A] = period
    world.periods[B] = 20
    world.add(A)
    world.add(B)
    eventually(lambda: world.updater.period(B), "both looked at")
    assert world.updater.period(A) == 0
    world.pass_time(25)
    eventually(lambda: world.asked == [(1025.0, B)], "the other one asked")


def test_a_driver_without_a_node_service_is_not_asked(world, eventually) -> None:
    world.periods = {A: 20, B: 20}
    world.add(A, node=False)
    world.add(B)
    eventually(lambda: world.updater.period(B), "looked at")
    assert world.updater.period(A) == 0


def test_the_same_period_keeps_its_phase(world, eventually) -> None:
    """CSI-UPD-06 improved: registering again, or another change of the CSIDriver, postpones nothing."""
    world.periods[A] = 30
    world.add(A)
    eventually(lambda: world.updater.period(A) == 30, "scheduled")
    world.pass_time(5)
    world.updater.sync(A)
    eventually(lambda: not world.updater._changed, "synced")
    world.pass_time(25)
    eventually(lambda: world.asked == [(1030.0, A)], "at its time")


def test_a_change_of_the_csi_driver_is_noticed(world, eventually) -> None:
    """CSI-UPD-02: added, changed, and removed."""
    world.add(A)
    eventually(lambda: not world.updater._changed, "looked at")
    world.periods[A] = 60
    world.pass_time(10)
    eventually(lambda: world.updater.period(A) == 60, "added")
    world.periods[A] = 20
    world.pass_time(10)
    eventually(lambda: world.updater.period(A) == 20, "changed")
    world.pass_time(20)
    eventually(lambda: world.asked, "asked by the new period")
    del world.periods[A]
    world.pass_time(10)
    eventually(lambda: world.updater.period(A) == 0, "removed")


@pytest.mark.parametrize("error", [StoreError("no answer"), NotAvailableOnHostError("no API")])
def test_a_csi_driver_that_cannot_be_read_stops_it(world, eventually, error) -> None:
    """CSI-UPD-03, CSI-EDGE-37; it goes on when it can be read again."""
    world.periods[A] = 30
    world.add(A)
    eventually(lambda: world.updater.period(A) == 30, "scheduled")
    world.error = error
    world.pass_time(10)
    eventually(lambda: world.updater.period(A) == 0, "stopped")
    world.error = None
    world.pass_time(10)
    eventually(lambda: world.updater.period(A) == 30, "again")


def test_a_driver_that_leaves_is_forgotten(world, eventually) -> None:
    """CSI-EDGE-37."""
    world.periods = {A: 30, B: 30}
    gone = world.add(A)
    world.add(B)
    eventually(lambda: world.updater.period(A) and world.updater.period(B), "scheduled")
    world.store.remove(gone)
    eventually(lambda: not world.updater.period(A), "forgotten")
    world.pass_time(30)
    eventually(lambda: world.asked == [(1030.0, B)], "only the other is asked")


def test_a_driver_that_hangs_holds_up_no_other_and_is_not_asked_twice(world, eventually) -> None:
    """CSI-UPD-04."""
    world.periods = {A: 20, B: 20}
    world.hold[A] = threading.Event()
    world.add(A)
    world.add(B)
    eventually(lambda: world.updater.period(A) and world.updater.period(B), "scheduled")
    world.pass_time(20)
    eventually(lambda: len(world.asked) == 2, "both asked")
    world.pass_time(20)
    eventually(lambda: world.asked[2:] == [(1040.0, B)], "the other one again")
    world.hold[A].set()
    eventually(lambda: not world.updater._asking, "answered")
    world.pass_time(20)
    eventually(lambda: (1060.0, A) in world.asked, "asked again")


def test_whatever_is_raised_costs_the_other_drivers_nothing(world, eventually, caplog) -> None:
    world.periods = {A: 20}
    world.add(A)
    eventually(lambda: world.updater.period(A), "scheduled")
    world.error = KeyError("an API client may raise anything")
    world.pass_time(10)
    eventually(lambda: not world.updater.period(A), "not read")
    assert "may raise anything" in caplog.text
    world.error = None
    world.pass_time(10)
    eventually(lambda: world.updater.period(A), "read again")


def test_on_demand(world) -> None:
    """CSI-PLUG-24: a failure is logged, not raised."""
    world.fail = True
    world.updater.refresh(A)
    assert [name for _, name in world.asked] == [A]
