"""What a user is told while a call fails: driver, call, code, and when it is tried again (BR-83); for every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from world import NAME, Life, World, refused, until

from volumehost.api.objects import Event, PersistentVolume, PersistentVolumeClaim, VolumeSnapshot
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root

#: What the wait says that ends, or what there is to be asked, while the call fails.
Told = Callable[[World, Life, str], Iterable[str]]


def _mounting(world: World, life: Life, code: str) -> Iterable[str]:
    return refused(life.mount, code)


def _unmounting(world: World, life: Life, code: str) -> Iterable[str]:
    return refused(life.unmount, code)


def _deleting(world: World, life: Life, code: str) -> Iterable[str]:
    life.unmount()
    life.delete()
    return _explained(world, lambda: world.manager.api.get(PersistentVolume, life.volume_name))


def _growing(world: World, life: Life, code: str) -> Iterable[str]:
    life.wish()
    return _explained(world, life.claim)


def _growing_on_the_node(world: World, life: Life, code: str) -> Iterable[str]:
    life.wish()
    status = until(
        lambda: [each for each in world.manager.status() if each.name == life.name and each.volumes[0].error], ""
    )
    return [status[0].volumes[0].explain()]


def _snapping(world: World, life: Life, code: str) -> Iterable[str]:
    from volumehost.api.objects import VolumeSnapshotContent

    life.snap()
    return _explained(world, lambda: _content(world, life, VolumeSnapshotContent))


def _unsnapping(world: World, life: Life, code: str) -> Iterable[str]:
    from volumehost.api.objects import VolumeSnapshotContent

    life.unsnap()
    return _explained(world, lambda: _content(world, life, VolumeSnapshotContent))


def _content(world: World, life: Life, kind: type) -> object:
    return next((x for x in world.manager.api.list(kind).items if x.spec.volume_snapshot_ref.name == life.name), None)


def _explained(world: World, find: Callable[[], object]) -> Iterable[str]:
    def lines() -> list[str]:
        found = find()
        told = world.manager.control.explain(found) if found is not None else []
        return [line for line in told if "failed" in line]

    return until(lines, "the control plane tells of a failure")


CASES: dict[str, tuple[str, Told]] = {
    "CreateVolume": ("", _mounting),
    "ControllerPublishVolume": ("", _mounting),
    "NodeStageVolume": ("", _mounting),
    "NodePublishVolume": ("", _mounting),
    "NodeUnpublishVolume": ("mounted", _unmounting),
    "NodeUnstageVolume": ("mounted", _unmounting),
    "ControllerUnpublishVolume": ("mounted", _unmounting),
    "DeleteVolume": ("mounted", _deleting),
    "ControllerExpandVolume": ("mounted", _growing),
    "NodeExpandVolume": ("mounted", _growing_on_the_node),
    "CreateSnapshot": ("mounted", _snapping),
    "DeleteSnapshot": ("snapped", _unsnapping),
}


#: There is no event on a pod that goes, as in the kubelet; the wait and the status tell.
SILENT = ("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume")


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("INTERNAL", Rule(times=None, code="INTERNAL", message="the pool is\non fire")),
        ("UNAVAILABLE", Rule(times=None, code="UNAVAILABLE", message="come back later")),
        ("DEADLINE_EXCEEDED", Rule(times=None, hang=True, code="INTERNAL")),
    ],
)
def test_driver_call_code_and_the_next_try_are_told(world: World, code: str, rule: Rule) -> None:
    world.driver()
    world.begin()
    world.prepare()

    def ask(number: int, call: str) -> str:
        life = Life(world, f"life-{number}")
        before, told = CASES[call]
        if before:
            life.mount()
        if before == "snapped":
            life.snap()
            until(life.has_snapshot, "the snapshot is ready")
        life.fault(call, rule)
        lines = list(told(world, life, code))
        good = [line for line in lines if all(each in line for each in (NAME, call, code)) and _tells_when(line)]
        return "" if good else f"{call}: {lines}"

    with ThreadPoolExecutor(len(CASES)) as pool:
        bad = list(filter(None, pool.map(ask, range(len(CASES)), CASES)))
    events = [event.message for event in world.manager.api.list(Event).items]
    for call in CASES:
        if call in SILENT:
            continue
        if not any(call in text and NAME in text and code in text for text in events):
            bad.append(f"{call}: no event")
    assert not bad, "\n".join(bad)
    _come_to_nothing(world)


def _tells_when(line: str) -> bool:
    """When it is tried again, or that this is just being done."""
    return (
        "next retry in" in line
        or "next try in" in line
        or "tried again now" in line
        or (", operation " in line and " for " in line)
    )


def _come_to_nothing(world: World) -> None:
    """The driver recovers."""
    driver = world.drivers[NAME]
    driver.clear_script()
    driver.release()
    for each in world.manager.api.list(VolumeSnapshot).items:
        world.manager.api.delete(VolumeSnapshot, each.metadata.name, "default")
    world.manager.unmount_all(timeout=40)
    for claim in world.manager.api.list(PersistentVolumeClaim).items:
        world.manager.api.delete(PersistentVolumeClaim, claim.metadata.name, "default")
    world.assert_nothing_left(40)
