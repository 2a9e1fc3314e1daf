"""PersistentVolumeClaim and the template from which ephemeral volumes make theirs."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct, ResourceList, always
from volumehost.api.objects.meta import (
    Condition,
    KubeObject,
    LabelSelector,
    ObjectMeta,
    TypedLocalObjectReference,
    TypedObjectReference,
)


class VolumeResourceRequirements(ApiStruct):
    """What a claim asks for: ``requests["storage"]`` is the size."""

    limits: ResourceList = {}
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(ApiStruct):
    """What storage is wanted. An unset ``storage_class_name`` means the default class, "" means none."""

    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = field(default_factory=VolumeResourceRequirements)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class ModifyVolumeStatus(ApiStruct):
    """How far a change of the volume's attributes class has come."""

    target_volume_attributes_class_name: str = ""
    status: str = ""


class PersistentVolumeClaimStatus(ApiStruct):
    """``phase`` is ``Pending``, ``Bound`` or ``Lost``; ``capacity`` is what the claim has got."""

    phase: str = ""
    access_modes: list[str] = []
    capacity: ResourceList = {}
    conditions: list[Condition] = []
    allocated_resources: ResourceList = {}
    allocated_resource_statuses: dict[str, str] = {}
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(KubeObject):
    """A request for storage in a namespace."""

    api_version: str = always("v1")
    kind: str = always("PersistentVolumeClaim")
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class PersistentVolumeClaimTemplate(ApiStruct):
    """The claim that an ephemeral volume makes; only labels and annotations of the metadata are used."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
