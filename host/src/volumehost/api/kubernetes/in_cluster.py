"""The configuration of a pod: the service account that Kubernetes mounts into it, and two environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping

from volumehost.api.kubernetes.cluster_config import DEFAULT_NAMESPACE, ClusterConfig
from volumehost.api.kubernetes.credentials import TokenFile
from volumehost.api.kubernetes.material import Material
from volumehost.errors import ClusterConfigError

SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_ORIGIN = "the in-cluster configuration"


def is_in_cluster(environment: Mapping[str, str]) -> bool:
    """Whether this program runs in a pod that can know of the API server."""
    return bool(environment.get(_HOST) and environment.get(_PORT))


def in_cluster_config(
    environment: Mapping[str, str] = os.environ, directory: str = SERVICE_ACCOUNT_DIR
) -> ClusterConfig:
    """The server and the service account of this pod. The token is read anew as it is rotated.

    :raises ClusterConfigError: the pod has no service account mounted.
    """
    host, port = environment.get(_HOST, ""), environment.get(_PORT, "")
    token, authority = os.path.join(directory, "token"), os.path.join(directory, "ca.crt")
    for path in (token, authority):
        if not os.path.isfile(path):
            raise ClusterConfigError(
                f"{path} is not there",
                action=f"read {_ORIGIN}",
                subject=path,
                hint="mount the pod's service account token (automountServiceAccountToken), or give --kubeconfig",
            )
    credentials = TokenFile(token, _ORIGIN)
    credentials.headers()
    return ClusterConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        origin=_ORIGIN,
        credentials=credentials,
        namespace=_namespace(directory),
        authority=Material(path=authority),
    )


def _namespace(directory: str) -> str:
    try:
        with open(os.path.join(directory, "namespace"), encoding="utf-8") as file:
            return file.read().strip() or DEFAULT_NAMESPACE
    except (OSError, UnicodeDecodeError):
        return DEFAULT_NAMESPACE
