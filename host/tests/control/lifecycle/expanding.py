"""Asking for another size of a claim, and looking at what has become of it."""

from __future__ import annotations

from typing import Any

from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim
from volumehost.control.expanding.expand_controller import ExpandController

GIB = 2**30


def ask(world: Any, size: str) -> None:
    """Ask for another size."""
    patch = {"spec": {"resources": {"requests": {"storage": size}}}}
    world.api.patch(PersistentVolumeClaim, "data", patch, "default")


def state(world: Any) -> str:
    """Where the claim's expansion is, "" when nowhere."""
    return world.pvc().status.allocated_resource_statuses.get("storage", "")


def conditions(world: Any) -> dict[str, Any]:
    """The claim's conditions by their type."""
    return {each.type: each for each in world.pvc().status.conditions}


def reasons(world: Any) -> list[str]:
    """Of the events, in order."""
    return [reason for _, reason, _ in world.events]


def set_state(world: Any, status: str, allocated: str) -> None:
    """Put the claim's expansion where another has left it."""
    claim = world.pvc()
    claim.status.allocated_resource_statuses = {"storage": status} if status else {}
    claim.status.allocated_resources = {"storage": allocated}
    world.api.replace_status(claim)


def set_volume_size(world: Any, size: str) -> None:
    """Put the size into the persistent volume."""
    world.api.patch(PersistentVolume, "pv", {"spec": {"capacity": {"storage": size}}})


def go(world: Any, run: Any, expander: ExpandController) -> Any:
    """One run of the controller for the claim."""
    return run(expander, "data", "default")
