"""The controllers where they live: the real plane, its watch and its backoff; no hot loops (CSI-EXA-10)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, VolumeAttachment, VolumeSnapshot
from volumehost.control.assembly import all_controllers
from volumehost.control.machinery.progress import Steps
from volumehost.control.plane import JITTER, ControlPlane

PATIENCE = 30.0
V1 = "snapshot.storage.k8s.io/v1"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def plane(world: Any, clock: Clock) -> Iterator[ControlPlane]:
    plane = ControlPlane(world.api, lambda _plane: all_controllers(world.context)[3:], Steps(), clock=clock)
    plane.start()
    yield plane
    assert plane.stop(PATIENCE)


@pytest.fixture
def wait(world: Any) -> Callable[..., None]:
    """Wait until a condition of the world holds; the plane's own clock stands still."""

    def until(predicate: Callable[[], bool]) -> None:
        moment = threading.Event()
        for _ in range(int(PATIENCE / 0.02)):
            if predicate():
                return
            moment.wait(0.02)
        raise AssertionError("it did not come about")

    return until


def test_attach_and_detach(world: Any, plane: ControlPlane, wait: Any) -> None:
    world.volume()
    world.attachment()
    wait(lambda: world.va().status.attach_error is not None)
    world.csi_node()  # what it waited for
    wait(lambda: world.va().status.attached)
    world.api.delete(VolumeAttachment, "va")
    wait(lambda: not world.api.list(VolumeAttachment).items)
    assert world.driver.nodes_of("vol-1") == []
    world.api.delete(PersistentVolume, "pv")
    wait(lambda: not any(name.startswith("external-attacher/") for name in world.pv().metadata.finalizers))


@pytest.mark.parametrize(
    ("method", "begin"),
    [("publish_volume", "attach"), ("expand_volume", "expand"), ("create_snapshot", "snapshot")],
)
@pytest.mark.parametrize("code", ["INTERNAL", "DEADLINE_EXCEEDED"])
def test_a_driver_that_fails_is_called_with_a_backoff(
    world: Any, plane: ControlPlane, clock: Clock, wait: Any, method: str, begin: str, code: str
) -> None:
    world.driver.fail(method, code, times=1000)
    world.storage_class()
    world.bound_claim()
    if begin == "attach":
        world.csi_node()
        world.attachment()
    elif begin == "expand":
        patch = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        world.api.patch(PersistentVolumeClaim, "data", patch, "default")
    else:
        world.create(
            "VolumeSnapshotClass", "fast", version=V1, driver=world.driver.name, deletionPolicy="Delete", parameters={}
        )
        spec = {"source": {"persistentVolumeClaimName": "data"}, "volumeSnapshotClassName": "fast"}
        world.create("VolumeSnapshot", "monday", namespace="default", version=V1, spec=spec)
    wait(lambda: world.driver.count(method) > 0 and plane.settled())
    assert world.driver.count(method) == 1
    for delay in (1.0, 2.0, 4.0, 8.0):
        clock.now += delay - 0.1
        wait(plane.settled)
        before = world.driver.count(method)
        clock.now += 0.2 + JITTER * delay
        queue = plane._queue
        assert queue is not None
        with queue._condition:  # the clock that stands still wakes nobody
            queue._condition.notify_all()
        wait(lambda before=before: world.driver.count(method) > before and plane.settled())
        assert world.driver.count(method) == before + 1


def test_expand_modify_and_snapshot(world: Any, plane: ControlPlane, wait: Any) -> None:
    world.storage_class()
    world.bound_claim()
    world.create(
        "VolumeAttributesClass",
        "gold",
        version="storage.k8s.io/v1",
        driverName=world.driver.name,
        parameters={"iops": "9"},
    )
    world.create(
        "VolumeSnapshotClass", "fast", version=V1, driver=world.driver.name, deletionPolicy="Delete", parameters={}
    )
    wishes = {"volumeAttributesClassName": "gold", "resources": {"requests": {"storage": "2Gi"}}}
    world.api.patch(PersistentVolumeClaim, "data", {"spec": wishes}, "default")
    wait(lambda: world.pvc().status.current_volume_attributes_class_name == "gold")
    wait(lambda: world.pvc().status.allocated_resource_statuses == {"storage": "NodeResizePending"})
    spec = {"source": {"persistentVolumeClaimName": "data"}, "volumeSnapshotClassName": "fast"}
    world.create("VolumeSnapshot", "monday", namespace="default", version=V1, spec=spec)
    wait(lambda: world.api.get(VolumeSnapshot, "monday", "default").status.ready_to_use)
    wait(lambda: not any(name.startswith("snapshot.") for name in world.pvc().metadata.finalizers))
    world.api.delete(VolumeSnapshot, "monday", "default")
    wait(lambda: not world.api.list(VolumeSnapshot).items)
    assert world.driver.snapshots == []
