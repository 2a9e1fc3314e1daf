"""The snapshotter: VolumeSnapshotContent to CreateSnapshot and DeleteSnapshot, as the csi-snapshotter does.

That the driver may have been asked is written down before it is, and stays until it is known what came of it: a
content that is deleted meanwhile first finds that out, so that no snapshot stays on the driver that nothing tells of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from volumehost.control.drivers import unknown_driver
from volumehost.control.machinery.controller import ControlContext, Key
from volumehost.control.machinery.own_marks import OwnMarks
from volumehost.control.messages import without_secrets
from volumehost.control.secrets import read_secret
from volumehost.control.snapshots.snapshot_class import class_of, driver_parameters, list_secret
from volumehost.control.snapshots.snapshot_names import (
    BEING_CREATED,
    BEING_DELETED,
    CONTENT_FINALIZER,
    DELETION_SECRET_NAME,
    DELETION_SECRET_NAMESPACE,
    driver_snapshot_name,
)
from volumehost.control.snapshots.snapshot_status import save_driver_snapshot, save_error
from volumehost.control.writes import add_finalizer, fresh_or_none, get_or_none, remove_finalizer, update
from volumehost.errors import (
    ConflictError,
    FailedPreconditionError,
    InfeasibleError,
    ObjectNotFoundError,
    OperationNotSupportedError,
    SpecError,
    StorageDriverError,
    StorageDriverUnsupportedError,
    StoreError,
    VolumeHostError,
    is_operation_finished_error,
)
from volumehost.storage_driver import DriverSnapshot

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject, SecretReference, VolumeSnapshotContent
    from volumehost.storage_driver import StorageDriver

CREATE = "CREATE_DELETE_SNAPSHOT"
#: How often a snapshot that is not ready yet is asked for: first, factor, at most, in seconds.
_FIRST, _FACTOR, _LONGEST = 1.0, 1.5, 30.0


class SnapshotContentController:
    """Controller of VolumeSnapshotContents; see :class:`volumehost.control.machinery.controller.Controller`."""

    name = "snapshot-content"
    kind: type[KubeObject]

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import VolumeSnapshotContent

        self.kind = VolumeSnapshotContent
        self._context = context
        self._api = context.api
        self._marks = OwnMarks(frozenset({BEING_CREATED}), {CONTENT_FINALIZER}.__contains__)
        #: How long until the next question for each that is not ready, by uid.
        self._delays: dict[str, float] = {}

    def watches(self) -> Mapping[type[KubeObject], Callable[[Any], Iterable[Key]]]:
        """Contents, and the classes that they need."""
        from volumehost.api.objects import VolumeSnapshotClass, VolumeSnapshotContent

        return {
            VolumeSnapshotContent: lambda content: [Key.of(content)] if self._marks.is_news(content) else [],
            VolumeSnapshotClass: lambda _class: self._unready(),
        }

    def _unready(self) -> Iterable[Key]:
        from volumehost.api.objects import VolumeSnapshotContent

        return [Key.of(each) for each in self._api.list(VolumeSnapshotContent).items if not each.status.ready_to_use]

    def reconcile(self, key: Key) -> float | None:
        """Make, look after, or delete the driver's snapshot."""
        from volumehost.api.objects import VolumeSnapshotContent

        content = get_or_none(self._api, VolumeSnapshotContent, key.name)
        if content is None or self._is_foreign(content.spec.driver):
            return None
        try:
            if content.metadata.deletion_timestamp:
                return self._end(content)
            if content.spec.volume_snapshot_ref.uid:
                content = add_finalizer(self._api, content, CONTENT_FINALIZER)
            return self._bring_about(content)
        finally:
            self._context.progress(content, "")

    # --- to a snapshot that is ready --------------------------------------------------------------------------------

    def _bring_about(self, content: VolumeSnapshotContent) -> float | None:
        if content.status.ready_to_use:
            if BEING_CREATED in content.metadata.annotations:
                self._unmark(content)
            self._delays.pop(content.metadata.uid, None)
            return None
        is_known = bool(content.status.snapshot_handle)
        try:
            found = self._create(content) if content.spec.source.volume_handle is not None else self._find(content)
        except (ConflictError, StoreError):
            raise
        except VolumeHostError as error:
            reason = "SnapshotContentCheckandUpdateFailed" if is_known else "SnapshotCreationFailed"
            save_error(self._context, content, error, reason)
            raise
        save_driver_snapshot(self._context, content, found)
        self._unmark(content)
        return None if found.ready_to_use else self._next_question(content)

    def _create(self, content: VolumeSnapshotContent) -> DriverSnapshot:
        """CreateSnapshot, which also tells whether an earlier one is ready by now."""
        driver = self._driver(content)
        snapshot_class = class_of(self._api, content.spec.volume_snapshot_class_name)
        parameters = driver_parameters(snapshot_class)
        secrets = read_secret(self._api, _deletion_secret(content))
        volume = content.spec.source.volume_handle or ""
        may_exist = BEING_CREATED in content.metadata.annotations
        if not content.status.snapshot_handle:
            self._mark(content)
        self._context.progress(content, f"taking a snapshot of volume {volume} (CreateSnapshot)")
        try:
            with without_secrets(secrets):
                found = driver.create_snapshot(volume, driver_snapshot_name(content), parameters, secrets)
        except VolumeHostError as error:
            refused = isinstance(error, InfeasibleError | OperationNotSupportedError)
            if is_operation_finished_error(error) and (refused or not may_exist):
                # Otherwise this call made none for sure, but one before it may have.
                self._unmark(content)
            raise
        if not found.handle:
            raise StorageDriverError(
                "it answered without the id of a snapshot",
                driver=driver.name,
                call="CreateSnapshot",
                action=f"taking a snapshot of volume {volume}",
                hint="the driver must name what it made",
            )
        return found

    def _find(self, content: VolumeSnapshotContent) -> DriverSnapshot:
        """A snapshot that is said to be there already; a driver that cannot tell is believed to have it."""
        handle = content.spec.source.snapshot_handle or ""
        driver = self._driver(content)
        capabilities = driver.capabilities()
        if not (capabilities.controls("GET_SNAPSHOT") or capabilities.controls("LIST_SNAPSHOTS")):
            return DriverSnapshot(handle, "", 0, 0.0, ready_to_use=True)
        snapshot_class = class_of(self._api, content.spec.volume_snapshot_class_name)
        secrets = read_secret(self._api, list_secret(snapshot_class, content.metadata.name))
        self._context.progress(content, f"looking for snapshot {handle}")
        with without_secrets(secrets):
            found = driver.get_snapshot(handle, secrets)
        if found is None:
            raise FailedPreconditionError(
                f"driver {driver.name} has no snapshot {handle}",
                action=f"looking for snapshot {handle}",
                subject=handle,
                hint="volumehost snapshot list --driver lists what it has",
            )
        return found

    def _next_question(self, content: VolumeSnapshotContent) -> float:
        uid = content.metadata.uid
        delay = self._delays.get(uid, _FIRST)
        self._delays[uid] = min(delay * _FACTOR, _LONGEST)
        return delay

    # --- and away ---------------------------------------------------------------------------------------------------

    def _end(self, content: VolumeSnapshotContent) -> float | None:
        self._delays.pop(content.metadata.uid, None)
        if CONTENT_FINALIZER not in content.metadata.finalizers:
            return None
        if BEING_CREATED in content.metadata.annotations and not content.status.snapshot_handle:
            return self._find_out(content)
        if not self._may_end(content):
            return None
        handle = content.status.snapshot_handle
        if handle is None and content.spec.volume_snapshot_ref.uid:
            handle = content.spec.source.snapshot_handle
        try:
            if handle and content.spec.deletion_policy == "Delete":
                self._delete(content, handle)
        except (ConflictError, StoreError):
            raise
        except VolumeHostError as error:
            save_error(self._context, content, error, "SnapshotDeleteError")
            raise
        remove_finalizer(self._api, content, CONTENT_FINALIZER)
        return None

    def _find_out(self, content: VolumeSnapshotContent) -> float:
        """The same call once more: it tells the snapshot, which can then be deleted, or that there is none."""
        try:
            found = self._create(content)
        except (ConflictError, StoreError):
            raise
        except VolumeHostError as error:
            left = fresh_or_none(self._api, content)
            if left is not None and BEING_CREATED in left.metadata.annotations:
                save_error(self._context, content, error, "SnapshotDeleteError")
                raise
        else:
            save_driver_snapshot(self._context, content, found)
            self._unmark(content)
        return 0.0

    def _may_end(self, content: VolumeSnapshotContent) -> bool:
        """Whether its snapshot lets go of it, is gone, or never had it."""
        from volumehost.api.objects import VolumeSnapshot

        reference = content.spec.volume_snapshot_ref
        if BEING_DELETED in content.metadata.annotations or not reference.uid:
            return True
        # Not on a cache, which may not have heard of the snapshot yet.
        snapshot = get_or_none(self._context.uncached, VolumeSnapshot, reference.name, reference.namespace)
        return snapshot is None or snapshot.metadata.uid != reference.uid

    def _delete(self, content: VolumeSnapshotContent, handle: str) -> None:
        driver = self._driver(content)
        secrets = read_secret(self._api, _deletion_secret(content))
        self._context.progress(content, f"deleting snapshot {handle} (DeleteSnapshot)")
        with without_secrets(secrets):
            driver.delete_snapshot(handle, secrets)

    # --- both -------------------------------------------------------------------------------------------------------

    def _is_foreign(self, driver: str) -> bool:
        return self._context.external_drivers and not self._context.knows_driver(driver)

    def _driver(self, content: VolumeSnapshotContent) -> StorageDriver:
        name = content.spec.driver
        if not self._context.knows_driver(name):
            raise unknown_driver(name, "looking for the driver of a VolumeSnapshotContent")
        driver = self._context.driver(name)
        if not driver.capabilities().controls(CREATE) and content.spec.source.snapshot_handle is None:
            raise StorageDriverUnsupportedError(
                f"driver {name} has no snapshots",
                driver=name,
                action=f"working on VolumeSnapshotContent {content.metadata.name}",
                hint=f"it does not declare {CREATE}",
            )
        return driver

    def _mark(self, content: VolumeSnapshotContent) -> None:
        if BEING_CREATED not in content.metadata.annotations:

            def change(fresh: VolumeSnapshotContent) -> None:
                if fresh.metadata.deletion_timestamp and not content.metadata.deletion_timestamp:
                    raise ConflictError("it is being deleted", subject=fresh.metadata.name)
                fresh.metadata.annotations = {**fresh.metadata.annotations, BEING_CREATED: "yes"}

            update(self._api, content, change)

    def _unmark(self, content: VolumeSnapshotContent) -> None:
        def change(fresh: VolumeSnapshotContent) -> None:
            annotations = fresh.metadata.annotations
            fresh.metadata.annotations = {key: text for key, text in annotations.items() if key != BEING_CREATED}

        with suppress(ObjectNotFoundError):
            update(self._api, content, change)


def _deletion_secret(content: VolumeSnapshotContent) -> SecretReference | None:
    """The secret that making and deleting the snapshot needs.

    :raises SpecError: only half of its name is there.
    """
    from volumehost.api.objects import SecretReference

    annotations = content.metadata.annotations
    name, namespace = annotations.get(DELETION_SECRET_NAME, ""), annotations.get(DELETION_SECRET_NAMESPACE, "")
    if bool(name) != bool(namespace):
        raise SpecError(f"the annotations {DELETION_SECRET_NAME} and {DELETION_SECRET_NAMESPACE} must both be set")
    return SecretReference(name=name, namespace=namespace) if name else None
