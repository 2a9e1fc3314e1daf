"""Brings a VolumeSnapshot and its content together: one that is made for it, or one that was there first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.snapshots.snapshot_class import class_of, snapshotter_secret
from volumehost.control.snapshots.snapshot_names import (
    CLAIM_FINALIZER,
    CONTENT_FINALIZER,
    DELETION_SECRET_NAME,
    DELETION_SECRET_NAMESPACE,
    content_name,
    refers_to,
)
from volumehost.control.writes import add_finalizer, get_or_none, update
from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, VolumeSnapshot, VolumeSnapshotContent
    from volumehost.control.machinery.controller import ControlContext


class SnapshotProblemError(FailedPreconditionError):
    """A snapshot cannot be made, bound or deleted now; ``event_reason`` is the event's."""

    def __init__(self, reason: str, *, event_reason: str, action: str = "", hint: str = "") -> None:
        super().__init__(reason, action=action, hint=hint)
        self.event_reason = event_reason


def source_claim(api: ApiClient, snapshot: VolumeSnapshot) -> PersistentVolumeClaim:
    """The claim that the snapshot is taken of.

    :raises FailedPreconditionError: there is no such claim, or it has no volume.
    """
    from volumehost.api.objects import PersistentVolumeClaim

    name = snapshot.spec.source.persistent_volume_claim_name or ""
    namespace = snapshot.metadata.namespace
    claim = get_or_none(api, PersistentVolumeClaim, name, namespace)
    action = f"taking a snapshot of claim {namespace}/{name}"
    if claim is None:
        raise FailedPreconditionError("there is no such claim", action=action, subject=name)
    if claim.status.phase != "Bound" or not claim.spec.volume_name:
        raise FailedPreconditionError("the claim is not bound to a volume yet", action=action, subject=name)
    return claim


def source_volume(api: ApiClient, snapshot: VolumeSnapshot) -> PersistentVolume:
    """The volume that the snapshot is taken of.

    :raises FailedPreconditionError: the claim is not bound to one, or it is no volume of a CSI driver.
    """
    from volumehost.api.objects import PersistentVolume

    claim = source_claim(api, snapshot)
    volume = get_or_none(api, PersistentVolume, claim.spec.volume_name)
    action = f"taking a snapshot of claim {claim.metadata.namespace}/{claim.metadata.name}"
    reference = volume.spec.claim_ref if volume is not None else None
    if volume is None or reference is None or reference.uid != claim.metadata.uid:
        raise FailedPreconditionError(
            f"PersistentVolume {claim.spec.volume_name} is not bound to it", action=action, subject=claim.metadata.name
        )
    if volume.spec.csi is None:
        raise FailedPreconditionError(
            f"PersistentVolume {volume.metadata.name} is no volume of a CSI driver, and only those have snapshots",
            action=action,
            subject=claim.metadata.name,
        )
    return volume


def create_content(context: ControlContext, snapshot: VolumeSnapshot) -> VolumeSnapshotContent:
    """Make the content from which the driver's snapshot is made; the claim stays until that is done.

    :raises FailedPreconditionError: something that it needs is not there.
    :raises SpecError: the class names its secret in a way that leads to none.
    """
    from volumehost.api.objects import ObjectMeta, ObjectReference, VolumeSnapshotContent

    api = context.api
    claim = source_claim(api, snapshot)
    volume = source_volume(api, snapshot)
    source = volume.spec.csi
    snapshot_class = class_of(api, snapshot.spec.volume_snapshot_class_name)
    if source is None or snapshot_class is None:
        raise FailedPreconditionError("it has no VolumeSnapshotClass", subject=snapshot.metadata.name)
    if snapshot_class.driver != source.driver:
        raise FailedPreconditionError(
            f"VolumeSnapshotClass {snapshot_class.metadata.name} is for driver {snapshot_class.driver}, "
            f"the volume is of driver {source.driver}",
            subject=snapshot.metadata.name,
            hint="name a class of the volume's driver",
        )
    name = content_name(snapshot)
    secret = snapshotter_secret(snapshot_class, name, snapshot)
    if claim.metadata.deletion_timestamp and CLAIM_FINALIZER not in claim.metadata.finalizers:
        raise FailedPreconditionError(f"claim {claim.metadata.name} is being deleted", subject=claim.metadata.name)
    add_finalizer(api, claim, CLAIM_FINALIZER)
    metadata = ObjectMeta(name=name, finalizers=[CONTENT_FINALIZER])
    if secret is not None:
        metadata.annotations = {DELETION_SECRET_NAME: secret.name, DELETION_SECRET_NAMESPACE: secret.namespace}
    content = VolumeSnapshotContent(metadata=metadata)
    spec = content.spec
    spec.driver = source.driver
    spec.deletion_policy = snapshot_class.deletion_policy
    spec.volume_snapshot_class_name = snapshot_class.metadata.name
    spec.source.volume_handle = source.volume_handle
    spec.source_volume_mode = volume.spec.volume_mode
    spec.volume_snapshot_ref = ObjectReference(
        api_version=snapshot.api_version,
        kind=snapshot.kind,
        name=snapshot.metadata.name,
        namespace=snapshot.metadata.namespace,
        uid=snapshot.metadata.uid,
    )
    made = api.create(content)
    label = f"{snapshot.metadata.namespace}/{snapshot.metadata.name}"
    message = f"Waiting for a snapshot {label} to be created by the CSI driver."
    context.event(snapshot, "Normal", "CreatingSnapshot", message)
    return made


def bind(api: ApiClient, snapshot: VolumeSnapshot, content: VolumeSnapshotContent) -> VolumeSnapshotContent:
    """Let the content refer to the snapshot too, where that is still to be done.

    :raises SnapshotProblemError: the content is another snapshot's, or not of the kind that the snapshot asks for.
    """
    is_given = snapshot.spec.source.volume_snapshot_content_name is not None
    if is_given != (content.spec.source.snapshot_handle is not None):
        wanted = "a snapshot that exists (snapshotHandle)" if is_given else "a volume (volumeHandle)"
        raise SnapshotProblemError(
            f"VolumeSnapshotContent {content.metadata.name} must have {wanted} as its source",
            event_reason="SnapshotContentMismatch",
        )
    if refers_to(content, snapshot):
        return content
    reference = content.spec.volume_snapshot_ref
    own = (snapshot.metadata.name, snapshot.metadata.namespace)
    if not is_given or (reference.name, reference.namespace) != own or reference.uid:
        bound = bool(snapshot.status.bound_volume_snapshot_content_name)
        raise SnapshotProblemError(
            f"VolumeSnapshotContent {content.metadata.name} belongs to snapshot {reference.namespace}/{reference.name}"
            + (f" (uid {reference.uid})" if (reference.name, reference.namespace) == own else ""),
            event_reason="SnapshotMisbound" if bound else "SnapshotBindFailed",
            hint="its volumeSnapshotRef must name this snapshot",
        )

    def change(fresh: VolumeSnapshotContent) -> None:
        fresh.spec.volume_snapshot_ref.uid = snapshot.metadata.uid
        if snapshot.spec.volume_snapshot_class_name is not None:
            fresh.spec.volume_snapshot_class_name = snapshot.spec.volume_snapshot_class_name

    return update(api, content, change)
