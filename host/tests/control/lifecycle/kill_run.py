"""Run by test_kill.py: kills a process at every step of a scenario, lets another one go on, and tells what is wrong.

A step is a moment before or after a write to the API or to the driver's state. Each attempt is a process of its own,
forked from this one, which has no threads and has opened nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from volumehost.api.objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    VolumeSnapshot,
    VolumeSnapshotContent,
)
from volumehost.api.store import EmbeddedStore
from volumehost.control.assembly import all_controllers
from volumehost.control.machinery.controller import Key
from volumehost.errors import VolumeHostError
from volumehost.testing.storage_driver import FakeStorageDriver

FINALIZER = "external-attacher/driver-example-com"
V1 = "snapshot.storage.k8s.io/v1"
#: A killed process loses nothing that it wrote, synced or not: no need to wait for a disk.
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def load_world() -> Any:
    spec = importlib.util.spec_from_file_location("lifecycle_world", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.World


World = load_world()


class Killer:
    """Counts steps and kills this process at one of them."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def step(self, *_where: str) -> None:
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class SteppingStore(EmbeddedStore):
    """Every write is two steps."""

    killer: Killer | None = None

    @contextlib.contextmanager
    def _stepping(self) -> Any:
        if self.killer is not None:
            self.killer.step("before")
        yield
        if self.killer is not None:
            self.killer.step("after")

    def create(self, obj: Any) -> Any:
        with self._stepping():
            return super().create(obj)

    def _change(self, *args: Any) -> Any:
        with self._stepping():
            return super()._change(*args)

    def patch(self, *args: Any, **kwargs: Any) -> Any:
        with self._stepping():
            return super().patch(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        with self._stepping():
            return super().delete(*args, **kwargs)


@contextlib.contextmanager
def world_in(directory: str, killer: Killer | None = None, **driver: Any) -> Any:
    api = SteppingStore(str(Path(directory) / "store.sqlite3"))
    observer = killer.step if killer is not None else None
    fake = FakeStorageDriver(state_file=str(Path(directory) / "driver.json"), observer=observer, **driver)
    with api:
        world = World(api, fake, {fake.name: fake})
        yield world


def drive(world: Any) -> None:
    """Reconcile everything until nothing changes any more, as the plane would."""
    controllers = all_controllers(world.context)[3:]
    for _ in range(40):
        again = False
        before = world.api.list(PersistentVolume).resource_version
        for controller in controllers:
            for obj in world.api.list(controller.kind).items:
                try:
                    after = controller.reconcile(Key.of(obj))
                    again = again or (after is not None and after < 40)
                except VolumeHostError:
                    again = True
        if not again and world.api.list(PersistentVolume).resource_version == before:
            return
    raise AssertionError("it does not settle")


@dataclass(frozen=True)
class Scenario:
    """``prepare`` makes the objects, ``wish`` is what is then worked on; ``meanwhile`` must hold after any kill."""

    prepare: Callable[[Any], None]
    wish: Callable[[Any], None]
    holds: Callable[[Any], str]
    meanwhile: Callable[[Any], str] = lambda _world: ""
    after_kill: Callable[[Any], None] = lambda _world: None
    driver: tuple[tuple[str, Any], ...] = ()


# --- attach -----------------------------------------------------------------------------------------------------------


def _attachable(world: Any) -> None:
    world.csi_node()
    world.volume()


def _attached(world: Any) -> None:
    _attachable(world)
    world.attachment()
    drive(world)


def _is_attached(world: Any) -> str:
    va = world.va()
    right = va.status.attached and FINALIZER in va.metadata.finalizers and world.driver.nodes_of("vol-1") == ["node-id"]
    return "" if right else f"not attached: {va} {world.driver.nodes_of('vol-1')}"


def _is_detached(world: Any) -> str:
    left = [va.metadata.name for va in world.api.list(VolumeAttachment).items]
    return f"{left} {world.driver.nodes_of('vol-1')}" if left or world.driver.nodes_of("vol-1") else ""


def _is_written_down(world: Any) -> str:
    """BR-47: whatever is attached, a finalizer tells that it may be."""
    finalizers = [name for va in world.api.list(VolumeAttachment).items for name in va.metadata.finalizers]
    return "attached without a word of it" if world.driver.nodes_of("vol-1") and FINALIZER not in finalizers else ""


def _delete_attachment(world: Any) -> None:
    if world.api.list(VolumeAttachment).items:
        world.api.delete(VolumeAttachment, "va")


# --- expand -----------------------------------------------------------------------------------------------------------


def _claimed(world: Any) -> None:
    world.storage_class()
    world.bound_claim()


def _ask(world: Any) -> None:
    patch = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    world.api.patch(PersistentVolumeClaim, "data", patch, "default")


def _waits_for_node(world: Any) -> str:
    claim, volume = world.pvc(), world.pv()
    found = (
        claim.status.allocated_resource_statuses,
        claim.status.allocated_resources,
        claim.status.capacity,
        volume.spec.capacity,
        volume.metadata.annotations.get("volume.alpha.kubernetes.io/pre-resize-capacity"),
        world.driver.volumes["vol-1"],
    )
    two, one = {"storage": "2Gi"}, {"storage": "1Gi"}
    return "" if found == ({"storage": "NodeResizePending"}, two, one, two, "1Gi", 2**31) else str(found)


def _is_expanded(world: Any) -> str:
    claim, volume = world.pvc(), world.pv()
    annotations = volume.metadata.annotations
    found = (claim.status.allocated_resource_statuses, claim.status.capacity, volume.spec.capacity, annotations)
    two = {"storage": "2Gi"}
    return "" if found == ({}, two, two, {}) and not claim.status.conditions else str(found)


def _is_no_lie(world: Any) -> str:
    """No object tells of a size that the driver does not have."""
    sizes = {"1Gi": 2**30, "2Gi": 2**31}
    told = {world.pvc().status.capacity["storage"], world.pv().spec.capacity["storage"]}
    return (
        "a size is told that is not there" if max(map(sizes.__getitem__, told)) > world.driver.volumes["vol-1"] else ""
    )


# --- modify -----------------------------------------------------------------------------------------------------------


def _modifiable(world: Any) -> None:
    world.bound_claim()
    world.create(
        "VolumeAttributesClass",
        "gold",
        version="storage.k8s.io/v1",
        driverName=world.driver.name,
        parameters={"iops": "gold"},
    )


def _ask_for_gold(world: Any) -> None:
    patch = {"spec": {"volumeAttributesClassName": "gold"}}
    world.api.patch(PersistentVolumeClaim, "data", patch, "default")


def _is_gold(world: Any) -> str:
    status = world.pvc().status
    found = (status.current_volume_attributes_class_name, status.modify_volume_status, status.conditions)
    volume = world.pv().spec.volume_attributes_class_name
    right = found == ("gold", None, []) and volume == "gold" and world.driver.parameters_of("vol-1") == {"iops": "gold"}
    return "" if right else f"{found} {volume}"


# --- snapshots --------------------------------------------------------------------------------------------------------


def _snapshottable(world: Any) -> None:
    _claimed(world)
    world.create(
        "VolumeSnapshotClass", "fast", version=V1, driver=world.driver.name, deletionPolicy="Delete", parameters={}
    )


def _take(world: Any) -> None:
    spec = {"source": {"persistentVolumeClaimName": "data"}, "volumeSnapshotClassName": "fast"}
    world.create("VolumeSnapshot", "monday", namespace="default", version=V1, spec=spec)


def _taken(world: Any) -> None:
    _snapshottable(world)
    _take(world)
    drive(world)


def _is_taken(world: Any) -> str:
    snapshot = world.api.get(VolumeSnapshot, "monday", "default")
    contents = world.api.list(VolumeSnapshotContent).items
    held = [name for name in world.pvc().metadata.finalizers if name.startswith("snapshot.")]
    right = snapshot.status.ready_to_use and len(contents) == 1 and len(world.driver.snapshots) == 1 and not held
    return "" if right else f"{snapshot} {contents} {world.driver.snapshots} {held}"


def _delete_snapshot(world: Any) -> None:
    if world.api.list(VolumeSnapshot).items:
        world.api.delete(VolumeSnapshot, "monday", "default")


def _is_gone(world: Any) -> str:
    objects = [*world.api.list(VolumeSnapshot).items, *world.api.list(VolumeSnapshotContent).items]
    held = [name for name in world.pvc().metadata.finalizers if name.startswith("snapshot.")]
    return f"{objects} {world.driver.snapshots} {held}" if objects or world.driver.snapshots or held else ""


def _attach(world: Any) -> None:
    world.attachment()


SCENARIOS = {
    "attach": Scenario(_attachable, _attach, _is_attached, _is_written_down),
    "attach, then deleted": Scenario(_attachable, _attach, _is_detached, _is_written_down, _delete_attachment),
    "detach": Scenario(_attached, _delete_attachment, _is_detached, _is_written_down),
    "expand": Scenario(_claimed, _ask, _waits_for_node, _is_no_lie),
    "expand without a node": Scenario(
        _claimed, _ask, _is_expanded, _is_no_lie, driver=(("expansion_needs_node", False),)
    ),
    "modify": Scenario(_modifiable, _ask_for_gold, _is_gold),
    "snapshot, then deleted": Scenario(_snapshottable, _take, _is_gone, after_kill=_delete_snapshot),
    "snapshot that takes a while": Scenario(_snapshottable, _take, _is_taken, driver=(("ready_after", 3),)),
    "snapshot deleted": Scenario(_taken, _delete_snapshot, _is_gone),
}


def in_child(work: Callable[[], str]) -> str:
    """What ``work`` told in a process of its own; "killed" when it was."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            told = work()
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writable, told.encode()[:60_000])
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return "killed" if os.WIFSIGNALED(status) else text


def attempt(scenario: Scenario, directory: str, at: int) -> tuple[bool, str]:
    """Whether the process was killed, and what was wrong afterwards."""
    driver = dict(scenario.driver)

    def work() -> str:
        killer = Killer(at)
        with world_in(directory, killer, **driver) as world:
            scenario.wish(world)
            world.api.killer = killer
            drive(world)
        return ""

    def go_on() -> str:
        with world_in(directory, **driver) as world:
            problem = scenario.meanwhile(world)
            if problem:
                return problem
            scenario.after_kill(world)
            drive(world)
            return scenario.holds(world)

    told = in_child(work)
    if told not in {"killed", ""}:
        return False, f"work: {told}"
    return told == "killed", in_child(go_on)


def prepare(scenario: Scenario, directory: str) -> str:
    with world_in(directory, **dict(scenario.driver)) as world:
        scenario.prepare(world)
    return ""


def main(name: str) -> None:
    scenario = SCENARIOS[name]
    # What the children need is loaded once, here; nothing is opened.

    all_controllers(World(None, None).context)
    at, problems = 0, []
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        prepared = str(Path(directory) / "prepared")
        problem = in_child(lambda: prepare(scenario, prepared))
        while not problem:
            at += 1
            place = str(Path(directory) / str(at))
            shutil.copytree(prepared, place)
            killed, wrong = attempt(scenario, place, at)
            if wrong:
                problems.append(f"killed at step {at}: {wrong}")
            if not killed:
                break
    print(json.dumps({"steps": at - 1, "problems": [*problems, *([problem] if problem else [])]}))


if __name__ == "__main__":
    main(sys.argv[1])
