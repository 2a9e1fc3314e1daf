"""The one place that decides whose API objects a command works on: the embedded store's, or those of a cluster.

A cluster is chosen by ``--kubeconfig`` (or VOLUMEHOST_KUBECONFIG), ``--context`` or ``--in-cluster``, never by a
KUBECONFIG that happens to be in the environment: that only says which file ``--context`` looks in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import click

from volumehost.errors import FailedPreconditionError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.kubernetes import KubernetesClient
    from volumehost.cli.options import Settings


def open_for_reading(settings: Settings) -> AbstractContextManager[ApiClient]:
    """The API objects, to look at: of the embedded store nothing is made, and no right to write is needed.

    :raises StoreError: the store or the cluster's server cannot be used.
    """
    if settings.cluster:
        return cluster(settings)
    from volumehost.api.read_only_store import ReadOnlyStore
    from volumehost.hosts.layout import Layout
    from volumehost.hosts.root_dir import resolve_root_dir

    return ReadOnlyStore(Layout(resolve_root_dir(settings.root)).store_file())


def open_for_writing(settings: Settings) -> AbstractContextManager[ApiClient]:
    """The API objects; without a cluster the root directory is made when it is not there."""
    if settings.cluster:
        return cluster(settings)
    from volumehost.api.store import EmbeddedStore
    from volumehost.hosts.layout import Layout
    from volumehost.hosts.root_dir import prepare_root_dir

    return EmbeddedStore(Layout(prepare_root_dir(settings.root)).store_file())


@contextmanager
def cluster(settings: Settings) -> Iterator[KubernetesClient]:
    """The API server that the options name, until the end of the block; also for the daemons.

    :raises click.UsageError: options contradict each other.
    :raises ClusterConfigError: the kubeconfig cannot be used.
    :raises NotAvailableOnHostError: what talks to a cluster is not installed.
    """
    client = _connect(settings)
    try:
        yield client
    finally:
        client.close()


def context_namespace(settings: Settings) -> str:
    """The namespace of the kubeconfig's context, for a command that is given none."""
    client = _connect(settings)
    try:
        return client.default_namespace
    finally:
        client.close()


def _connect(settings: Settings) -> KubernetesClient:
    check_cluster_options(settings)
    from volumehost.api.kubernetes import connect

    return connect(settings.kubeconfig, settings.context, in_cluster=settings.in_cluster)


def check_cluster_options(settings: Settings) -> None:
    """Refuse options that contradict each other.

    :raises click.UsageError: they do.
    """
    if settings.in_cluster and (settings.kubeconfig_given or settings.context is not None):
        raise click.UsageError("--in-cluster goes without --kubeconfig and --context")


def refuse_cluster(settings: Settings, what: str, instead: str) -> None:
    """For a command that has no business with a cluster.

    :param what: the command does, such as ``mounting``.
    :param instead: what to do in its stead.
    :raises FailedPreconditionError: a cluster was chosen.
    """
    if settings.cluster:
        raise FailedPreconditionError(
            "in a cluster that is the work of the agent of the pod's node", action=what, hint=instead
        )
