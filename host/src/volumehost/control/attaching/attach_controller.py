"""The attacher: VolumeAttachment to ControllerPublishVolume and back, as the external-attacher does (CSI-EXA).

Whether a volume may be attached is written down, as the finalizer, before the driver is called: whatever came of that
call, deleting the VolumeAttachment leads to ControllerUnpublishVolume (BR-47).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from volumehost.control.attaching.attach_resync import PublishedNodes
from volumehost.control.attaching.attach_safety import DetachHeldError, DetachSafety
from volumehost.control.attaching.attach_source import (
    CALL_TIMEOUT,
    FINALIZER_PREFIX,
    NODE_ID,
    PUBLISH,
    attached_volume,
    attacher_finalizer,
    csi_source,
    node_id,
)
from volumehost.control.attaching.attach_status import (
    mark_attached,
    mark_detached,
    save_attach_error,
    save_detach_error,
)
from volumehost.control.attaching.stray_publications import PublishTurns, release_strays
from volumehost.control.attaching.unanswered import UnansweredPublishes
from volumehost.control.drivers import unknown_driver
from volumehost.control.machinery.controller import ControlContext, Key
from volumehost.control.machinery.counting import count_forced_detach
from volumehost.control.machinery.own_marks import OwnMarks
from volumehost.control.messages import without_secrets
from volumehost.control.provisioning.capabilities import attached_capability
from volumehost.control.secrets import read_secret
from volumehost.control.translation import translated
from volumehost.control.writes import add_finalizer, get_or_none, remove_finalizer, update
from volumehost.errors import (
    ConflictError,
    FailedPreconditionError,
    ObjectNotFoundError,
    StorageDriverError,
    StoreError,
    VolumeHostError,
)

if TYPE_CHECKING:
    from volumehost.api.objects import (
        CSINode,
        CSIPersistentVolumeSource,
        KubeObject,
        Node,
        PersistentVolume,
        VolumeAttachment,
    )
    from volumehost.storage_driver import StorageDriver

logger = logging.getLogger(__name__)

#: How often it is looked whether a detach must still be held, in seconds; a change of the node is seen at once.
HELD_SECONDS = 5.0
#: When an attach is tried again that came while the volume is being taken from another node, in seconds.
RELEASING_SECONDS = 1.0
#: What the API takes as attachment metadata, in bytes (CSI-ATT-18).
_MAX_METADATA_BYTES = 256 * 1024


class AttachController:
    """Controller of VolumeAttachments; see :class:`volumehost.control.machinery.controller.Controller`."""

    name = "attacher"
    kind: type[KubeObject]

    def __init__(self, context: ControlContext) -> None:
        from volumehost.api.objects import VolumeAttachment

        self.kind = VolumeAttachment
        self._context = context
        self._api = context.api
        self._safety = DetachSafety(context.api, context.volume_in_use)
        self._published = PublishedNodes()
        self._turns = PublishTurns()
        self._unanswered = UnansweredPublishes()
        self._marks = OwnMarks(frozenset({NODE_ID}), lambda name: name.startswith(FINALIZER_PREFIX))

    def watches(self) -> Mapping[type[KubeObject], Callable[[Any], Iterable[Key]]]:
        """Attachments, and what an attachment waits for: the driver on the node, the end of the volume's use."""
        from volumehost.api.objects import CSINode, Node, VolumeAttachment

        return {VolumeAttachment: self._own, CSINode: self._waiting_to_attach, Node: self._waiting_to_detach}

    def _own(self, attachment: VolumeAttachment) -> Iterable[Key]:
        return [Key.of(attachment)] if self._marks.is_news(attachment) else []

    def _waiting_to_attach(self, node: CSINode) -> Iterable[Key]:
        from volumehost.api.objects import VolumeAttachment

        return [
            Key.of(each)
            for each in self._api.list(VolumeAttachment).items
            if each.spec.node_name == node.metadata.name and not each.status.attached
        ]

    def _waiting_to_detach(self, node: Node) -> Iterable[Key]:
        from volumehost.api.objects import VolumeAttachment

        return [
            Key.of(each)
            for each in self._api.list(VolumeAttachment).items
            if each.spec.node_name == node.metadata.name and each.metadata.deletion_timestamp
        ]

    def reconcile(self, key: Key) -> float | None:
        """Attach, or detach when the attachment is being deleted."""
        from volumehost.api.objects import VolumeAttachment

        attachment = get_or_none(self._api, VolumeAttachment, key.name)
        if attachment is None:
            return None
        try:
            if attachment.metadata.deletion_timestamp:
                return self._detach(attachment)
            return self._attach(attachment)
        finally:
            self._context.progress(attachment, "")

    # --- attach -----------------------------------------------------------------------------------------------------

    def _attach(self, attachment: VolumeAttachment) -> float | None:
        name = attachment.spec.attacher
        if self._is_foreign(name):
            return None
        if attachment.status.attached and self._is_right(attachment):
            # Not touched again (CSI-EXA-17).
            return self._published.next_look(attachment)
        try:
            driver = self._driver(name)
            publish_context = self._publish(driver, attachment) if driver.capabilities().controls(PUBLISH) else {}
        except _BeingReleasedError:
            return RELEASING_SECONDS
        except (ConflictError, StoreError):
            raise
        except VolumeHostError as error:
            save_attach_error(self._api, attachment, error, self._context.wall_clock())
            raise
        mark_attached(self._api, attachment, publish_context)
        return self._published.next_look(attachment)

    def _is_right(self, attachment: VolumeAttachment) -> bool:
        """Whether what is attached by our word is so by the driver's, which is asked once a minute (CSI-EXA-16)."""
        if not self._published.is_due(attachment):
            return True
        try:
            driver = self._driver(attachment.spec.attacher)
            return self._published.agrees(driver, lambda: self._names(attachment))
        except VolumeHostError as error:
            logger.info("not compared: attachment=%s error=%s", attachment.metadata.name, error)
            return True

    def _publish(self, driver: StorageDriver, attachment: VolumeAttachment) -> Mapping[str, str]:
        """ControllerPublishVolume, in the order of CSI-EXA-05: all that can be checked comes before the finalizer."""
        capabilities = driver.capabilities()
        volume = attached_volume(self._api, attachment)
        if volume.metadata.deletion_timestamp:
            raise FailedPreconditionError(
                f"PersistentVolume {volume.metadata.name} is being deleted",
                action=f"attaching it to node {attachment.spec.node_name}",
                subject=volume.metadata.name,
            )
        seen = translated(self._context.plugins, volume)
        source = csi_source(seen, driver.name)
        capability = attached_capability(seen, capabilities)
        secrets = read_secret(self._api, source.controller_publish_secret_ref)
        node = node_id(self._api, attachment.spec.node_name, driver.name)
        self._mark(attachment, volume, node)
        self._context.progress(attachment, f"attaching volume {source.volume_handle} (ControllerPublishVolume)")
        call = partial(
            driver.publish_volume,
            *(source.volume_handle, node, capability),
            # Drivers without the capability must be told False (CSI-EXA-08).
            read_only=source.read_only and capabilities.controls("PUBLISH_READONLY"),
            context=source.volume_attributes,
            secrets=secrets,
            timeout=CALL_TIMEOUT,
        )
        try:
            published = self._call(call, attachment, source, secrets)
        except StorageDriverError as error:
            if error.code != "FAILED_PRECONDITION" or not self._is_released(driver, seen):
                raise
            published = self._call(call, attachment, source, secrets)
        _check_size(published, driver.name)
        return published

    def _call(
        self,
        publish: Callable[[], Mapping[str, str]],
        attachment: VolumeAttachment,
        source: CSIPersistentVolumeSource,
        secrets: Mapping[str, str],
    ) -> Mapping[str, str]:
        with self._turns.publishing(source.driver, source.volume_handle) as is_free:
            if not is_free:
                raise _BeingReleasedError("it is taken from another node", subject=source.volume_handle)
            with self._unanswered.watched(attachment.metadata.uid), without_secrets(secrets):
                return publish()

    def _is_released(self, driver: StorageDriver, volume: PersistentVolume) -> bool:
        """Whether the volume was published to a node that has no attachment for it, and is not any more.

        A driver that refuses to publish a volume may have it published elsewhere by a call that was undone too early.
        """
        handle = csi_source(volume, driver.name).volume_handle
        with self._turns.releasing(driver.name, handle) as is_free:
            return is_free and bool(release_strays(self._context, driver, volume))

    def _mark(self, attachment: VolumeAttachment, volume: PersistentVolume, node: str) -> None:
        """Write down that the volume may be attached from now on, and to which node."""
        finalizer = attacher_finalizer(attachment.spec.attacher)
        if volume.metadata.name and finalizer not in volume.metadata.finalizers:
            add_finalizer(self._api, volume, finalizer)
        metadata = attachment.metadata
        if finalizer in metadata.finalizers and metadata.annotations.get(NODE_ID) == node:
            return

        def change(fresh: VolumeAttachment) -> None:
            if fresh.metadata.deletion_timestamp:
                raise ConflictError("it is being deleted", action="attaching it", subject=fresh.metadata.name)
            if finalizer not in fresh.metadata.finalizers:
                fresh.metadata.finalizers = [*fresh.metadata.finalizers, finalizer]
            fresh.metadata.annotations = {**fresh.metadata.annotations, NODE_ID: node}

        try:
            update(self._api, attachment, change)
        except ObjectNotFoundError as error:
            # It was deleted while it was looked at, before anything was asked of the driver.
            raise ConflictError(error.reason, action="attaching it", subject=metadata.name) from error

    # --- detach -----------------------------------------------------------------------------------------------------

    def _detach(self, attachment: VolumeAttachment) -> float | None:
        finalizer = attacher_finalizer(attachment.spec.attacher)
        if finalizer not in attachment.metadata.finalizers or self._is_foreign(attachment.spec.attacher):
            # Without the finalizer it counts as detached, whatever the status says (CSI-EXA-14).
            return None
        try:
            driver = self._driver(attachment.spec.attacher)
            if driver.capabilities().controls(PUBLISH):
                # Asked before the call: what takes effect during it may be later than it.
                unanswered = self._unanswered.seconds_left(attachment.metadata.uid)
                self._unpublish(driver, attachment)
                if unanswered:
                    return unanswered
        except DetachHeldError as held:
            if attachment.status.detach_error is None or attachment.status.detach_error.message != held.text:
                save_detach_error(self._api, attachment, held, self._context.wall_clock())
            return HELD_SECONDS
        except (ConflictError, StoreError):
            raise
        except VolumeHostError as error:
            save_detach_error(self._api, attachment, error, self._context.wall_clock())
            raise
        # The finalizer goes first: a status that says "detached" of an object that stays would be believed.
        self._unanswered.forget(attachment.metadata.uid)
        remove_finalizer(self._api, attachment, finalizer)
        mark_detached(self._api, attachment)
        return None

    def _unpublish(self, driver: StorageDriver, attachment: VolumeAttachment) -> None:
        """ControllerUnpublishVolume; returns when the volume is known to be detached."""
        source = self._source(attachment)
        node = node_id(self._api, attachment.spec.node_name, driver.name, attachment)
        # In a cluster whoever deletes the attachment has looked, and may have had to do it by force (ADC-30).
        if not self._context.external_drivers and self._safety.check(attachment, source.volume_handle):
            count_forced_detach(self._context.metrics, "annotation")
            self._context.event(
                attachment,
                "Warning",
                "ForcedDetach",
                f"volume {source.volume_handle} is detached although node {attachment.spec.node_name} uses it: "
                "what was not written yet is lost, and the node must be restarted before it uses the volume again",
            )
        secrets = read_secret(self._api, source.controller_publish_secret_ref)
        self._context.progress(attachment, f"detaching volume {source.volume_handle} (ControllerUnpublishVolume)")
        with without_secrets(secrets):
            try:
                driver.unpublish_volume(source.volume_handle, node, secrets, timeout=CALL_TIMEOUT)
            except StorageDriverError as error:
                if error.code != "NOT_FOUND" or not self._published.is_surely_detached(
                    driver, source.volume_handle, node
                ):
                    raise
                logger.info(
                    "the driver no longer lists the volume as published: driver=%s volume=%s node=%s",
                    driver.name,
                    source.volume_handle,
                    node,
                )

    # --- both -------------------------------------------------------------------------------------------------------

    def _is_foreign(self, driver: str) -> bool:
        """Whether somebody else attaches volumes of that driver (CSI-EXA-01)."""
        return self._context.external_drivers and not self._context.knows_driver(driver)

    def _driver(self, name: str) -> StorageDriver:
        if not self._context.knows_driver(name):
            raise unknown_driver(name, "looking for the driver of a VolumeAttachment")
        return self._context.driver(name)

    def _names(self, attachment: VolumeAttachment) -> tuple[str, str]:
        """The volume handle and the node as the driver calls them."""
        source = self._source(attachment)
        return source.volume_handle, node_id(self._api, attachment.spec.node_name, attachment.spec.attacher, attachment)

    def _source(self, attachment: VolumeAttachment) -> CSIPersistentVolumeSource:
        volume = translated(self._context.plugins, attached_volume(self._api, attachment))
        return csi_source(volume, attachment.spec.attacher)


class _BeingReleasedError(FailedPreconditionError):
    """Strays of the volume are being looked for; nothing was called."""


def _check_size(published: Mapping[str, str], driver: str) -> None:
    if sum(len(key.encode()) + len(value.encode()) for key, value in published.items()) > _MAX_METADATA_BYTES:
        raise StorageDriverError(
            f"its publish context is larger than {_MAX_METADATA_BYTES} bytes",
            driver=driver,
            call="ControllerPublishVolume",
            action=f"calling ControllerPublishVolume of driver {driver}",
            hint="the driver must answer with less",
        )
