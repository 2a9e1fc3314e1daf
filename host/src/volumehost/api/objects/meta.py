"""Metadata and references that all kinds share."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from volumehost.api.objects.base import ApiStruct


class OwnerReference(ApiStruct):
    """An object that owns this one; ``controller`` marks the one that manages it."""

    MERGE_KEY: ClassVar[str] = "uid"

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiStruct):
    """Name, identity and bookkeeping of an object. Times are RFC 3339 in UTC.

    ``resource_version`` is opaque: compare for equality only. ``generation`` counts changes of the spec.
    """

    # Annotations can hold a copy of the whole object as it was last applied, secrets with it.
    PRIVATE: ClassVar[frozenset[str]] = frozenset({"annotations", "managed_fields"})

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []
    managed_fields: list[dict[str, Any]] = []


class KubeObject(ApiStruct):
    """An object with a name of its own: what the store keeps and manifests hold."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class LocalObjectReference(ApiStruct):
    """An object in the same namespace."""

    name: str = ""


class SecretReference(ApiStruct):
    """A secret in any namespace."""

    name: str = ""
    namespace: str = ""


class ObjectReference(ApiStruct):
    """Any object, optionally a field of it."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class TypedLocalObjectReference(ApiStruct):
    """An object of a stated kind in the same namespace; no group means the core group."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""


class TypedObjectReference(ApiStruct):
    """An object of a stated kind, possibly in another namespace."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class LabelSelectorRequirement(ApiStruct):
    """One condition on labels: ``operator`` is ``In``, ``NotIn``, ``Exists`` or ``DoesNotExist``."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(ApiStruct):
    """All conditions must hold; an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class NodeSelectorRequirement(ApiStruct):
    """One condition on a node: ``operator`` is ``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(ApiStruct):
    """Conditions on a node that must all hold; a term without any matches nothing."""

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(ApiStruct):
    """A node matches when one of the terms matches."""

    node_selector_terms: list[NodeSelectorTerm] = []


class TopologySelectorLabelRequirement(ApiStruct):
    """A topology label and its allowed values."""

    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(ApiStruct):
    """Topologies in which a volume may be made: all requirements must hold."""

    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class Condition(ApiStruct):
    """One observed condition of an object: ``status`` is ``True``, ``False`` or ``Unknown``."""

    MERGE_KEY: ClassVar[str] = "type"

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_probe_time: str | None = None
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""
