"""What has to have happened before an applied or deleted object is what the user wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from volumehost.api.kinds import find_kind
from volumehost.cli.wish import Wish, bring_all_about
from volumehost.errors import MissingPrivilegeError, ObjectNotFoundError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.kinds import Kind
    from volumehost.api.objects import KubeObject
    from volumehost.cli.options import Settings

    Target = tuple[Kind[KubeObject], str, str]

#: Kinds that a controller does something about.
_CONTROLLED = frozenset(
    {"PersistentVolumeClaim", "PersistentVolume", "VolumeAttachment", "VolumeSnapshot", "VolumeSnapshotContent"}
)


def settle(settings: Settings, api: ApiClient, wishes: Sequence[Wish], timeout: float) -> list[VolumeHostError]:
    """Have the controllers do what the objects ask for; the errors of those that failed.

    Whoever may change objects need not be able to mount: then it is only told that this is left to others. What
    needs a pod, or may, is not waited for in a cluster: only its controllers know whether they have done what they can.
    """
    if settings.cluster:
        wishes = [wish for wish in wishes if wish.insists]
    if not wishes:
        return []
    try:
        return bring_all_about(settings, api, wishes, timeout)
    except MissingPrivilegeError as error:
        left = ", ".join(wish.what for wish in wishes)
        click.echo(f"note: not waited for {left}: {error.reason}; the next command that may mount does it", err=True)
        return []


def of_applied(api: ApiClient, kind: Kind[KubeObject], obj: KubeObject) -> list[Wish]:
    """The wishes behind an applied object, none where applying is all."""
    if kind.kind not in _CONTROLLED:
        return []
    metadata = obj.metadata
    what, is_done, insists = _APPLIED.get(kind.kind, ("{} to be looked after", _is_gone, False))
    return [_wish(api, (kind, metadata.name, metadata.namespace), what, is_done, insists=insists)]


def of_deleted(api: ApiClient, kind: Kind[KubeObject], before: KubeObject) -> list[Wish]:
    """The wishes behind a deleted object: that it is gone, and the volume that was made for it too."""
    if kind.kind not in _CONTROLLED:
        return []
    metadata = before.metadata
    wishes = [_wish(api, (kind, metadata.name, metadata.namespace), "{} to be deleted", _is_gone)]
    volume = _volume_of(kind, before)
    if volume:
        wishes.append(_wish(api, (find_kind("PersistentVolume"), volume, ""), "{} to be released", _is_reclaimed))
    return wishes


def _wish(api: ApiClient, target: Target, what: str, is_done: Callable[[Any], bool], *, insists: bool = False) -> Wish:
    kind, name, namespace = target

    def now() -> KubeObject | None:
        try:
            return api.get(kind.struct, name, namespace)
        except ObjectNotFoundError:
            return None

    def objects() -> Sequence[KubeObject]:
        found = now()
        return [] if found is None else [found]

    return Wish(what.format(kind.describe(name, namespace)), lambda: is_done(now()), objects, insists=insists)


def _volume_of(kind: Kind[KubeObject], obj: Any) -> str:
    return str(obj.spec.volume_name) if kind.kind == "PersistentVolumeClaim" else ""


# --- what is over; None is an object that is gone -------------------------------------------------------------------


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


#: What is waited for after an object of the kind was applied, when that is over, and whether nothing less will do.
_APPLIED: dict[str, tuple[str, Callable[[Any], bool], bool]] = {
    "PersistentVolumeClaim": ("{} to have its volume", _is_bound_and_large_enough, False),
    "VolumeSnapshot": ("{} to be ready", _is_ready, True),
}
