"""From a kubeconfig, or from the pod that this program runs in, to a client. Called by the daemons and commands."""

from __future__ import annotations

from volumehost.api.kubernetes.client import KubernetesClient


def connect(kubeconfig: str | None = None, context: str | None = None) -> KubernetesClient:
    """A client for a cluster. Nothing is asked of the server yet.

    :param kubeconfig: a file, or several as ``KUBECONFIG`` holds them (``a:b``, merged as kubectl does). None: those of
        ``KUBECONFIG``, else the configuration of the pod that this program runs in, else ``~/.kube/config``.
    :param context: one of the kubeconfig's contexts; None is its current one.
    :raises ClusterConfigError: it cannot be used; names file, context and what to do.
    :raises NotAvailableOnHostError: the ``kubernetes`` distribution is not installed.
    """
    raise NotImplementedError
