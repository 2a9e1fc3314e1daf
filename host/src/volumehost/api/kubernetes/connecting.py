"""From a kubeconfig, or from the pod that this program runs in, to a client. Called by the daemons and commands."""

from __future__ import annotations

import importlib.util
import os

from volumehost.api.kubernetes.client import KubernetesClient
from volumehost.api.kubernetes.cluster_config import ClusterConfig
from volumehost.api.kubernetes.in_cluster import in_cluster_config, is_in_cluster
from volumehost.api.kubernetes.kubeconfig import kubeconfig_paths, load_kubeconfig
from volumehost.errors import ClusterConfigError, NotAvailableOnHostError

_HOME_FILE = "~/.kube/config"


def connect(kubeconfig: str | None = None, context: str | None = None, *, in_cluster: bool = False) -> KubernetesClient:
    """A client for a cluster. Nothing is asked of the server yet.

    :param kubeconfig: a file, or several as ``KUBECONFIG`` holds them (``a:b``, merged as kubectl does). None: those of
        ``KUBECONFIG``, else the configuration of the pod that this program runs in, else ``~/.kube/config``.
    :param context: one of the kubeconfig's contexts; None is its current one.
    :param in_cluster: of the pod that this program runs in, whatever kubeconfig there may be besides.
    :raises ClusterConfigError: it cannot be used; names file, context and what to do.
    :raises NotAvailableOnHostError: the ``kubernetes`` distribution is not installed.
    """
    if importlib.util.find_spec("kubernetes") is None:
        raise NotAvailableOnHostError(
            "the distribution kubernetes is not installed",
            action="connect to a cluster",
            hint="pip install 'volumehost[kubernetes]'",
        )
    from volumehost.api.kubernetes.transport import Transport

    config = _of_this_pod() if in_cluster else cluster_config(kubeconfig, context)
    return KubernetesClient(Transport(config))


def _of_this_pod() -> ClusterConfig:
    if not is_in_cluster(os.environ):
        raise ClusterConfigError(
            "this is no pod of a cluster, or one without the variables that name its API server",
            action="read the in-cluster configuration",
            hint="give --kubeconfig FILE",
        )
    return in_cluster_config()


def cluster_config(kubeconfig: str | None, context: str | None) -> ClusterConfig:
    """The configuration that :func:`connect` uses.

    :raises ClusterConfigError: as there.
    """
    if kubeconfig:
        paths = kubeconfig_paths(kubeconfig)
        if not paths:
            raise ClusterConfigError("there is no such file", action=f"read the kubeconfig {kubeconfig}")
        return load_kubeconfig(paths, context)
    from_environment = os.environ.get("KUBECONFIG", "")
    if from_environment:
        paths = kubeconfig_paths(from_environment)
        if not paths:
            raise ClusterConfigError("there is no such file", action=f"read KUBECONFIG={from_environment}")
        return load_kubeconfig(paths, context)
    if is_in_cluster(os.environ):
        if context:
            raise ClusterConfigError(
                "the in-cluster configuration has no contexts", action=f"use the context {context}", hint="--kubeconfig"
            )
        return in_cluster_config()
    home = os.path.expanduser(_HOME_FILE)
    if not os.path.exists(home):
        raise ClusterConfigError(
            f"there is no {_HOME_FILE}, KUBECONFIG is not set, and this is no pod of a cluster",
            action="look for a cluster",
            hint="give --kubeconfig FILE",
        )
    return load_kubeconfig([home], context)
