"""The gate: a driver that hangs takes a few workers, and once it is back, it is asked for what it was not (BR-52)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from volumehost.api.objects import ConfigMap, KubeObject, ObjectMeta
from volumehost.control.machinery.controller import Key
from volumehost.control.machinery.gate import HANGING_SECONDS, Gate
from volumehost.errors import StorageDriverUnavailableError
from volumehost.testing.storage_driver import FakeStorageDriver

HUNG = "hung.csi.example.com"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def calls() -> Iterator[ExitStack]:
    """Calls that do not come back before the end of the test."""
    with ExitStack() as stack:
        yield stack


def test_calls_that_are_under_way_and_do_not_hang_are_no_reason_to_refuse(clock: Clock, calls: ExitStack) -> None:
    gate = Gate(clock=clock, most=2)
    for _ in range(10):
        calls.enter_context(gate.entered(HUNG))
    clock.now = HANGING_SECONDS / 2
    with gate.entered(HUNG):
        pass


def test_br52_too_many_that_hang_are_and_only_for_that_driver(clock: Clock, calls: ExitStack) -> None:
    gate = Gate(clock=clock, most=2)
    for _ in range(2):
        calls.enter_context(gate.entered(HUNG))
    clock.now = 35.0
    with pytest.raises(StorageDriverUnavailableError) as caught, gate.entered(HUNG):
        pytest.fail("it was begun")
    assert caught.value.driver == HUNG
    assert "2 calls of hung.csi.example.com have not come back, one for 35 s" in str(caught.value)
    with gate.entered("other"):
        pass


def test_when_a_call_comes_back_whoever_was_refused_is_called_once(clock: Clock) -> None:
    freed: list[str] = []
    gate = Gate(freed.append, clock=clock, most=1)
    first = gate.entered(HUNG)
    first.__enter__()
    clock.now = 10
    with pytest.raises(StorageDriverUnavailableError), gate.entered(HUNG):
        pass
    first.__exit__(None, None, None)
    assert freed == [HUNG]
    with gate.entered(HUNG), gate.entered(HUNG):
        pass
    assert freed == [HUNG]


def test_a_call_that_fails_has_come_back(clock: Clock) -> None:
    gate = Gate(clock=clock, most=1)
    for _ in range(3):
        clock.now += 10
        with pytest.raises(ZeroDivisionError), gate.entered(HUNG):
            raise ZeroDivisionError


def test_every_call_of_a_guarded_driver_goes_through(clock: Clock, calls: ExitStack) -> None:
    gate = Gate(clock=clock, most=1)
    driver = gate.guarded(FakeStorageDriver(HUNG))
    assert driver.name == HUNG
    assert driver.capabilities().controls("CREATE_DELETE_VOLUME")
    calls.enter_context(gate.entered(HUNG))
    clock.now = 10
    for call in (driver.capabilities, lambda: driver.delete_volume("h", {})):
        with pytest.raises(StorageDriverUnavailableError):
            call()
    assert driver.name == HUNG


class Calling:
    """A controller of config maps that calls the driver that the map names; one of them hangs."""

    name = "caller"
    kind: type[KubeObject] = ConfigMap

    def __init__(self, gate: Gate, release: threading.Event) -> None:
        self.gate = gate
        self.release = release
        self.done: set[str] = set()
        self.hanging = 0

    def watches(self) -> Mapping[type[KubeObject], Any]:
        def own(obj: KubeObject) -> Iterable[Key]:
            return [Key.of(obj)]

        return {ConfigMap: own}

    def reconcile(self, key: Key) -> None:
        driver = key.name.partition("-")[0]
        with self.gate.entered(driver):
            if driver == "hung":
                __waits_for__ = "CreateVolume of the CSI driver hung"  # noqa: F841
                self.hanging += 1
                self.release.wait(60)
        self.done.add(key.name)


def test_br52_a_hundred_objects_of_a_driver_that_hangs_hold_up_none_of_another(world: Any) -> None:
    release = threading.Event()
    planes: list[Any] = []
    made = Calling(Gate(lambda name: planes[0].driver_freed(name), most=4), release)  # noqa: PLW0108 - it comes later
    names = [f"hung-{number}" for number in range(100)]
    for name in names:
        world.api.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
    try:
        planes.append(world.run(lambda _context: made, first_delay=600.0))
        world.wait(lambda: made.hanging >= 4)
        for number in range(10):
            world.api.create(ConfigMap(metadata=ObjectMeta(name=f"well-{number}", namespace="default")))
        world.wait(lambda: sum(name.startswith("well") for name in made.done) == 10)
        world.wait(lambda: len(list(planes[0]._queue.failures())) == len(names) - made.hanging)
        assert made.hanging < 60
        (line,) = planes[0].explain(ConfigMap(metadata=ObjectMeta(name="hung-0", namespace="default")))
        assert line.startswith("caller: for ")
        assert "s, in CreateVolume of the CSI driver hung, called by " in line
        release.set()
        world.wait(lambda: made.done >= set(names), what="they do not wait for their next attempt")
    finally:
        release.set()
