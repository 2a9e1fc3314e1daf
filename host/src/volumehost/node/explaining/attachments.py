"""What a VolumeAttachment says of a volume that is being attached: for explanations of volumes at that phase."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.errors import ApiError
from volumehost.node.explaining.error_words import advice_for, error_lines

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import VolumeAttachment
    from volumehost.control.plane import ControlPlane


@dataclass(slots=True)
class AttachmentWords:
    """Sentences about an attachment."""

    waits_for: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def attachment_words(api: ApiClient, volume: str, node: str, plane: ControlPlane | None = None) -> AttachmentWords:
    """What is known of the attachment of a PersistentVolume to the node.

    :param plane: the control plane of this process, if it is one that attaches.
    """
    words = AttachmentWords()
    try:
        attachment = _attachment(api, volume, node)
    except ApiError:
        return words  # what the operation itself met is told anyway
    if attachment is None or attachment.status.attached:
        return words
    step = plane.step(attachment) if plane is not None else ""
    whom = f"VolumeAttachment {attachment.metadata.name}, which {attachment.spec.attacher} serves"
    words.waits_for.append(f"{whom}: {step}" if step else whom)
    record = plane.failure(attachment) if plane is not None else None
    if record is not None:
        words.error, words.advice = error_lines(record.error), advice_for(record.error)
    elif attachment.status.attach_error is not None:
        words.error = (attachment.status.attach_error.message or "").splitlines()
    return words


def _attachment(api: ApiClient, volume: str, node: str) -> VolumeAttachment | None:
    from volumehost.api.objects import VolumeAttachment

    found = (
        each
        for each in api.list(VolumeAttachment).items
        if each.spec.node_name == node and each.spec.source.persistent_volume_name == volume
    )
    return next(found, None)
