"""The snapshot controller: a VolumeSnapshot gets its content, tells what becomes of it, and takes it along.

It does what the snapshot-controller of a cluster does; what the driver is asked for is up to
:mod:`volumehost.control.snapshots.snapshot_content_controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from volumehost.control.machinery.controller import ControlContext, Key
from volumehost.control.machinery.own_marks import OwnMarks
from volumehost.control.messages import message_of
from volumehost.control.snapshots.snapshot_binding import SnapshotProblemError, bind, create_content, source_volume
from volumehost.control.snapshots.snapshot_class import default_snapshot_class
from volumehost.control.snapshots.snapshot_names import (
    AS_SOURCE_FINALIZER,
    BEING_DELETED,
    BOUND_FINALIZER,
    SNAPSHOT_GROUP,
    content_name,
    refers_to,
)
from volumehost.control.snapshots.snapshot_status import mirror, save_error
from volumehost.control.writes import add_finalizer, fresh_or_none, get_or_none, remove_finalizer, update
from volumehost.errors import ConflictError, ObjectNotFoundError, StoreError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, PersistentVolumeClaim, VolumeSnapshot, VolumeSnapshotContent


class SnapshotController:
    """Controller of VolumeSnapshots; see :class:`volumehost.control.machinery.controller.Controller`."""

    name = "snapshotter"
    kind: type[KubeObject]

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import VolumeSnapshot

        self.kind = VolumeSnapshot
        self._context = context
        self._api = context.api
        self._marks = OwnMarks(frozenset(), {AS_SOURCE_FINALIZER, BOUND_FINALIZER}.__contains__)

    def watches(self) -> Mapping[type[KubeObject], Callable[[Any], Iterable[Key]]]:
        """Snapshots, their contents, and the claims that they are taken of or restored to."""
        from volumehost.api.objects import (
            PersistentVolumeClaim,
            VolumeSnapshot,
            VolumeSnapshotClass,
            VolumeSnapshotContent,
        )

        return {
            VolumeSnapshot: lambda snapshot: [Key.of(snapshot)] if self._marks.is_news(snapshot) else [],
            VolumeSnapshotContent: _snapshot_of,
            PersistentVolumeClaim: self._snapshots_of_claim,
            VolumeSnapshotClass: lambda _class: self._waiting(),
        }

    def _waiting(self) -> Iterable[Key]:
        from volumehost.api.objects import VolumeSnapshot

        snapshots = self._api.list(VolumeSnapshot).items
        return [Key.of(each) for each in snapshots if not each.status.bound_volume_snapshot_content_name]

    def _snapshots_of_claim(self, claim: PersistentVolumeClaim) -> Iterable[Key]:
        """Those that wait for the claim to be bound, and the one that it was to be restored from."""
        namespace = claim.metadata.namespace
        waiting = [key for key in self._waiting() if key.namespace == namespace]
        source = claim.spec.data_source
        if source is not None and source.kind == "VolumeSnapshot" and source.api_group == SNAPSHOT_GROUP:
            waiting.append(Key(source.name, namespace))
        return waiting

    def reconcile(self, key: Key) -> float | None:
        """Bring the snapshot to a content and up to date with it, or let it go with its content."""
        from volumehost.api.objects import VolumeSnapshot

        snapshot = get_or_none(self._api, VolumeSnapshot, key.name, key.namespace)
        if snapshot is None:
            return None
        try:
            if snapshot.metadata.deletion_timestamp:
                self._let_go(snapshot)
            else:
                self._bring_about(snapshot)
        except (ConflictError, StoreError):
            raise
        except VolumeHostError as error:
            self._tell(snapshot, error)
            raise
        finally:
            self._context.progress(snapshot, "")
        return None

    def _tell(self, snapshot: VolumeSnapshot, error: VolumeHostError) -> None:
        reason = error.event_reason if isinstance(error, SnapshotProblemError) else "SnapshotContentCreationFailed"
        if snapshot.metadata.deletion_timestamp:
            # Its status is that of the driver's snapshot, which somebody may be using.
            self._context.event(snapshot, "Warning", reason, message_of(error))
        else:
            save_error(self._context, snapshot, error, reason)

    # --- to a content -----------------------------------------------------------------------------------------------

    def _bring_about(self, snapshot: VolumeSnapshot) -> None:
        snapshot = add_finalizer(self._api, snapshot, AS_SOURCE_FINALIZER)
        content = self._content(self._api, snapshot)
        if content is None:
            if (
                snapshot.status.bound_volume_snapshot_content_name
                or not snapshot.spec.source.persistent_volume_claim_name
            ):
                raise SnapshotProblemError("VolumeSnapshotContent is missing", event_reason="SnapshotContentMissing")
            if snapshot.spec.volume_snapshot_class_name is None:
                snapshot = self._with_default_class(snapshot)
            self._context.progress(snapshot, "making its VolumeSnapshotContent")
            content = create_content(self._context, snapshot)
        else:
            content = bind(self._api, snapshot, content)
        if content.spec.deletion_policy == "Delete":
            snapshot = add_finalizer(self._api, snapshot, BOUND_FINALIZER)
        mirror(self._context, snapshot, content)

    def _with_default_class(self, snapshot: VolumeSnapshot) -> VolumeSnapshot:
        source = source_volume(self._api, snapshot).spec.csi
        snapshot_class = default_snapshot_class(self._api, source.driver if source is not None else "")

        def change(fresh: VolumeSnapshot) -> None:
            fresh.spec.volume_snapshot_class_name = snapshot_class.metadata.name

        return update(self._api, snapshot, change)

    @staticmethod
    def _content(api: ApiClient, snapshot: VolumeSnapshot) -> VolumeSnapshotContent | None:
        from volumehost.api.objects import VolumeSnapshotContent

        name = snapshot.spec.source.volume_snapshot_content_name or content_name(snapshot)
        return get_or_none(api, VolumeSnapshotContent, name)

    # --- and away ---------------------------------------------------------------------------------------------------

    def _let_go(self, snapshot: VolumeSnapshot) -> None:
        """The content goes first, where its policy is Delete; a snapshot that is being restored from stays."""
        from volumehost.api.objects import VolumeSnapshotContent

        # One that a cache has not heard of yet would stay behind, and the driver's snapshot with it.
        content = self._content(self._api, snapshot) or self._content(self._context.uncached, snapshot)
        if content is None or not refers_to(content, snapshot):
            remove_finalizer(self._api, snapshot, AS_SOURCE_FINALIZER, BOUND_FINALIZER)
            return
        restored = self._restored_to(snapshot)
        if restored:
            raise SnapshotProblemError(
                f"Snapshot is being used to restore a PVC: {', '.join(restored)}",
                event_reason="SnapshotDeletePending",
                hint="it is deleted as soon as that is done, or the claim is deleted",
            )
        if BEING_DELETED not in content.metadata.annotations:
            content = update(self._api, content, _mark_deleted)
        if content.spec.deletion_policy != "Delete":
            remove_finalizer(self._api, snapshot, AS_SOURCE_FINALIZER, BOUND_FINALIZER)
            return
        self._context.progress(snapshot, "waiting for the driver to delete the snapshot")
        if not content.metadata.deletion_timestamp:
            with suppress(ObjectNotFoundError):
                self._api.delete(VolumeSnapshotContent, content.metadata.name, uid=content.metadata.uid)
        left = fresh_or_none(self._api, content)
        if left is None:
            remove_finalizer(self._api, snapshot, AS_SOURCE_FINALIZER, BOUND_FINALIZER)
            return
        # The snapshot stays until its content is gone: what keeps that can be seen here.
        mirror(self._context, snapshot, left)
        if BOUND_FINALIZER in snapshot.metadata.finalizers:
            remove_finalizer(self._api, snapshot, AS_SOURCE_FINALIZER)

    def _restored_to(self, snapshot: VolumeSnapshot) -> list[str]:
        """The claims whose volume is being made from it."""
        from volumehost.api.objects import PersistentVolumeClaim

        return [
            claim.metadata.name
            for claim in self._api.list(PersistentVolumeClaim, snapshot.metadata.namespace).items
            if claim.status.phase == "Pending"
            and claim.spec.data_source is not None
            and (claim.spec.data_source.api_group, claim.spec.data_source.kind, claim.spec.data_source.name)
            == (SNAPSHOT_GROUP, "VolumeSnapshot", snapshot.metadata.name)
        ]


def _mark_deleted(content: VolumeSnapshotContent) -> None:
    content.metadata.annotations = {**content.metadata.annotations, BEING_DELETED: "yes"}


def _snapshot_of(content: VolumeSnapshotContent) -> Iterable[Key]:
    reference = content.spec.volume_snapshot_ref
    return [Key(reference.name, reference.namespace)]
