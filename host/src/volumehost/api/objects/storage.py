"""Storage classes, attachments and capacity: the kinds of ``storage.k8s.io`` that the controllers use."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from volumehost.api.objects.base import ApiStruct, QuantityText, always
from volumehost.api.objects.meta import KubeObject, LabelSelector, TopologySelectorTerm
from volumehost.api.objects.persistent_volume import PersistentVolumeSpec

STORAGE_V1 = "storage.k8s.io/v1"


class StorageClass(KubeObject):
    """How volumes of a class are made."""

    api_version: str = always(STORAGE_V1)
    kind: str = always("StorageClass")
    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: list[str] = []
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeAttributesClass(KubeObject):
    """Attributes of a volume that can change during its life."""

    api_version: str = always(STORAGE_V1)
    kind: str = always("VolumeAttributesClass")
    driver_name: str = ""
    parameters: dict[str, str] = {}


class VolumeAttachmentSource(ApiStruct):
    """What is attached: a PersistentVolume by name, or a spec that stands for an in-tree volume."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(ApiStruct):
    """The wish to attach a volume to a node, and the driver that is to do it."""

    attacher: str = ""
    source: VolumeAttachmentSource = field(default_factory=VolumeAttachmentSource)
    node_name: str = ""


class VolumeError(ApiStruct):
    """Why attaching or detaching failed; ``error_code`` is the gRPC code where known."""

    time: str | None = None
    message: str = ""
    error_code: int | None = None


class VolumeAttachmentStatus(ApiStruct):
    """Whether it is attached, and what the node needs to know to use it."""

    PRIVATE: ClassVar[frozenset[str]] = frozenset({"attachment_metadata"})

    attached: bool = False
    attachment_metadata: dict[str, str] = {}
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(KubeObject):
    """The attachment of one volume to one node."""

    api_version: str = always(STORAGE_V1)
    kind: str = always("VolumeAttachment")
    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = field(default_factory=VolumeAttachmentStatus)


class CSIStorageCapacity(KubeObject):
    """How much a driver can still provision for a class in a topology."""

    api_version: str = always(STORAGE_V1)
    kind: str = always("CSIStorageCapacity")
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None
