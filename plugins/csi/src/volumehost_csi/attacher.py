"""Attaching through VolumeAttachments: made and waited for here, fulfilled by an attacher elsewhere (CSI-ATT)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    InvalidObjectError,
    NotAvailableOnHostError,
    ObjectNotFoundError,
    OperationError,
    SpecError,
    TransientOperationError,
    UncertainProgressError,
    VolumeHostError,
)
from volumehost_csi.attachment_wait import attachment_failed, wait_until_attached, wait_until_gone
from volumehost_csi.names import attachment_name, split_volume_name
from volumehost_csi.plugin import PLUGIN_NAME
from volumehost_csi.source import persistent_source

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod, VolumeAttachment
    from volumehost.spec import Spec
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)


class CSIAttacher:
    """Attaches, waits, detaches."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def attach(self, spec: Spec, node_name: str) -> str:
        """Make the VolumeAttachment, unless it is there, and wait until it is attached; returns "" (CSI-ATT-02 to -10).

        :raises NotAvailableOnHostError: the host of a node in a cluster does not attach (CSI-ATT-01).
        :raises InvalidObjectError: the API refuses the object; nothing was started.
        :raises UncertainProgressError: it failed or took too long; the object stays, and its attacher keeps trying.
        """
        self._require_attaching("attaching a CSI volume")
        source = persistent_source(spec)
        api = self._services.require_api("attaching a CSI volume")
        name = attachment_name(source.volume_handle, source.driver, node_name)
        try:
            attachment, ours = self._ensure(api, spec, name, source.driver, node_name)
            attached = wait_until_attached(
                api,
                attachment,
                driver=source.driver,
                timeout=self._services.settings.attach_timeout,
                unneeded=lambda: not self._services.driver_objects.treatment(source.driver).attach_required,
            )
        except InvalidObjectError:
            raise
        except ApiError as error:
            # The object may be there, and then its attacher acts on it.
            raise UncertainProgressError(
                error.reason, action=f"attaching with the VolumeAttachment {name}", subject=name, hint=error.hint
            ) from error
        if not attached and ours:
            # Its CSIDriver came while we waited, and says that nothing is attached: leave no phantom (BR-49).
            _delete(api, name)
        return ""

    def _ensure(
        self, api: ApiClient, spec: Spec, name: str, driver: str, node_name: str
    ) -> tuple[VolumeAttachment, bool]:
        """The object, and whether it was made now; an existing one is used as it is (CSI-ATT-04)."""
        from volumehost.api.objects import ObjectMeta, VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec

        volume = spec.persistent_volume
        assert volume is not None
        try:
            return api.get(VolumeAttachment, name), False
        except ObjectNotFoundError:
            pass
        if spec.inline_volume_spec_for_csi_migration:
            source = VolumeAttachmentSource(inline_volume_spec=volume.spec)
        else:
            source = VolumeAttachmentSource(persistent_volume_name=volume.metadata.name)
        wanted = VolumeAttachment(
            metadata=ObjectMeta(name=name),
            spec=VolumeAttachmentSpec(attacher=driver, node_name=node_name, source=source),
        )
        try:
            return api.create(wanted), True
        except AlreadyExistsError:
            return api.get(VolumeAttachment, name), False

    def volumes_are_attached(self, specs: Sequence[Spec], node_name: str) -> Mapping[Spec, bool]:
        """One answer for each spec (CSI-ATT-13); what is being detached is not attached, whatever its status says."""
        api = self._services.require_api("asking whether CSI volumes are attached")
        return {spec: self._is_attached(api, spec, node_name) for spec in specs}

    def _is_attached(self, api: ApiClient, spec: Spec, node_name: str) -> bool:
        from volumehost.api.objects import VolumeAttachment

        try:
            source = persistent_source(spec)
        except SpecError:
            return False
        try:
            if not self._services.driver_objects.treatment(source.driver).attach_required:
                return True
        except VolumeHostError as error:
            logger.warning("whether %s attaches volumes is not known: %s", source.driver, error)
        name = attachment_name(source.volume_handle, source.driver, node_name)
        try:
            attachment = api.get(VolumeAttachment, name)
        except ApiError as error:
            logger.debug("the VolumeAttachment %s cannot be read: %s", name, error)
            return False
        return attachment.status.attached and not attachment.metadata.deletion_timestamp

    def wait_for_attach(self, spec: Spec, device_path: str, pod: Pod, timeout: float) -> str:
        """Look once whether it is attached: the caller repeats the call (CSI-ATT-11).

        :returns: the name of the VolumeAttachment, which stands for a device path; "" where nothing is attached.
        :raises TransientOperationError: it is not attached.
        """
        del device_path, pod, timeout
        from volumehost.api.objects import VolumeAttachment

        source = persistent_source(spec)
        name = attachment_name(source.volume_handle, source.driver, self._services.node_name)
        action = f"looking whether {spec.name()} is attached"
        seen = self._services.seen_attachments
        seen.forget(name)
        try:
            attachment = self._services.require_api(action).get(VolumeAttachment, name)
        except ApiError as error:
            if not self._services.driver_objects.treatment(source.driver).attach_required:
                return ""  # its CSIDriver object came after somebody had asked whether it attaches (BR-49)
            raise TransientOperationError(error.reason, action=action, subject=name, hint=error.hint) from error
        if attachment.metadata.deletion_timestamp is not None:
            raise TransientOperationError(f"its VolumeAttachment {name} is being deleted", action=action, subject=name)
        status = attachment.status
        if not status.attached:
            if status.attach_error is not None:
                raise attachment_failed(status.attach_error, source.driver, "ControllerPublishVolume", action, name)
            raise TransientOperationError(
                f"its VolumeAttachment {name} is not attached yet", action=action, subject=name
            )
        seen.put(name, status.attachment_metadata)
        return name

    def detach(self, volume_name: str, node_name: str) -> None:
        """Delete the VolumeAttachment and wait until it is gone: its attacher holds it until then (CSI-ATT-14 to -17).

        :param volume_name: ``<driver>^<handle>``.
        :raises NotAvailableOnHostError: the host of a node in a cluster does not detach.
        :raises UncertainProgressError: detaching failed or took too long.
        """
        self._require_attaching("detaching a CSI volume")
        driver, handle = split_volume_name(volume_name)
        api = self._services.require_api("detaching a CSI volume")
        name = attachment_name(handle, driver, node_name)
        if (attachment := _delete(api, name)) is not None:
            wait_until_gone(api, attachment, driver=driver, timeout=self._services.settings.attach_timeout)

    def begin_attach(self, spec: Spec, node_name: str) -> str | None:
        """Make the VolumeAttachment unless it is there; "" when it is attached, None while it is not.

        One that is being deleted ends first: then a new one is made.

        :raises StorageDriverUncertainError: its attacher reports an error; it keeps trying.
        :raises InvalidObjectError: the API refuses the object; nothing was started.
        """
        self._require_attaching("attaching a CSI volume")
        source = persistent_source(spec)
        api = self._services.require_api("attaching a CSI volume")
        name = attachment_name(source.volume_handle, source.driver, node_name)
        attachment, _ = self._ensure(api, spec, name, source.driver, node_name)
        if attachment.metadata.deletion_timestamp is not None:
            return None
        status = attachment.status
        if not status.attached and status.attach_error is not None:
            action = f"attaching with the VolumeAttachment {name}"
            raise attachment_failed(status.attach_error, source.driver, "ControllerPublishVolume", action, name)
        return "" if status.attached else None

    def begin_detach(self, volume_name: str, node_name: str) -> bool:
        """Delete the VolumeAttachment unless that was asked for; whether it is gone.

        :raises StorageDriverUncertainError: its attacher reports an error; it keeps trying.
        :raises ConflictError: there is another one of its name by now, which somebody has made to attach it again.
        """
        from volumehost.api.objects import VolumeAttachment

        self._require_attaching("detaching a CSI volume")
        driver, handle = split_volume_name(volume_name)
        api = self._services.require_api("detaching a CSI volume")
        name = attachment_name(handle, driver, node_name)
        try:
            attachment = api.get(VolumeAttachment, name)
        except ObjectNotFoundError:
            return True
        if attachment.metadata.deletion_timestamp is None:
            deleted = _delete(api, name, attachment.metadata.uid)
            return deleted is None or not deleted.metadata.finalizers
        if attachment.status.detach_error is not None:
            action = f"detaching with the VolumeAttachment {name}"
            raise attachment_failed(attachment.status.detach_error, driver, "ControllerUnpublishVolume", action, name)
        return False

    def _require_attaching(self, action: str) -> None:
        if not self._services.attaches:
            raise NotAvailableOnHostError(
                "attaching is for the attach/detach controller, this is the host of a node",
                action=action,
                subject=PLUGIN_NAME,
                hint="run the controller of the cluster, or a host without a cluster",
            )


def _delete(api: ApiClient, name: str, uid: str | None = None) -> VolumeAttachment | None:
    """Ask for the object's deletion, of none but that with the uid, where one is given; None when there was none."""
    from volumehost.api.objects import VolumeAttachment

    try:
        return api.delete(VolumeAttachment, name, uid=uid)
    except ObjectNotFoundError:
        return None
    except ConflictError:
        raise
    except ApiError as error:
        raise OperationError(
            error.reason, action=f"deleting the VolumeAttachment {name}", subject=name, hint=error.hint
        ) from error
