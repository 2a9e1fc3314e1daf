"""What a pod identifies itself with, and what it checks others with: tokens, certificates, trust anchors.

They are for the pod's user alone where it has one (PAYLOAD-43 to -45). Nothing of them is ever logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import NotAvailableOnHostError, SpecError
from volumehost.sdk import FileProjection
from volumehost.volume_host import KubeletVolumeHost

if TYPE_CHECKING:
    from volumehost.api.objects import (
        ClusterTrustBundleProjection,
        Pod,
        PodCertificateProjection,
        ServiceAccountTokenProjection,
    )
    from volumehost.volume_host import VolumeHost
    from volumehost.volumes import MounterArgs
    from volumehost_projected.keyed import Files

_PRIVATE_MODE = 0o600
#: Whose tokens a pod gets that says nothing; in a cluster the API server says it for the pod.
_DEFAULT_ACCOUNT = "default"


class FileMaker(NamedTuple):
    """Mode and owner of such files."""

    mode: int
    fs_user: int | None

    @classmethod
    def of(cls, default_mode: int, args: MounterArgs) -> FileMaker:
        """The volume's mode; 0600 and the user where the pod's files belong to a user or a group."""
        is_private = args.fs_user is not None or args.fs_group is not None
        return cls(_PRIVATE_MODE if is_private else default_mode, args.fs_user)

    def __call__(self, data: bytes) -> FileProjection:
        """A file with that content."""
        return FileProjection(data, self.mode, self.fs_user)


def token_files(host: VolumeHost, pod: Pod, projection: ServiceAccountTokenProjection, private: FileMaker) -> Files:
    """A token of the pod's service account that ends with the pod; a new one when it is time (HOST-04)."""
    from volumehost.api.objects import BoundObjectReference, TokenRequest, TokenRequestSpec

    metadata = pod.metadata
    request = TokenRequest(
        spec=TokenRequestSpec(
            audiences=[projection.audience] if projection.audience else [],
            expiration_seconds=projection.expiration_seconds,
            bound_object_ref=BoundObjectReference(api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid),
        )
    )
    account = pod.spec.service_account_name or _DEFAULT_ACCOUNT
    answered = host.get_service_account_token_func()(metadata.namespace, account, request)
    return {projection.path: private(answered.status.token.encode())}


def trust_anchor_files(host: VolumeHost, projection: ClusterTrustBundleProjection, private: FileMaker) -> Files:
    """Certificates that others are checked with, by name or by signer and labels (PAYLOAD-44)."""
    node, may_be_missing = _node_host(host, "reading trust anchors"), bool(projection.optional)
    if projection.name is not None:
        anchors = node.get_trust_anchors_by_name(projection.name, may_be_missing)
    elif projection.signer_name is not None:
        signer = projection.signer_name
        anchors = node.get_trust_anchors_by_signer(signer, projection.label_selector, may_be_missing)
    else:
        raise SpecError("ClusterTrustBundle projection requires either name or signerName to be set")
    return {projection.path: private(anchors)}


def certificate_files(
    host: VolumeHost,
    projection: PodCertificateProjection,
    wanted: tuple[str, str, str, str, int],
    private: FileMaker,
) -> Files:
    """The pod's own key and certificate chain, in one file or in two (PAYLOAD-45).

    :param wanted: namespace, name and UID of the pod, the volume's name, the source's place among its sources.
    """
    key, chain = _node_host(host, "requesting a certificate").get_pod_certificate_credential_bundle(*wanted)
    contents = {
        projection.credential_bundle_path: key + chain,
        projection.key_path: key,
        projection.certificate_chain_path: chain,
    }
    return {path: private(data) for path, data in contents.items() if path}


def _node_host(host: VolumeHost, action: str) -> KubeletVolumeHost:
    """The host of a node, which alone has such things (KHOST-04)."""
    if not isinstance(host, KubeletVolumeHost):
        raise NotAvailableOnHostError("this is not the host of a node", action=action)
    return host
