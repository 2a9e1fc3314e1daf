"""Names, annotations and finalizers of snapshots, as the external-snapshotter has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.objects import VolumeSnapshot, VolumeSnapshotContent

#: The API group of the kinds.
SNAPSHOT_GROUP = "snapshot.storage.k8s.io"
_PREFIX = "snapshot.storage.kubernetes.io/"

#: On a class: it is the one for snapshots of its driver that name none.
DEFAULT_CLASS = f"{_PREFIX}is-default-class"
#: On a content: its snapshot is being deleted, so that a deleted content may take the driver's snapshot with it.
BEING_DELETED = f"{_PREFIX}volumesnapshot-being-deleted"
#: On a content: the driver was asked to make the snapshot, and it is not known whether it did.
BEING_CREATED = f"{_PREFIX}volumesnapshot-being-created"
#: On a content: the secret that deleting it needs.
DELETION_SECRET_NAME = f"{_PREFIX}deletion-secret-name"
DELETION_SECRET_NAMESPACE = f"{_PREFIX}deletion-secret-namespace"

#: On a content, until the driver's snapshot was dealt with.
CONTENT_FINALIZER = f"{_PREFIX}volumesnapshotcontent-bound-protection"
#: On a snapshot whose content is to be deleted with it.
BOUND_FINALIZER = f"{_PREFIX}volumesnapshot-bound-protection"
#: On a snapshot, which a claim may be restored from.
AS_SOURCE_FINALIZER = f"{_PREFIX}volumesnapshot-as-source-protection"
#: On a claim that a snapshot is being taken of.
CLAIM_FINALIZER = f"{_PREFIX}pvc-as-source-protection"


def content_name(snapshot: VolumeSnapshot) -> str:
    """The name of the content that is made for a snapshot of a claim."""
    return f"snapcontent-{snapshot.metadata.uid}"


def driver_snapshot_name(content: VolumeSnapshotContent) -> str:
    """The name by which the driver knows the request, whichever time it is made."""
    return f"snapshot-{content.spec.volume_snapshot_ref.uid}"


def refers_to(content: VolumeSnapshotContent, snapshot: VolumeSnapshot) -> bool:
    """Whether the content is that snapshot's."""
    reference, metadata = content.spec.volume_snapshot_ref, snapshot.metadata
    wanted = (metadata.name, metadata.namespace, metadata.uid)
    return (reference.name, reference.namespace, reference.uid) == wanted
