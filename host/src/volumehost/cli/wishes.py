"""What has to have happened before an applied or deleted object is what the user wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from volumehost.api.kinds import find_kind
from volumehost.cli.settling import Wish

if TYPE_CHECKING:
    from volumehost.api.kinds import Kind
    from volumehost.api.objects import KubeObject

#: Kinds that a controller does something about.
CONTROLLED = frozenset(
    {"PersistentVolumeClaim", "PersistentVolume", "VolumeAttachment", "VolumeSnapshot", "VolumeSnapshotContent"}
)


def of_applied(kind: Kind[KubeObject], obj: KubeObject) -> list[Wish]:
    """The wishes behind an applied object, none where applying is all."""
    if kind.kind not in CONTROLLED:
        return []
    doing, fulfilled = _APPLIED.get(kind.kind, ("looking after", _is_gone))
    return [Wish(kind, obj.metadata.name, obj.metadata.namespace, doing, fulfilled)]


def of_deleted(kind: Kind[KubeObject], before: KubeObject) -> list[Wish]:
    """The wishes behind a deleted object: that it is gone, and the volume that was made for it too."""
    if kind.kind not in CONTROLLED:
        return []
    wishes = [Wish(kind, before.metadata.name, before.metadata.namespace, "deleting", _is_gone)]
    volume: str = getattr(before.spec, "volume_name", "") if kind.kind == "PersistentVolumeClaim" else ""  # type: ignore[attr-defined]
    if volume:
        wishes.append(Wish(find_kind("PersistentVolume"), volume, "", "reclaiming", _is_reclaimed))
    return wishes


def _is_gone(obj: Any) -> bool:
    return obj is None


def _is_bound_and_large_enough(claim: Any) -> bool:
    """Whether nothing is left to do, except what a pod has to come for."""
    if claim is None:
        return True
    from volumehost.sdk.quantity import parse_quantity

    wanted = claim.spec.resources.requests.get("storage")
    has = claim.status.capacity.get("storage")
    large_enough = not wanted or (has is not None and parse_quantity(has) >= parse_quantity(wanted))
    waiting = claim.status.allocated_resource_statuses.get("storage", "")
    return claim.status.phase == "Bound" and (large_enough or waiting == "NodeResizePending")


def _is_ready(snapshot: Any) -> bool:
    return snapshot is None or bool(snapshot.status.ready_to_use)


def _is_reclaimed(volume: Any) -> bool:
    """Whether the volume is gone, or stays because its policy says so."""
    if volume is None:
        return True
    kept = volume.spec.persistent_volume_reclaim_policy not in {"Delete", "Recycle"}
    return volume.status.phase == "Available" or (kept and volume.status.phase != "Bound")


#: What is done about an applied object of the kind, and when that is over; the others go on being looked after.
_APPLIED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "PersistentVolumeClaim": ("providing a volume for", _is_bound_and_large_enough),
    "VolumeSnapshot": ("taking", _is_ready),
}
