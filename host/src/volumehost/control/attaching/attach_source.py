"""What a VolumeAttachment is about: the volume, the node as the driver calls it, and the names left on objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from volumehost.control.writes import get_or_none
from volumehost.errors import FailedPreconditionError, SpecError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import CSIPersistentVolumeSource, PersistentVolume, VolumeAttachment

#: On a VolumeAttachment: the node as the driver calls it, for the detach (CSI-EXA-04).
NODE_ID = "csi.alpha.kubernetes.io/node-id"
#: On a VolumeAttachment that is being deleted: detach although the node still uses the volume; data may be lost.
FORCE_DETACH = "volumehost.io/force-detach"

#: The capability of a driver that attaches at all.
PUBLISH = "PUBLISH_UNPUBLISH_VOLUME"
#: How long a driver may take for one call, in seconds; the call is repeated as it was (CSI-EXA-11).
CALL_TIMEOUT = 15.0

FINALIZER_PREFIX = "external-attacher/"
_UNSAFE = re.compile(r"[^A-Za-z0-9-]")


def attacher_finalizer(driver: str) -> str:
    """The finalizer that a driver's attacher puts on attachments and volumes (CSI-EXA-03)."""
    safe = _UNSAFE.sub("-", driver)
    return f"{FINALIZER_PREFIX}{safe}X" if safe.endswith("-") else f"{FINALIZER_PREFIX}{safe}"


def attached_volume(api: ApiClient, attachment: VolumeAttachment) -> PersistentVolume:
    """The volume of the attachment; one without a name stands for the spec of a migrated inline volume.

    :raises FailedPreconditionError: there is no such PersistentVolume.
    """
    from volumehost.api.objects import PersistentVolume

    source = attachment.spec.source
    if source.inline_volume_spec is not None:
        return PersistentVolume(spec=source.inline_volume_spec)
    name = source.persistent_volume_name or ""
    volume = get_or_none(api, PersistentVolume, name)
    if volume is None:
        raise FailedPreconditionError(
            f"there is no PersistentVolume {name}",
            action=f"reading the volume of attachment {attachment.metadata.name}",
            subject=name,
            hint="create it again with the same volume handle, so that the volume can be detached",
        )
    return volume


def csi_source(volume: PersistentVolume, driver: str) -> CSIPersistentVolumeSource:
    """The CSI source of a volume of that driver.

    :raises SpecError: it is none, is of another driver, or has no handle.
    """
    source = volume.spec.csi
    name = volume.metadata.name or "inline volume"
    if source is None:
        raise SpecError("it is no CSI volume", action=f"reading the source of {name}", subject=name)
    if source.driver != driver:
        raise SpecError(
            f"it is a volume of driver {source.driver}, not of {driver}",
            action=f"reading the source of {name}",
            subject=name,
        )
    if not source.volume_handle:
        raise SpecError("its volume handle is empty", action=f"reading the source of {name}", subject=name)
    return source


def node_id(api: ApiClient, node: str, driver: str, attachment: VolumeAttachment | None = None) -> str:
    """The node as the driver calls it, from CSINode (CSI-EXA-05), else from the attachment (CSI-EXA-12).

    :param attachment: what to fall back upon; None where there is nothing to fall back upon.
    :raises FailedPreconditionError: neither knows.
    """
    from volumehost.api.objects import CSINode

    csi_node = get_or_none(api, CSINode, node)
    for each in csi_node.spec.drivers if csi_node is not None else ():
        if each.name == driver and each.node_id:
            return each.node_id
    remembered = attachment.metadata.annotations.get(NODE_ID, "") if attachment is not None else ""
    if remembered:
        return remembered
    missing = "does not list the driver" if csi_node is not None else "does not exist"
    raise FailedPreconditionError(
        f"CSINode {node} {missing}",
        action=f"finding out how driver {driver} calls node {node}",
        subject=node,
        hint="the driver registers itself there when it runs on that node",
    )
