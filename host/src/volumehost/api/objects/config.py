"""Secrets, config maps, service accounts and their tokens, trust bundles: what fills volumes with files."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from volumehost.api.objects.base import ApiStruct, always
from volumehost.api.objects.meta import KubeObject, LocalObjectReference, ObjectReference


class Secret(KubeObject):
    """Private data. ``data`` is decoded here and base64 on the wire; ``string_data`` is merged into it on write."""

    PRIVATE: ClassVar[frozenset[str]] = frozenset({"data", "string_data"})

    api_version: str = always("v1")
    kind: str = always("Secret")
    immutable: bool | None = None
    data: dict[str, bytes] = {}
    string_data: dict[str, str] = {}
    type: str = ""


class ConfigMap(KubeObject):
    """Configuration data; ``binary_data`` is decoded here and base64 on the wire."""

    api_version: str = always("v1")
    kind: str = always("ConfigMap")
    immutable: bool | None = None
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


class ServiceAccount(KubeObject):
    """An identity for pods."""

    api_version: str = always("v1")
    kind: str = always("ServiceAccount")
    secrets: list[ObjectReference] = []
    image_pull_secrets: list[LocalObjectReference] = []
    automount_service_account_token: bool | None = None


class BoundObjectReference(ApiStruct):
    """The object whose end makes a token invalid."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(ApiStruct):
    """For whom a token is to be valid, and how long, in seconds."""

    audiences: list[str] = []
    expiration_seconds: int | None = None
    bound_object_ref: BoundObjectReference | None = None


class TokenRequestStatus(ApiStruct):
    """The token and when it ends."""

    PRIVATE: ClassVar[frozenset[str]] = frozenset({"token"})

    token: str = ""
    expiration_timestamp: str | None = None


class TokenRequest(KubeObject):
    """A request for a token of a service account, answered in the status. Never stored."""

    api_version: str = always("authentication.k8s.io/v1")
    kind: str = always("TokenRequest")
    spec: TokenRequestSpec = field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = field(default_factory=TokenRequestStatus)


class ClusterTrustBundleSpec(ApiStruct):
    """PEM trust anchors, and whose signatures they check."""

    signer_name: str = ""
    trust_bundle: str = ""


class ClusterTrustBundle(KubeObject):
    """Trust anchors that projected volumes can contain."""

    api_version: str = always("certificates.k8s.io/v1beta1")
    kind: str = always("ClusterTrustBundle")
    spec: ClusterTrustBundleSpec = field(default_factory=ClusterTrustBundleSpec)
