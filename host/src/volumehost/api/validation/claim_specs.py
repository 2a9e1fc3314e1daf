"""Validation of what a claim asks for, shared by claims and the templates of ephemeral volumes."""

from __future__ import annotations

from collections.abc import Sequence

from volumehost.api.objects import (
    ObjectMeta,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    TypedLocalObjectReference,
    TypedObjectReference,
)
from volumehost.api.validation.metadata import validate_annotations, validate_labels
from volumehost.api.validation.names import dns_label, dns_subdomain
from volumehost.api.validation.problems import Problems
from volumehost.api.validation.quantities import resource_list, size
from volumehost.api.validation.selectors import label_selector

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def access_modes(modes: Sequence[str], field: str, problems: Problems) -> None:
    """At least one known mode; ``ReadWriteOncePod`` only by itself."""
    if not modes:
        problems.required(field, "at least 1 access mode is required")
    for mode in modes:
        if mode not in ACCESS_MODES:
            problems.not_supported(field, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        problems.forbidden(field, "may not use ReadWriteOncePod with other access modes")


def volume_mode(mode: str | None, field: str, problems: Problems) -> None:
    """A known mode, or none."""
    if mode is not None and mode not in VOLUME_MODES:
        problems.not_supported(field, mode, VOLUME_MODES)


def class_name(name: str | None, field: str, problems: Problems) -> None:
    """The name of a class; unset and "" have meanings of their own."""
    if name:
        reason = dns_subdomain(name)
        if reason:
            problems.invalid(field, name, reason)


def claim_spec(spec: PersistentVolumeClaimSpec, field: str, problems: Problems) -> None:
    """Access modes, size, class, mode, data source."""
    access_modes(spec.access_modes, f"{field}.accessModes", problems)
    label_selector(spec.selector, f"{field}.selector", problems)
    requests = f"{field}.resources.requests"
    if "storage" in spec.resources.requests:
        size(spec.resources.requests["storage"], f"{requests}.storage", problems)
    else:
        problems.required(f"{requests}.storage")
    resource_list(spec.resources.limits, f"{field}.resources.limits", problems)
    class_name(spec.storage_class_name, f"{field}.storageClassName", problems)
    class_name(spec.volume_attributes_class_name, f"{field}.volumeAttributesClassName", problems)
    class_name(spec.volume_name, f"{field}.volumeName", problems)
    volume_mode(spec.volume_mode, f"{field}.volumeMode", problems)
    _data_sources(spec, field, problems)


def _data_sources(spec: PersistentVolumeClaimSpec, field: str, problems: Problems) -> None:
    source, reference = spec.data_source, spec.data_source_ref
    if source is not None:
        _data_source(source, f"{field}.dataSource", problems)
    if reference is None:
        return
    _data_source(reference, f"{field}.dataSourceRef", problems)
    if reference.namespace:
        reason = dns_label(reference.namespace)
        if reason:
            problems.invalid(f"{field}.dataSourceRef.namespace", reference.namespace, reason)
        if source is not None:
            problems.forbidden(f"{field}.dataSource", "may not be specified when dataSourceRef.namespace is specified")
    elif source is not None and (source.api_group or "", source.kind, source.name) != (
        reference.api_group or "",
        reference.kind,
        reference.name,
    ):
        problems.forbidden(f"{field}.dataSource", "must match dataSourceRef")


def _data_source(source: TypedLocalObjectReference | TypedObjectReference, field: str, problems: Problems) -> None:
    if not source.name:
        problems.required(f"{field}.name")
    if not source.kind:
        problems.required(f"{field}.kind")
    if source.api_group:
        reason = dns_subdomain(source.api_group)
        if reason:
            problems.invalid(f"{field}.apiGroup", source.api_group, reason)
    elif source.kind and source.kind != "PersistentVolumeClaim":
        problems.invalid(field, source.kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")


def claim_template(template: PersistentVolumeClaimTemplate, field: str, problems: Problems) -> None:
    """The claim of an ephemeral volume: of its metadata only labels and annotations are used."""
    metadata = template.metadata
    validate_labels(metadata.labels, f"{field}.metadata.labels", problems)
    validate_annotations(metadata.annotations, f"{field}.metadata.annotations", problems)
    blank = ObjectMeta(labels=metadata.labels, annotations=metadata.annotations)
    names = zip(metadata.__struct_fields__, metadata.__struct_encode_fields__, strict=True)
    for name, wire in names:
        if getattr(metadata, name) != getattr(blank, name):
            problems.forbidden(f"{field}.metadata.{wire}", "cannot be set")
    claim_spec(template.spec, f"{field}.spec", problems)
