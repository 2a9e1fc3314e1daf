"""Validation of what all objects share: names, namespaces, labels, annotations, finalizers, owners."""

from __future__ import annotations

from volumehost.api.kinds import Kind
from volumehost.api.objects import ClusterTrustBundle, KubeObject, ObjectMeta
from volumehost.api.validation.names import dns_label, dns_subdomain, label_value, qualified_name
from volumehost.api.validation.problems import Problems

_MAX_ANNOTATION_BYTES = 256 * 1024


def validate_metadata(obj: KubeObject, kind: Kind[KubeObject], problems: Problems) -> None:
    """Check the metadata of a new or changed object; the name must be final."""
    metadata = obj.metadata
    path = "metadata"
    if not metadata.name:
        problems.required(f"{path}.name", "name or generateName is required")
    else:
        # A trust bundle has its signer before a colon.
        name = metadata.name.replace(":", ".") if kind.struct is ClusterTrustBundle else metadata.name
        reason = dns_subdomain(name)
        if reason:
            problems.invalid(f"{path}.name", metadata.name, reason)
    if kind.namespaced:
        reason = dns_label(metadata.namespace)
        if reason:
            problems.invalid(f"{path}.namespace", metadata.namespace, reason)
    elif metadata.namespace:
        problems.forbidden(f"{path}.namespace", f"a {kind.kind} belongs to no namespace")
    validate_labels(metadata.labels, f"{path}.labels", problems)
    validate_annotations(metadata.annotations, f"{path}.annotations", problems)
    _finalizers(metadata, problems)
    _owners(metadata, problems)


def validate_labels(labels: dict[str, str], path: str, problems: Problems) -> None:
    """Check keys and values."""
    for key, value in labels.items():
        reason = qualified_name(key)
        if reason:
            problems.invalid(path, key, reason)
        reason = label_value(value)
        if reason:
            problems.invalid(f"{path}[{key}]", value, reason)


def validate_annotations(annotations: dict[str, str], path: str, problems: Problems) -> None:
    """Check keys and the size of all; values are free and never shown."""
    for key in annotations:
        reason = qualified_name(key.lower())
        if reason:
            problems.invalid(path, key, reason)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATION_BYTES:
        problems.too_long(path, _MAX_ANNOTATION_BYTES)


def _finalizers(metadata: ObjectMeta, problems: Problems) -> None:
    for index, finalizer in enumerate(metadata.finalizers):
        path = f"metadata.finalizers[{index}]"
        reason = qualified_name(finalizer)
        if reason:
            problems.invalid(path, finalizer, reason)
        elif "/" not in finalizer and finalizer not in {"orphan", "foregroundDeletion"}:
            problems.invalid(path, finalizer, "must have a domain before '/', such as example.com/finalizer")


def _owners(metadata: ObjectMeta, problems: Problems) -> None:
    controllers = 0
    for index, owner in enumerate(metadata.owner_references):
        path = f"metadata.ownerReferences[{index}]"
        for name, value in (
            ("apiVersion", owner.api_version),
            ("kind", owner.kind),
            ("name", owner.name),
            ("uid", owner.uid),
        ):
            if not value:
                problems.required(f"{path}.{name}")
        controllers += bool(owner.controller)
    if controllers > 1:
        problems.forbidden("metadata.ownerReferences", "only one of them can be the controller")
