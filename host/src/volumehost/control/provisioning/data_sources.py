"""From a claim's data source to the volume or snapshot, as the driver calls it, that a new volume is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.control.binding.matching import have_same_mode, storage_of
from volumehost.control.writes import get_or_none
from volumehost.errors import FailedPreconditionError, SpecError
from volumehost.sdk.quantity import parse_quantity
from volumehost.spec import FILESYSTEM_MODE

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import (
        PersistentVolumeClaim,
        TypedObjectReference,
        VolumeSnapshot,
        VolumeSnapshotContent,
    )

SNAPSHOT_GROUP = "snapshot.storage.k8s.io"
#: On a snapshot's content: a volume made from it may have another mode than its source.
ALLOW_MODE_CHANGE = "snapshot.storage.kubernetes.io/allow-volume-mode-change"


@dataclass(frozen=True, slots=True)
class DataSource:
    """At most one of the handles is set; ``claim`` is the claim that is cloned."""

    snapshot: str = ""
    volume: str = ""
    claim: PersistentVolumeClaim | None = None


def data_source(
    api: ApiClient, claim: PersistentVolumeClaim, driver: str, supports: Callable[[str], bool]
) -> DataSource:
    """The source, checked; empty for a claim without one.

    :param driver: the driver that is to make the volume.
    :param supports: whether it has a capability.
    :raises SpecError: it is no source that this driver could ever take.
    :raises FailedPreconditionError: it is not ready, or not there yet.
    """
    reference = claim.spec.data_source_ref
    if reference is None:
        return DataSource()
    if reference.namespace not in {None, "", claim.metadata.namespace}:
        raise SpecError(
            f"its data source is in namespace {reference.namespace}", hint="only sources in its own namespace are taken"
        )
    if reference.kind == "PersistentVolumeClaim" and not reference.api_group:
        _require(supports, "CLONE_VOLUME", f"driver {driver} cannot clone volumes")
        return _cloned(api, claim, reference, driver)
    if reference.kind == "VolumeSnapshot" and reference.api_group == SNAPSHOT_GROUP:
        _require(supports, "CREATE_DELETE_SNAPSHOT", f"driver {driver} has no snapshots")
        return DataSource(snapshot=_restored(api, claim, reference, driver))
    raise SpecError(
        f"its data source is a {reference.kind}, which a volume populator would have to serve",
        hint="a PersistentVolumeClaim or a VolumeSnapshot is taken",
    )


def _require(supports: Callable[[str], bool], capability: str, problem: str) -> None:
    if not supports(capability):
        raise SpecError(problem, hint=f"it does not declare {capability}")


def _cloned(api: ApiClient, claim: PersistentVolumeClaim, reference: TypedObjectReference, driver: str) -> DataSource:
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

    what = f"the claim {reference.name} that it is to be cloned from"
    source = get_or_none(api, PersistentVolumeClaim, reference.name, claim.metadata.namespace)
    if source is None:
        raise _not_ready(f"there is no {what.removeprefix('the ')}")
    if source.metadata.deletion_timestamp is not None:
        raise _not_ready(f"{what} is being deleted")
    volume = get_or_none(api, PersistentVolume, source.spec.volume_name) if source.spec.volume_name else None
    owner = volume.spec.claim_ref if volume is not None else None
    is_bound = source.status.phase == "Bound" and owner is not None and owner.uid == source.metadata.uid
    if volume is None or not is_bound:
        raise _not_ready(f"{what} is not bound")
    if volume.spec.csi is None or volume.spec.csi.driver != driver:
        raise SpecError(f"{what} is no volume of driver {driver}")
    if not have_same_mode(volume, claim):
        raise SpecError(f"{what} has another volumeMode")
    _check_size(claim, storage_of(volume.spec.capacity), what)
    return DataSource(volume=volume.spec.csi.volume_handle, claim=source)


def _restored(api: ApiClient, claim: PersistentVolumeClaim, reference: TypedObjectReference, driver: str) -> str:
    from volumehost.api.objects import VolumeSnapshot, VolumeSnapshotContent

    what = f"the snapshot {reference.name} that it is to be restored from"
    snapshot = get_or_none(api, VolumeSnapshot, reference.name, claim.metadata.namespace)
    if snapshot is None:
        raise _not_ready(f"there is no {what.removeprefix('the ')}")
    if snapshot.metadata.deletion_timestamp is not None:
        raise _not_ready(f"{what} is being deleted")
    name = snapshot.status.bound_volume_snapshot_content_name
    content = get_or_none(api, VolumeSnapshotContent, name) if name else None
    if content is None or content.spec.volume_snapshot_ref.uid != snapshot.metadata.uid:
        raise _not_ready(f"{what} is not bound")
    handle = content.status.snapshot_handle
    if not snapshot.status.ready_to_use or not handle:
        error = snapshot.status.error.message if snapshot.status.error is not None else ""
        raise _not_ready(f"{what} is not ready to use{f': {error}' if error else ''}")
    if content.spec.driver != driver:
        raise SpecError(f"{what} is of driver {content.spec.driver}, not {driver}")
    _check_snapshot_mode(claim, content, what)
    _check_size(claim, _restore_size(snapshot), what)
    return handle


def _restore_size(snapshot: VolumeSnapshot) -> int:
    size = snapshot.status.restore_size
    return parse_quantity(size).value() if size else 0


def _check_snapshot_mode(claim: PersistentVolumeClaim, content: VolumeSnapshotContent, what: str) -> None:
    mode = content.spec.source_volume_mode
    allowed = content.metadata.annotations.get(ALLOW_MODE_CHANGE) == "true"
    if mode and mode != (claim.spec.volume_mode or FILESYSTEM_MODE) and not allowed:
        raise SpecError(f"{what} was taken of a volume of mode {mode}")


def _check_size(claim: PersistentVolumeClaim, size: int, what: str) -> None:
    wanted = storage_of(claim.spec.resources.requests)
    if wanted < size:
        raise SpecError(f"it asks for {wanted} bytes and {what} has {size}", hint="ask for at least as much")


def _not_ready(reason: str) -> FailedPreconditionError:
    return FailedPreconditionError(reason)
