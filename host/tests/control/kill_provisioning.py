"""Run by test_kill_provisioning.py: provisioning, binding, reclaim, killed at every step by the lifecycle's runner."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from volumehost.control.assembly import all_controllers
from volumehost.control.machinery.controller import Key
from volumehost.errors import VolumeHostError


def load_runner() -> Any:
    path = Path(__file__).parent / "lifecycle" / "kill_run.py"
    spec = importlib.util.spec_from_file_location("kill_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


runner: Any = load_runner()
Scenario = runner.Scenario


def drive(world: Any) -> None:
    """Reconcile everything until nothing changes any more, as the plane would."""
    controllers = all_controllers(world.context)[:3]
    gone: set[tuple[int, Key]] = set()
    for turn in range(40):
        if turn == 3:
            world.driver.answer_bytes = None
        before, failed = world.api.list(Pod).resource_version, False
        for number, controller in enumerate(controllers):
            keys = {Key.of(obj) for obj in world.api.list(controller.kind).items}
            gone |= {(number, key) for key in keys}
            for key in sorted(key for owner, key in gone if owner == number):
                try:
                    controller.reconcile(key)
                except VolumeHostError:
                    failed = True
        if not failed and world.api.list(Pod).resource_version == before:
            return
    raise AssertionError("it does not settle")


runner.drive = drive


def classed(world: Any, policy: str = "Delete") -> None:
    world.api.create(
        to_object(
            StorageClass,
            {"metadata": {"name": "fast"}, "provisioner": world.driver.name, "reclaimPolicy": policy},
        )
    )


def ask(world: Any) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    world.api.create(
        to_object(PersistentVolumeClaim, {"metadata": {"name": "data", "namespace": "default"}, "spec": spec})
    )


def ask_in_vain(world: Any) -> None:
    world.driver.fail("create_volume", "DEADLINE_EXCEEDED", after_effect=True)
    ask(world)


def ask_for_nonsense(world: Any) -> None:
    world.driver.answer_bytes = 1
    ask(world)


def bound(world: Any) -> None:
    classed(world)
    ask(world)
    drive(world)


def delete(world: Any) -> None:
    for claim in world.api.list(PersistentVolumeClaim).items:
        world.api.delete(PersistentVolumeClaim, claim.metadata.name, "default")


def is_bound(world: Any) -> str:
    claims, volumes = world.api.list(PersistentVolumeClaim).items, world.api.list(PersistentVolume).items
    right = (
        len(claims) == len(volumes) == len(world.driver.volumes) == 1
        and claims[0].status.phase == volumes[0].status.phase == "Bound"
        and claims[0].spec.volume_name == volumes[0].metadata.name
        and volumes[0].spec.csi.volume_handle in world.driver.volumes
        and claims[0].metadata.finalizers == ["kubernetes.io/pvc-protection"]
    )
    return "" if right else f"{claims} {volumes} {world.driver.volumes}"


def is_gone(world: Any) -> str:
    left = [*world.api.list(PersistentVolumeClaim).items, *world.api.list(PersistentVolume).items]
    return f"{left} {world.driver.volumes}" if left or world.driver.volumes else ""


def is_known(world: Any) -> str:
    """Whatever the driver made, a volume or a note on a claim tells of it."""
    told = {volume.spec.csi.volume_handle for volume in world.api.list(PersistentVolume).items}
    noted = any(
        "volumehost.io/provisioning" in claim.metadata.finalizers
        for claim in world.api.list(PersistentVolumeClaim).items
    )
    unknown = set(world.driver.volumes) - told
    return f"nothing tells of {unknown}" if unknown and not noted else ""


def is_never_half_bound(world: Any) -> str:
    """PVC-34: a claim that says that it is bound has a volume that says so too."""
    for claim in world.api.list(PersistentVolumeClaim).items:
        if claim.status.phase == "Bound":
            volume = world.api.get(PersistentVolume, claim.spec.volume_name)
            if volume.spec.claim_ref is None or volume.spec.claim_ref.uid != claim.metadata.uid:
                return f"{claim} is bound and {volume} does not know"
    return is_known(world)


def by_hand(world: Any) -> None:
    fields = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "2Gi"},
        "storageClassName": "fast",
        "csi": {"driver": world.driver.name, "volumeHandle": "vol-0"},
    }
    world.driver.add_volume("vol-0", 2**31)
    volume = world.api.create(to_object(PersistentVolume, {"metadata": {"name": "pv"}, "spec": fields}))
    volume.status.phase = "Available"
    world.api.replace_status(volume)


runner.SCENARIOS = {
    "provision": Scenario(classed, ask, is_bound, is_never_half_bound),
    "provision, then deleted": Scenario(classed, ask, is_gone, is_known, after_kill=delete),
    "provision, the answer lost": Scenario(classed, ask_in_vain, is_bound, is_known),
    "provision, the answer lost, then deleted": Scenario(classed, ask_in_vain, is_gone, is_known, after_kill=delete),
    "a volume of the wrong size": Scenario(classed, ask_for_nonsense, is_bound, is_known),
    "bind": Scenario(by_hand, ask, is_bound, is_never_half_bound),
    "reclaim": Scenario(bound, delete, is_gone, is_known),
}

if __name__ == "__main__":
    runner.main(sys.argv[1])
