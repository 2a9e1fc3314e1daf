"""Requests for certificates of pods, which a signer in the cluster answers (certificates.k8s.io)."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from typing import Final

from msgspec import field

from volumehost.api.objects.base import ApiStruct, always
from volumehost.api.objects.meta import Condition, KubeObject

#: The version that Kubernetes 1.36 serves, where that is turned on.
CERTIFICATES_V1BETA1: Final = "certificates.k8s.io/v1beta1"


class PodCertificateRequestSpec(ApiStruct):
    """For which pod, on which node, a certificate of which key is wanted; it never changes.

    ``stub_pkcs10_request`` is an empty certificate signing request (DER) that shows the key, and who has it; with older
    servers ``pkix_public_key`` and ``proof_of_possession`` do.
    """

    signer_name: str = ""
    pod_name: str = ""
    pod_uid: str = field(default="", name="podUID")
    service_account_name: str = ""
    service_account_uid: str = field(default="", name="serviceAccountUID")
    node_name: str = ""
    node_uid: str = field(default="", name="nodeUID")
    max_expiration_seconds: int | None = None
    pkix_public_key: bytes = b""
    proof_of_possession: bytes = b""
    stub_pkcs10_request: bytes = field(default=b"", name="stubPKCS10Request")
    unverified_user_annotations: dict[str, str] = {}


class PodCertificateRequestStatus(ApiStruct):
    """The certificate chain (PEM) once the condition ``Issued`` is there; ``Denied`` and ``Failed`` are for good."""

    conditions: list[Condition] = []
    certificate_chain: str = ""
    not_before: str | None = None
    begin_refresh_at: str | None = None
    not_after: str | None = None


class PodCertificateRequest(KubeObject):
    """Asks a signer for a certificate that is projected into a pod."""

    api_version: str = always(CERTIFICATES_V1BETA1)
    kind: str = always("PodCertificateRequest")
    spec: PodCertificateRequestSpec = field(default_factory=PodCertificateRequestSpec)
    status: PodCertificateRequestStatus = field(default_factory=PodCertificateRequestStatus)
