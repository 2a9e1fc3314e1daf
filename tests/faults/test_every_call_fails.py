"""Each call of a volume's life fails in each way, once or for long, and its pod stays or goes meanwhile.

What was wanted is there in the end, and nothing is left of what was not (BR-31, -32, -47, -48, CSI-ERR-04, -05, -09,
-10).

All ways for one call are tried at the same time, each with a volume of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from world import RPC_TIMEOUT, Life, World, until

from volumehost.api.objects import PersistentVolume
from volumehost.errors import VolumesFailedError, WaitTimeoutError
from volumehost_csi.failures import INFEASIBLE_CODES, UNCERTAIN_CODES
from volumehost_csi_kit.fake import Rule

pytestmark = pytest.mark.root

CODES = (
    *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)

#: Replies that no driver may give, by call.
NONSENSE: dict[str, dict[str, dict[str, Any]]] = {
    "CreateVolume": {
        "nothing": {},
        "no id": {"volume": {"capacity_bytes": 16 << 20}},
        "negative size": {"volume": {"volume_id": "odd", "capacity_bytes": -1}},
        "too small": {"volume": {"volume_id": "odd", "capacity_bytes": 1}},
    },
    "ControllerExpandVolume": {
        "nothing": {},
        "negative size": {"capacity_bytes": -1},
        "too small": {"capacity_bytes": 1},
    },
    "NodeExpandVolume": {"negative size": {"capacity_bytes": -1}, "too small": {"capacity_bytes": 1}},
    "CreateSnapshot": {
        "nothing": {},
        "no id": {"snapshot": {"source_volume_id": "x", "creation_time": "2026-01-01T00:00:00Z"}},
        "of another volume": {
            "snapshot": {"snapshot_id": "s", "source_volume_id": "x", "creation_time": "2026-01-01T00:00:00Z"}
        },
        "no time": {"snapshot": {"snapshot_id": "s", "source_volume_id": "x"}},
    },
}  # fmt: skip

SETS_UP = ("CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume")
GROWS = ("ControllerExpandVolume", "NodeExpandVolume")
TAKES_DOWN = ("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume")
OPPOSITE = {
    "CreateVolume": "DeleteVolume",
    "ControllerPublishVolume": "ControllerUnpublishVolume",
    "NodeStageVolume": "NodeUnstageVolume",
    "NodePublishVolume": "NodeUnpublishVolume",
    "CreateSnapshot": "DeleteSnapshot",
}


@dataclass(frozen=True)
class Fault:
    """What goes wrong. ``uncertain``: the driver may have done the work for all that the host knows."""

    name: str
    rule: Rule
    uncertain: bool


def faults_of(call: str) -> list[Fault]:
    # RESOURCE_EXHAUSTED of CreateVolume is the answer that there is no room for it.
    uncertain = UNCERTAIN_CODES - ({"RESOURCE_EXHAUSTED"} if call == "CreateVolume" else set())
    found = [Fault(f"{code} before", Rule(code=code), code in uncertain) for code in CODES]
    # The work is done, and the answer says that it may not be.
    found += [Fault(f"{code} after", Rule(code=code, when="after"), uncertain=True) for code in sorted(uncertain)]
    found += [
        Fault("hangs before", Rule(hang=True, code="INTERNAL"), uncertain=True),
        Fault("hangs after", Rule(hang=True, code="INTERNAL", when="after"), uncertain=True),
        # What it does, it does when the host has given up waiting.
        Fault("late", Rule(delay=1.3 * RPC_TIMEOUT), uncertain=True),
    ]
    found += [
        Fault(f"answers {name}", Rule(reply=reply), uncertain=True) for name, reply in NONSENSE.get(call, {}).items()
    ]
    return found


def run(world: World, call: str, story: Callable[[World, str, Fault, Life], None]) -> None:
    """Live every story at once; tells all that ended badly, and what is left of them."""
    world.driver()
    world.begin()
    world.prepare()

    def live(number: int, fault: Fault) -> str:
        life = Life(world, f"life-{number}")
        try:
            story(world, call, fault, life)
        except Exception as error:  # told with the others
            place = "".join(traceback.format_tb(error.__traceback__)[-3:])
            head = f"{life.name} {life.handle} {fault.name}: {type(error).__name__}: {error}"
            return f"{head}\n{place}    calls: {life.calls()}"
        return ""

    faults = faults_of(call)
    with ThreadPoolExecutor(len(faults)) as pool:
        told = list(filter(None, pool.map(live, range(len(faults)), faults)))
    assert not told, "\n".join(told)
    world.drivers["fake.csi.example.com"].clear_script()
    world.drivers["fake.csi.example.com"].release()
    world.assert_nothing_left()


def is_allowed(call: str, fault: Fault, life: Life) -> None:
    """The opposite call was made for what may be there; and not where nothing can be, as far as the table tells."""
    calls = life.calls()
    opposite = OPPOSITE.get(call)
    if opposite is None:
        return
    began = any(name == call for name, _ in calls)
    worked = (call, "OK") in calls
    if began and (fault.uncertain or worked) and not fault.name.startswith("answers"):
        assert opposite in [name for name, _ in calls], f"{opposite} was never called"
    if not fault.uncertain and not worked and call in ("NodeStageVolume", "NodePublishVolume", "CreateVolume"):
        assert opposite not in [name for name, _ in calls], f"{opposite} was called for nothing"


def end(life: Life) -> None:
    life.unmount()
    life.delete()
    until(life.is_gone, "the volume is gone", 40)


# --- setting up ---------------------------------------------------------------------------------------------------


def once_and_then_well(world: World, call: str, fault: Fault, life: Life) -> None:
    life.fault(call, fault.rule)
    try:
        life.mount(attempts=1)
    except VolumesFailedError:
        life.mount()
    calls = [name for name, _ in life.calls()]
    assert calls.count(call) >= 2
    status = next(status for status in world.manager.status() if status.name == life.name)
    assert status.ready
    (volume,) = status.volumes
    assert volume.mounted
    with open(f"{volume.path}/kept", "w") as file:
        file.write("content")
    end(life)


def pod_deleted_meanwhile(world: World, call: str, fault: Fault, life: Life) -> None:
    if call in ("CreateVolume", "ControllerPublishVolume"):
        rule = dataclasses.replace(fault.rule, times=2)  # only the call itself can tell what came of it
    else:
        rule = dataclasses.replace(fault.rule, times=None)
    life.fault(call, rule)
    with contextlib.suppress(VolumesFailedError, WaitTimeoutError):
        life.mount(attempts=1, timeout=1.5 * RPC_TIMEOUT + 1)
    end(life)
    is_allowed(call, fault, life)


@pytest.mark.parametrize("call", SETS_UP)
def test_it_fails_once_and_the_pod_gets_its_volume(world: World, call: str) -> None:
    run(world, call, once_and_then_well)


@pytest.mark.parametrize("call", SETS_UP)
def test_it_fails_and_the_pod_goes(world: World, call: str) -> None:
    run(world, call, pod_deleted_meanwhile)


# --- taking down --------------------------------------------------------------------------------------------------


def taken_down_at_last(world: World, call: str, fault: Fault, life: Life) -> None:
    life.mount()
    life.fault(call, dataclasses.replace(fault.rule, times=2))
    end(life)
    codes = [code for name, code in life.calls() if name == call]
    assert codes[-1] == "OK"
    assert len(codes) >= 3


def another_pod_comes(world: World, call: str, fault: Fault, life: Life) -> None:
    """BR-32: what was asked to be undone is not there until it was done anew."""
    life.mount()
    life.fault(call, fault.rule)
    with contextlib.suppress(WaitTimeoutError):
        life.unmount(timeout=0.3)
    other = world.manager.mount_pod(life.pod(f"{life.name}-again"), timeout=40)
    assert other.ready
    assert other.volumes[0].mounted
    names = [name for name, code in life.calls() if code == "OK" or name == call]
    for undone, done in (
        ("NodeUnstageVolume", "NodeStageVolume"),
        ("ControllerUnpublishVolume", "ControllerPublishVolume"),
    ):
        if undone in names:
            assert done in names[len(names) - names[::-1].index(undone) :], f"{done} was not called again"
    world.manager.unmount_pod(f"{life.name}-again", timeout=40)
    until(lambda: not any(status.name == life.name for status in world.manager.status()), "the first pod is gone", 40)
    life.delete()
    until(life.is_gone, "the volume is gone", 40)


@pytest.mark.parametrize("call", [*TAKES_DOWN, "DeleteVolume"])
def test_it_fails_twice_and_nothing_is_left(world: World, call: str) -> None:
    run(world, call, taken_down_at_last)


@pytest.mark.parametrize("call", TAKES_DOWN)
def test_it_fails_and_another_pod_comes(world: World, call: str) -> None:
    run(world, call, another_pod_comes)


# --- growing ------------------------------------------------------------------------------------------------------


def grown_at_last(world: World, call: str, fault: Fault, life: Life) -> None:
    life.mount()
    life.fault(call, fault.rule)
    size = "32Mi"
    life.wish(size)
    if fault.rule.code == "FAILED_PRECONDITION":  # the driver cannot grow it while it is used
        until(lambda: condition_tells(life, call, fault.rule.code), "the claim tells why it does not grow")
        life.unmount()
        until(lambda: ("ControllerExpandVolume", "OK") in life.calls(), "the controller has grown it")
        life.mount()
    elif call == "ControllerExpandVolume" and fault.rule.code in (*INFEASIBLE_CODES, "UNIMPLEMENTED"):
        # Not that size, ever; perhaps another one.
        until(lambda: "ControllerResizeInfeasible" in states(life), "the claim is told to be infeasible")
        assert condition_tells(life, call, fault.rule.code)
        size = "48Mi"
        life.wish(size)
    until(lambda: life.has(size), "the claim has grown", 40)
    calls = life.calls()
    assert [code for name, code in calls if name == "ControllerExpandVolume"][-1] == "OK"
    assert [code for name, code in calls if name == "NodeExpandVolume"][-1] == "OK"
    assert life.driver.state()["volumes"][life.handle]["capacity_bytes"] == int(size[:2]) << 20
    assert world.manager.api.get(PersistentVolume, life.volume_name).spec.capacity == {"storage": size}
    end(life)


def states(life: Life) -> list[str]:
    return list(life.claim().status.allocated_resource_statuses.values())


def condition_tells(life: Life, call: str, code: str) -> bool:
    """Whether a condition of the claim has driver, call and code."""
    said = code if code != "UNIMPLEMENTED" else "does not implement"
    texts = [condition.message for condition in life.claim().status.conditions]
    return any(life.driver_name in text and call in text and said in text for text in texts)


def pod_deleted_while_it_grows(world: World, call: str, fault: Fault, life: Life) -> None:
    life.mount()
    life.fault(call, dataclasses.replace(fault.rule, times=None))
    life.wish()
    until(lambda: call in [name for name, _ in life.calls()], "the call")
    end(life)


@pytest.mark.parametrize("call", GROWS)
def test_it_fails_once_and_the_volume_grows(world: World, call: str) -> None:
    run(world, call, grown_at_last)


@pytest.mark.parametrize("call", GROWS)
def test_it_fails_and_the_pod_goes_while_it_grows(world: World, call: str) -> None:
    run(world, call, pod_deleted_while_it_grows)


# --- snapshots ----------------------------------------------------------------------------------------------------


def snapshot_at_last(world: World, call: str, fault: Fault, life: Life) -> None:
    life.mount()
    if call == "CreateSnapshot":
        life.fault(call, fault.rule)
    life.snap()
    until(life.has_snapshot, "the snapshot is ready", 40)
    if call == "DeleteSnapshot":
        life.fault(call, fault.rule)
    life.unsnap()
    until(life.snapshot_is_gone, "the snapshot is gone", 40)
    assert len([name for name, _ in life.calls() if name == call]) >= 2
    end(life)


def snapshot_deleted_meanwhile(world: World, call: str, fault: Fault, life: Life) -> None:
    life.mount()
    life.fault(call, dataclasses.replace(fault.rule, times=2))
    life.snap()
    until(lambda: call in [name for name, _ in life.calls()], "the call")
    life.unsnap()
    until(life.snapshot_is_gone, "the snapshot is gone", 40)
    end(life)
    is_allowed(call, fault, life)


@pytest.mark.parametrize("call", ["CreateSnapshot", "DeleteSnapshot"])
def test_it_fails_once_and_snapshots_come_and_go(world: World, call: str) -> None:
    run(world, call, snapshot_at_last)


def test_it_fails_and_the_snapshot_is_deleted_meanwhile(world: World) -> None:
    run(world, "CreateSnapshot", snapshot_deleted_meanwhile)
