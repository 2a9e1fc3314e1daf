"""Validation of sources of CSI and FlexVolume drivers."""

from __future__ import annotations

from volumehost.api.objects import (
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    FlexPersistentVolumeSource,
    FlexVolumeSource,
    SecretReference,
)
from volumehost.api.validation.names import LABEL_LENGTH, dns_label, dns_subdomain
from volumehost.api.validation.problems import Problems


def csi_driver_name(name: str, field: str, problems: Problems) -> None:
    """The name of a CSI driver: a DNS subdomain of at most 63 characters, capitals allowed."""
    if not name:
        problems.required(field)
    elif len(name) > LABEL_LENGTH:
        problems.too_long(field, LABEL_LENGTH, "characters")
    else:
        reason = dns_subdomain(name.lower())
        if reason:
            problems.invalid(field, name, reason)


def csi_source(source: CSIVolumeSource, field: str, problems: Problems) -> None:
    """An ephemeral volume of a CSI driver."""
    csi_driver_name(source.driver, f"{field}.driver", problems)
    secret = source.node_publish_secret_ref
    if secret is not None:
        if not secret.name:
            problems.required(f"{field}.nodePublishSecretRef.name")
        else:
            reason = dns_subdomain(secret.name)
            if reason:
                problems.invalid(f"{field}.nodePublishSecretRef.name", secret.name, reason)


def csi_persistent_source(source: CSIPersistentVolumeSource, field: str, problems: Problems) -> None:
    """A persistent volume of a CSI driver: driver, handle, complete references to secrets."""
    csi_driver_name(source.driver, f"{field}.driver", problems)
    if not source.volume_handle:
        problems.required(f"{field}.volumeHandle")
    for name, secret in (
        ("controllerPublishSecretRef", source.controller_publish_secret_ref),
        ("controllerExpandSecretRef", source.controller_expand_secret_ref),
        ("nodeStageSecretRef", source.node_stage_secret_ref),
        ("nodePublishSecretRef", source.node_publish_secret_ref),
        ("nodeExpandSecretRef", source.node_expand_secret_ref),
    ):
        if secret is not None:
            secret_reference(secret, f"{field}.{name}", problems)


def secret_reference(secret: SecretReference, field: str, problems: Problems) -> None:
    """A secret by name and namespace."""
    for name, value, why_not in (
        ("name", secret.name, dns_subdomain(secret.name)),
        ("namespace", secret.namespace, dns_label(secret.namespace)),
    ):
        if not value:
            problems.required(f"{field}.{name}")
        elif why_not:
            problems.invalid(f"{field}.{name}", value, why_not)


def flex_source(source: FlexVolumeSource | FlexPersistentVolumeSource, field: str, problems: Problems) -> None:
    """A FlexVolume: a driver, and options that stay out of Kubernetes' own names. Values are never shown."""
    if not source.driver:
        problems.required(f"{field}.driver")
    for key in source.options:
        namespace = f".{key.partition('/')[0].lower()}"
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            problems.invalid(f"{field}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")
