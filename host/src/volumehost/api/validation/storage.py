"""Validation of storage classes, attributes classes, attachments and capacities."""

from __future__ import annotations

from collections.abc import Mapping

from volumehost.api.objects import (
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentStatus,
    VolumeAttributesClass,
)
from volumehost.api.validation.driver_sources import csi_driver_name
from volumehost.api.validation.names import dns_subdomain, qualified_name
from volumehost.api.validation.problems import Problems, immutable
from volumehost.api.validation.quantities import not_negative
from volumehost.api.validation.selectors import label_selector, topology_terms

BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
CLASS_RECLAIM_POLICIES = ("Delete", "Retain")
_MAX_PARAMETERS = 512
_MAX_PARAMETER_BYTES = 256 * 1024
_MAX_METADATA_BYTES = 256 * 1024
_MAX_MESSAGE_BYTES = 1024


def validate_storage_class(storage_class: StorageClass, problems: Problems) -> None:
    """Provisioner, parameters, policies, topologies."""
    if not storage_class.provisioner:
        problems.required("provisioner")
    else:
        reason = qualified_name(storage_class.provisioner.lower())
        if reason:
            problems.invalid("provisioner", storage_class.provisioner, reason)
    parameters(storage_class.parameters, "parameters", problems)
    if storage_class.reclaim_policy not in CLASS_RECLAIM_POLICIES:
        problems.not_supported("reclaimPolicy", storage_class.reclaim_policy, CLASS_RECLAIM_POLICIES)
    if storage_class.volume_binding_mode not in BINDING_MODES:
        problems.not_supported("volumeBindingMode", storage_class.volume_binding_mode, BINDING_MODES)
    topology_terms(storage_class.allowed_topologies, "allowedTopologies", problems)


def parameters(found: Mapping[str, str], field: str, problems: Problems) -> None:
    """Not too many, not too large; values are never shown."""
    if len(found) > _MAX_PARAMETERS:
        problems.too_long(field, _MAX_PARAMETERS, "entries")
    if "" in found:
        problems.invalid(field, "", "the name of a parameter must not be empty")
    if sum(len(key.encode()) + len(value.encode()) for key, value in found.items()) > _MAX_PARAMETER_BYTES:
        problems.too_long(field, _MAX_PARAMETER_BYTES)


def validate_storage_class_change(storage_class: StorageClass, old: StorageClass, problems: Problems) -> None:
    """What volumes of the class were made with stays."""
    for name, wire in (
        ("provisioner", "provisioner"),
        ("parameters", "parameters"),
        ("reclaim_policy", "reclaimPolicy"),
        ("volume_binding_mode", "volumeBindingMode"),
    ):
        immutable(storage_class, old, name, wire, problems)


def validate_attributes_class(attributes: VolumeAttributesClass, problems: Problems) -> None:
    """A driver and at least one parameter."""
    csi_driver_name(attributes.driver_name, "driverName", problems)
    if not attributes.parameters:
        problems.required("parameters", "must have at least one")
    parameters(attributes.parameters, "parameters", problems)


def validate_attributes_class_change(
    attributes: VolumeAttributesClass, old: VolumeAttributesClass, problems: Problems
) -> None:
    """Nothing of it can change."""
    immutable(attributes, old, "driver_name", "driverName", problems)
    immutable(attributes, old, "parameters", "parameters", problems)


def validate_attachment(attachment: VolumeAttachment, problems: Problems) -> None:
    """An attacher, a node and exactly one source."""
    spec = attachment.spec
    csi_driver_name(spec.attacher, "spec.attacher", problems)
    if not spec.node_name:
        problems.required("spec.nodeName")
    else:
        reason = dns_subdomain(spec.node_name)
        if reason:
            problems.invalid("spec.nodeName", spec.node_name, reason)
    name, inline = spec.source.persistent_volume_name, spec.source.inline_volume_spec
    if name is None and inline is None:
        problems.required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
    elif name is not None and inline is not None:
        problems.forbidden("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
    elif name == "":
        problems.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    elif inline is not None:
        if inline.csi is None:
            problems.required(
                "spec.source.inlineVolumeSpec.csi", "has to be specified in the context of inline volumes"
            )
        else:
            from volumehost.api.validation.sources import one_source

            one_source(inline, "spec.source.inlineVolumeSpec", problems)
    _validate_attachment_status(attachment.status, problems)


def _validate_attachment_status(status: VolumeAttachmentStatus, problems: Problems) -> None:
    """What an attacher tells has its limits (CSI-ATT-18)."""
    if sum(len(text.encode()) for item in status.attachment_metadata.items() for text in item) > _MAX_METADATA_BYTES:
        problems.too_long("status.attachmentMetadata", _MAX_METADATA_BYTES)
    for path, error in (("status.attachError", status.attach_error), ("status.detachError", status.detach_error)):
        if error is None:
            continue
        if len(error.message.encode()) > _MAX_MESSAGE_BYTES:
            problems.too_long(f"{path}.message", _MAX_MESSAGE_BYTES)
        if error.error_code is not None and error.error_code < 0:
            problems.invalid(f"{path}.errorCode", error.error_code, "must not be negative")


def validate_attachment_change(attachment: VolumeAttachment, old: VolumeAttachment, problems: Problems) -> None:
    """The wish cannot change: it is deleted, and another made."""
    immutable(attachment, old, "spec", "spec", problems)


def validate_capacity(capacity: CSIStorageCapacity, problems: Problems) -> None:
    """A class, a topology and amounts."""
    if not capacity.storage_class_name:
        problems.required("storageClassName")
    from volumehost.api.validation.claim_specs import class_name

    class_name(capacity.storage_class_name, "storageClassName", problems)
    label_selector(capacity.node_topology, "nodeTopology", problems)
    for field, amount in (("capacity", capacity.capacity), ("maximumVolumeSize", capacity.maximum_volume_size)):
        if amount is not None:
            not_negative(amount, field, problems)


def validate_capacity_change(capacity: CSIStorageCapacity, old: CSIStorageCapacity, problems: Problems) -> None:
    """Class and topology identify it."""
    immutable(capacity, old, "storage_class_name", "storageClassName", problems)
    immutable(capacity, old, "node_topology", "nodeTopology", problems)
