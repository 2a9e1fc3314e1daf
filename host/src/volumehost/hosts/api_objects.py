"""Secrets, config maps and trust anchors for plugins, out of the API that the host has (HOST-02 to -04, KHOST-01)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from volumehost.errors import NotAvailableOnHostError, ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import ClusterTrustBundle, ConfigMap, LabelSelector, Secret, TokenRequest
    from volumehost.hosts.tokens import Signer, TokenCache

_STANDALONE = "not supported due to running kubelet in standalone mode"


class ApiObjects:
    """Reads from the client at each call: what a plugin gets is never older than the call.

    :param token_signer: gives what signs tokens, None where nothing does; asked when the first token is wanted.
    """

    def __init__(self, api: Callable[[], ApiClient | None], token_signer: Callable[[], Signer | None]) -> None:
        self._api = api
        self._token_signer = token_signer
        self._lock = threading.Lock()
        self._tokens: TokenCache | None = None

    def get_secret(self, namespace: str, name: str) -> Secret:
        """The secret.

        :raises ObjectNotFoundError: there is none.
        :raises NotAvailableOnHostError: the host has no API (HOST-03).
        """
        api = self._require("get secret")
        from volumehost.api.objects import Secret

        return api.get(Secret, name, namespace)

    def get_config_map(self, namespace: str, name: str) -> ConfigMap:
        """The config map; errors as for secrets."""
        api = self._require("get configmap")
        from volumehost.api.objects import ConfigMap

        return api.get(ConfigMap, name, namespace)

    def get_service_account_token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequest:
        """The request with its status; a token that was signed for the same purpose before, while it lives long enough.

        :raises NotAvailableOnHostError: nothing here signs tokens (HOST-04).
        """
        tokens = self._token_cache()
        if tokens is None:
            raise NotAvailableOnHostError(
                "nothing here signs service account tokens",
                action=f"requesting a token of service account {namespace}/{name}",
                subject=f"{namespace}/{name}",
                hint="give the host a token_signer, or use a volume that needs no token",
            )
        return tokens.get(namespace, name, request)

    def delete_service_account_token(self, pod_uid: str) -> None:
        """Drop the tokens that were signed for the pod."""
        with self._lock:
            tokens = self._tokens
        if tokens is not None:
            tokens.forget(pod_uid)

    def trust_anchors_by_name(self, name: str, allow_missing: bool) -> bytes:
        """PEM trust anchors of the named ClusterTrustBundle; none when it may be missing and is."""
        api = self._require("get trust anchors")
        from volumehost.api.objects import ClusterTrustBundle

        try:
            return _pem([api.get(ClusterTrustBundle, name)])
        except ObjectNotFoundError:
            if allow_missing:
                return b""
            raise

    def trust_anchors_by_signer(
        self, signer_name: str, label_selector: LabelSelector | None, allow_missing: bool
    ) -> bytes:
        """PEM trust anchors of the bundles of the signer whose labels match."""
        api = self._require("get trust anchors")
        from volumehost.api.objects import ClusterTrustBundle

        found = [
            bundle
            for bundle in api.list(ClusterTrustBundle).items
            if bundle.spec.signer_name == signer_name and labels_match(label_selector, bundle.metadata.labels)
        ]
        if not found and not allow_missing:
            raise ObjectNotFoundError(
                f"no ClusterTrustBundle of signer {signer_name} matches", action="getting trust anchors",
                subject=signer_name,
            )  # fmt: skip
        return _pem(found)

    def _token_cache(self) -> TokenCache | None:
        with self._lock:
            if self._tokens is None:
                signer = self._token_signer()
                if signer is not None:
                    from volumehost.hosts.tokens import TokenCache

                    self._tokens = TokenCache(signer)
            return self._tokens

    def _require(self, action: str) -> ApiClient:
        api = self._api()
        if api is None:
            raise NotAvailableOnHostError(_STANDALONE, action=action)
        return api


def labels_match(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether the labels meet every condition; no selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    for condition in selector.match_expressions:
        value = labels.get(condition.key)
        met = {
            "In": value is not None and value in condition.values,
            "NotIn": value is None or value not in condition.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not met.get(condition.operator, False):
            return False
    return True


def _pem(bundles: list[ClusterTrustBundle]) -> bytes:
    """The bundles' certificates, each once, in a stable order."""
    blocks: set[str] = set()
    for bundle in bundles:
        for part in bundle.spec.trust_bundle.split("-----END CERTIFICATE-----"):
            start = part.find("-----BEGIN CERTIFICATE-----")
            if start >= 0:
                blocks.add(f"{part[start:].strip()}\n-----END CERTIFICATE-----\n")
    return "".join(sorted(blocks)).encode()
