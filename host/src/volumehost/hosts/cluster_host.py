"""ClusterHost: the host of a node in a cluster. Tokens and certificates come from its API server."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from volumehost.errors import NotAvailableOnHostError
from volumehost.hosts.node_host import NodeHost

if TYPE_CHECKING:
    from volumehost.api.objects import Node, TokenRequest
    from volumehost.hosts.pod_certificates import PodCertificates
    from volumehost.hosts.tokens import Signer


@runtime_checkable
class TokenIssuer(Protocol):
    """What an ApiClient of a cluster offers besides."""

    def request_token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        """The request with its status."""
        ...


class Synced(Protocol):
    """Tells whether objects were read for the first time."""

    @property
    def has_synced(self) -> bool:
        """Whether they were."""
        ...


@runtime_checkable
class NodeCache(Protocol):
    """What an ApiClient that keeps the objects of some kinds offers besides."""

    def informer(self, kind: type[Node]) -> Synced:
        """What keeps the kind; KeyError where nothing does."""
        ...


def _knows_nodes(api: NodeCache) -> bool:
    from volumehost.api.objects import Node

    try:
        return api.informer(Node).has_synced
    except KeyError:
        return True


class ClusterHost(NodeHost):
    """A NodeHost whose API is a cluster's: it mounts, and controllers elsewhere attach (CSI-ATT-01)."""

    def _read_node(self) -> Node | None:
        """The Node object; None before it was read for the first time, which what needs no API must not wait for."""
        api = self.get_kube_client()
        if isinstance(api, NodeCache) and not _knows_nodes(api):
            return None
        return super()._read_node()

    def get_pod_certificate_credential_bundle(
        self, namespace: str, pod_name: str, pod_uid: str, volume_name: str, source_index: int
    ) -> tuple[bytes, bytes]:
        """(private key, certificate chain), both PEM, of a podCertificate source; renewed before it ends.

        :raises VolumeHostError: see :meth:`volumehost.hosts.pod_certificates.PodCertificates.get`.
        """
        return self._pod_certificates.get(namespace, pod_name, pod_uid, volume_name, source_index)

    def delete_service_account_token_func(self) -> Callable[[str], None]:
        """A function ``(pod_uid)`` that drops tokens and keys of the pod."""
        forget_tokens, certificates = super().delete_service_account_token_func(), self._pod_certificates

        def forget(pod_uid: str) -> None:
            forget_tokens(pod_uid)
            certificates.forget(pod_uid)

        return forget

    @cached_property
    def _pod_certificates(self) -> PodCertificates:
        from volumehost.hosts.pod_certificates import PodCertificates

        return PodCertificates(self.get_kube_client, self.get_node_name())

    def default_token_signer(self) -> Signer:
        """The API server, by TokenRequest (HOST-04)."""
        return self._request_token

    def _request_token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        api = self.get_kube_client()
        if not isinstance(api, TokenIssuer):
            raise NotAvailableOnHostError(
                "its API issues no service account tokens",
                action=f"requesting a token of service account {namespace}/{name}",
                subject=f"{namespace}/{name}",
            )
        return api.request_token(namespace, name, request)
