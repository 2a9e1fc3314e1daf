"""Validation of the sources that fill a volume with files: config maps, secrets, the pod itself, tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable

from volumehost.api.objects import (
    ClusterTrustBundleProjection,
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    PodCertificateProjection,
    ProjectedVolumeSource,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    VolumeProjection,
)
from volumehost.api.validation.local_sources import key_paths
from volumehost.api.validation.names import qualified_name
from volumehost.api.validation.paths import file_in_volume, file_mode
from volumehost.api.validation.problems import Problems
from volumehost.api.validation.quantities import quantity
from volumehost.api.validation.selectors import label_selector

#: PAYLOAD-31.
FIELD_PATHS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)
_RESOURCE = re.compile(r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)")
_DIVISORS = {"cpu": ("1m", "1")}
_DIVISORS_OF_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_MIN_TOKEN_SECONDS = 600
_MAX_TOKEN_SECONDS = 2**32
_CERTIFICATE_SECONDS = (3600, 91 * 24 * 3600)
_KEY_TYPES = ("ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096")


def secret_source(source: SecretVolumeSource, field: str, problems: Problems) -> None:
    """A secret's name, modes and paths."""
    if not source.secret_name:
        problems.required(f"{field}.secretName")
    file_mode(source.default_mode, f"{field}.defaultMode", problems)
    key_paths(source.items, f"{field}.items", problems)


def config_map_source(source: ConfigMapVolumeSource, field: str, problems: Problems) -> None:
    """A config map's name, modes and paths."""
    if not source.name:
        problems.required(f"{field}.name")
    file_mode(source.default_mode, f"{field}.defaultMode", problems)
    key_paths(source.items, f"{field}.items", problems)


def downward_api_source(source: DownwardAPIVolumeSource, field: str, problems: Problems) -> None:
    """Files about the pod."""
    file_mode(source.default_mode, f"{field}.defaultMode", problems)
    for index, file in enumerate(source.items):
        downward_api_file(file, f"{field}.items[{index}]", problems)


def downward_api_file(file: DownwardAPIVolumeFile, field: str, problems: Problems) -> None:
    """One file about the pod: exactly one of a field and a resource."""
    file_in_volume(file.path, f"{field}.path", problems)
    file_mode(file.mode, f"{field}.mode", problems)
    if file.field_ref is None and file.resource_field_ref is None:
        problems.required(field, "one of fieldRef and resourceFieldRef is required")
    if file.field_ref is not None:
        if file.resource_field_ref is not None:
            problems.forbidden(field, "fieldRef and resourceFieldRef can not be specified simultaneously")
        _field_path(file.field_ref.field_path, f"{field}.fieldRef.fieldPath", problems)
    elif file.resource_field_ref is not None:
        resource = file.resource_field_ref
        if not resource.container_name:
            problems.required(f"{field}.resourceFieldRef.containerName")
        if not resource.resource:
            problems.required(f"{field}.resourceFieldRef.resource")
        elif not _RESOURCE.fullmatch(resource.resource):
            problems.invalid(
                f"{field}.resourceFieldRef.resource",
                resource.resource,
                "must be limits or requests of cpu, memory, ephemeral-storage or hugepages-<size>",
            )
        if resource.divisor is not None:
            _divisor(resource.divisor, resource.resource, f"{field}.resourceFieldRef.divisor", problems)


def _divisor(text: str, resource: str, field: str, problems: Problems) -> None:
    """A unit of the resource; 0 stands for none."""
    divisor, name = quantity(text, field, problems), resource.partition(".")[2]
    units = _DIVISORS.get(name, _DIVISORS_OF_BYTES)
    if divisor is not None and divisor and str(divisor) not in units:
        problems.not_supported(field, text, units)


def _field_path(path: str, field: str, problems: Problems) -> None:
    subscript = _SUBSCRIPT.fullmatch(path)
    if not path:
        problems.required(field)
    elif subscript:
        # Keys of annotations may have capitals in their prefix (PAYLOAD-33).
        key = subscript[2].lower() if subscript[1] == "annotations" else subscript[2]
        reason = qualified_name(key)
        if reason:
            problems.invalid(field, path, reason)
    elif path not in FIELD_PATHS:
        problems.not_supported(field, path, FIELD_PATHS)


def projected_source(source: ProjectedVolumeSource, field: str, problems: Problems) -> None:
    """Sources of one kind each, whose files do not collide."""
    file_mode(source.default_mode, f"{field}.defaultMode", problems)
    taken: set[str] = set()
    for index, projection in enumerate(source.sources):
        path = f"{field}.sources[{index}]"
        kinds = [name for name in projection.__struct_fields__ if getattr(projection, name) is not None]
        if not kinds:
            problems.required(path, "must specify a projection type")
        if len(kinds) > 1:
            problems.forbidden(path, "may not specify more than 1 volume type per source")
        _projection(projection, path, problems)
        for file in _paths_of(projection):
            if file in taken:
                problems.invalid(path, file, "conflicting duplicate paths")
            taken.add(file)


def _projection(projection: VolumeProjection, field: str, problems: Problems) -> None:
    for name, named in (("secret", projection.secret), ("configMap", projection.config_map)):
        if named is not None:
            if not named.name:
                problems.required(f"{field}.{name}.name")
            key_paths(named.items, f"{field}.{name}.items", problems)
    if projection.downward_api is not None:
        for index, file in enumerate(projection.downward_api.items):
            downward_api_file(file, f"{field}.downwardAPI.items[{index}]", problems)
    if projection.service_account_token is not None:
        _token(projection.service_account_token, f"{field}.serviceAccountToken", problems)
    if projection.cluster_trust_bundle is not None:
        _trust_bundle(projection.cluster_trust_bundle, f"{field}.clusterTrustBundle", problems)
    if projection.pod_certificate is not None:
        _certificate(projection.pod_certificate, f"{field}.podCertificate", problems)


def _paths_of(projection: VolumeProjection) -> Iterable[str]:
    for source in (projection.secret, projection.config_map, projection.downward_api):
        if source is not None:
            yield from (item.path for item in source.items if item.path)
    for single in (projection.service_account_token, projection.cluster_trust_bundle):
        if single is not None and single.path:
            yield single.path
    if projection.pod_certificate is not None:
        yield from filter(None, _certificate_paths(projection.pod_certificate))


def _token(token: ServiceAccountTokenProjection, field: str, problems: Problems) -> None:
    seconds = token.expiration_seconds
    if seconds is not None and seconds < _MIN_TOKEN_SECONDS:
        problems.invalid(f"{field}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds is not None and seconds > _MAX_TOKEN_SECONDS:
        problems.invalid(f"{field}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    file_in_volume(token.path, f"{field}.path", problems)


def _trust_bundle(bundle: ClusterTrustBundleProjection, field: str, problems: Problems) -> None:
    if bundle.name is not None and bundle.signer_name is not None:
        problems.forbidden(field, "only one of name and signerName may be used")
    elif bundle.name is not None:
        if not bundle.name:
            problems.required(f"{field}.name", "must be a valid object name")
        if bundle.label_selector is not None:
            problems.forbidden(f"{field}.labelSelector", "must be unset if name is specified")
    elif bundle.signer_name is not None:
        if not bundle.signer_name:
            problems.required(f"{field}.signerName", "must be a valid signer name")
        label_selector(bundle.label_selector, f"{field}.labelSelector", problems)
    else:
        problems.required(field, "either name or signerName must be specified")
    file_in_volume(bundle.path, f"{field}.path", problems)


def _certificate(certificate: PodCertificateProjection, field: str, problems: Problems) -> None:
    if not certificate.signer_name:
        problems.required(f"{field}.signerName")
    if certificate.key_type not in _KEY_TYPES:
        problems.not_supported(f"{field}.keyType", certificate.key_type, _KEY_TYPES)
    seconds = certificate.max_expiration_seconds
    lowest, highest = _CERTIFICATE_SECONDS
    if seconds is not None and not lowest <= seconds <= highest:
        problems.invalid(f"{field}.maxExpirationSeconds", seconds, "must be between one hour and 91 days")
    paths = _certificate_paths(certificate)
    if not any(paths):
        problems.required(field, "one of credentialBundlePath, keyPath and certificateChainPath is required")
    for name, path in zip(("credentialBundlePath", "keyPath", "certificateChainPath"), paths, strict=True):
        if path:
            file_in_volume(path, f"{field}.{name}", problems)


def _certificate_paths(certificate: PodCertificateProjection) -> tuple[str, str, str]:
    return certificate.credential_bundle_path, certificate.key_path, certificate.certificate_chain_path
