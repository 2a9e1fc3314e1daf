"""Which volume suits a claim (PVC-30 to -33), and why each of the others does not. Decides; changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.api.node_selectors import can_reach
from volumehost.api.selectors import selector_of
from volumehost.control.provisioning.classes import class_of_claim, class_of_volume
from volumehost.sdk.quantity import parse_quantity
from volumehost.spec import FILESYSTEM_MODE

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

#: A volume that nobody claims is offered as soon as it is made, whether or not somebody has written that down yet.
_OFFERED = ("Available", "Pending", "")
#: Of so many volumes that do not suit, each is told why.
_TOLD = 5


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node that a volume has to be reachable from."""

    name: str
    labels: Mapping[str, str]


def storage_of(resources: Mapping[str, str]) -> int:
    """The size in a list of resources, in bytes; 0 when none is given."""
    text = resources.get("storage", "")
    return parse_quantity(text).value() if text else 0


def refers_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound, or pre-bound by name alone, to this claim and no other of its name."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
        and reference.uid in {"", claim.metadata.uid}
    )


def have_same_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """PVC-32: unset means Filesystem."""
    return (volume.spec.volume_mode or FILESYSTEM_MODE) == (claim.spec.volume_mode or FILESYSTEM_MODE)


def requested_volume_problem(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why the volume that a claim names cannot be its own; "" when it can (PVC-33)."""
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if storage_of(volume.spec.capacity) < storage_of(claim.spec.resources.requests):
        return "requested PV is too small"
    if class_of_volume(volume) != (class_of_claim(claim) or ""):
        return "storageClassName does not match"
    if not _have_same_attributes(volume, claim):
        return "volumeAttributesClassName does not match"
    if not have_same_mode(volume, claim):
        return "incompatible volumeMode"
    if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
        return "incompatible accessMode"
    return ""


def find_match(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, node: NodeView | None, delayed: bool
) -> PersistentVolume | None:
    """The volume for the claim, None when none suits.

    :param node: the node that will use it, None when that is not known.
    :param delayed: the claim waits for its first consumer.
    """
    groups: dict[tuple[int, tuple[str, ...]], list[PersistentVolume]] = {}
    for volume in volumes:
        if not mismatch(volume, claim, node=node, delayed=delayed):
            modes = tuple(sorted(volume.spec.access_modes))
            groups.setdefault((len(modes), modes), []).append(volume)
    for _, group in sorted(groups.items()):
        return min(group, key=lambda volume: (not refers_to(volume, claim), _size_and_name(volume)))
    return None


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim, *, node: NodeView | None, delayed: bool) -> str:
    """Why the volume does not suit, in a few words; "" when it does (PVC-31)."""
    mine = refers_to(volume, claim)
    if not mine and volume.spec.claim_ref is not None:
        return "it belongs to another claim"
    if volume.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    missing = [mode for mode in claim.spec.access_modes if mode not in volume.spec.access_modes]
    if missing:
        return f"it does not offer {', '.join(missing)}"
    if storage_of(volume.spec.capacity) < storage_of(claim.spec.resources.requests):
        return f"it is too small ({volume.spec.capacity.get('storage', '0')})"
    if not have_same_mode(volume, claim):
        return f"its volumeMode is {volume.spec.volume_mode or FILESYSTEM_MODE}"
    if not _have_same_attributes(volume, claim):
        return "its volumeAttributesClassName is another"
    if node is not None and not can_reach(volume, node.labels, node.name):
        return f"node {node.name} cannot reach it"
    return "" if mine else _mismatch_of_stranger(volume, claim, wait=delayed and node is None)


def why_none(
    claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume], *, node: NodeView | None, delayed: bool
) -> str:
    """One line that says of each volume why it does not suit; "" when there are none."""
    told = [
        f"{volume.metadata.name}: {mismatch(volume, claim, node=node, delayed=delayed)}" for volume in volumes[:_TOLD]
    ]
    if len(volumes) > _TOLD:
        told.append(f"and {len(volumes) - _TOLD} more")
    return "; ".join(told)


def _mismatch_of_stranger(volume: PersistentVolume, claim: PersistentVolumeClaim, *, wait: bool) -> str:
    """What is asked besides of a volume that nobody has set aside for the claim."""
    if wait:
        return "the node that will use it is not known yet"
    if volume.status.phase not in _OFFERED:
        return f"it is {volume.status.phase}"
    selector = selector_of(claim.spec.selector)
    if selector is not None and not selector.matches(volume.metadata.labels):
        return "its labels do not match the selector"
    if class_of_volume(volume) != (class_of_claim(claim) or ""):
        return f"its class is {class_of_volume(volume) or 'none'}"
    return ""


def _have_same_attributes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")


def _size_and_name(volume: PersistentVolume) -> tuple[int, str]:
    return storage_of(volume.spec.capacity), volume.metadata.name
