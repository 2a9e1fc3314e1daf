"""Volume sources that a node serves by itself: directories, files from the API, claims, images."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from volumehost.api.objects.base import ApiStruct, QuantityText
from volumehost.api.objects.claim import PersistentVolumeClaimTemplate
from volumehost.api.objects.meta import LabelSelector


class HostPathVolumeSource(ApiStruct):
    """A path of the host; ``type`` says what must be there, "" means no check."""

    path: str = ""
    type: str = ""


class EmptyDirVolumeSource(ApiStruct):
    """A directory that lives as long as the pod; media: "", ``Memory``, ``HugePages``, ``HugePages-<size>``."""

    medium: str = ""
    size_limit: QuantityText | None = None


class LocalVolumeSource(ApiStruct):
    """A disk, partition or directory of one node."""

    path: str = ""
    fs_type: str | None = None


class GitRepoVolumeSource(ApiStruct):
    """A clone of a git repository (deprecated in Kubernetes)."""

    repository: str = ""
    revision: str = ""
    directory: str = ""


class KeyToPath(ApiStruct):
    """A key of a config map or secret and the file that it becomes; ``mode`` are permission bits."""

    MERGE_KEY: ClassVar[str] = "path"

    key: str = ""
    path: str = ""
    mode: int | None = None


class ConfigMapVolumeSource(ApiStruct):
    """Files from the keys of a config map."""

    name: str = ""
    items: list[KeyToPath] = []
    default_mode: int | None = None
    optional: bool | None = None


class SecretVolumeSource(ApiStruct):
    """Files from the keys of a secret."""

    secret_name: str = ""
    items: list[KeyToPath] = []
    default_mode: int | None = None
    optional: bool | None = None


class ObjectFieldSelector(ApiStruct):
    """A field of the pod."""

    api_version: str = ""
    field_path: str = ""


class ResourceFieldSelector(ApiStruct):
    """A resource of one of the pod's containers, divided by ``divisor``."""

    container_name: str = ""
    resource: str = ""
    divisor: QuantityText | None = None


class DownwardAPIVolumeFile(ApiStruct):
    """A file with the value of one field or resource."""

    MERGE_KEY: ClassVar[str] = "path"

    path: str = ""
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: int | None = None


class DownwardAPIVolumeSource(ApiStruct):
    """Files about the pod itself."""

    items: list[DownwardAPIVolumeFile] = []
    default_mode: int | None = None


class SecretProjection(ApiStruct):
    """A secret within a projected volume."""

    name: str = ""
    items: list[KeyToPath] = []
    optional: bool | None = None


class ConfigMapProjection(ApiStruct):
    """A config map within a projected volume."""

    name: str = ""
    items: list[KeyToPath] = []
    optional: bool | None = None


class DownwardAPIProjection(ApiStruct):
    """Files about the pod within a projected volume."""

    items: list[DownwardAPIVolumeFile] = []


class ServiceAccountTokenProjection(ApiStruct):
    """A token of the pod's service account within a projected volume."""

    audience: str = ""
    expiration_seconds: int | None = None
    path: str = ""


class ClusterTrustBundleProjection(ApiStruct):
    """Trust anchors within a projected volume, by name or by signer and labels."""

    name: str | None = None
    signer_name: str | None = None
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: str = ""


class PodCertificateProjection(ApiStruct):
    """A key and certificate chain of the pod within a projected volume."""

    signer_name: str = ""
    key_type: str = ""
    max_expiration_seconds: int | None = None
    credential_bundle_path: str = ""
    key_path: str = ""
    certificate_chain_path: str = ""
    user_annotations: dict[str, str] = {}


class VolumeProjection(ApiStruct):
    """One source of a projected volume; exactly one field is set."""

    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = field(default=None, name="downwardAPI")
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class ProjectedVolumeSource(ApiStruct):
    """Several sources merged into one directory."""

    sources: list[VolumeProjection] = []
    default_mode: int | None = None


class PersistentVolumeClaimVolumeSource(ApiStruct):
    """The volume bound to a claim in the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiStruct):
    """A claim that is made for the pod and goes with it."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(ApiStruct):
    """The content of a container image."""

    reference: str = ""
    pull_policy: str = ""
