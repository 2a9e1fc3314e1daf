"""``volumehost explain``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from volumehost.cli.agent_view import ask_agent
from volumehost.cli.api_choice import open_for_reading
from volumehost.cli.as_given import as_given
from volumehost.cli.command import Command
from volumehost.cli.complete import pod_names
from volumehost.cli.objects import NameType
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.pod_names import choose_pod, looking_for
from volumehost.errors import StoreError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.node.explaining.explanation import PodExplanation
    from volumehost.node.pod_manager import PodManager


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost explain web"),
        ("For a program", "volumehost explain web -o json"),
    ),
)
@click.argument("pod", metavar="POD", type=NameType(), shell_complete=pod_names)
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def explain(settings: Settings, pod: str) -> None:
    """Explain why the volumes of a pod are not mounted, or not gone.

    For each volume that is not ready: where it is in what it goes through, what it waits for, the last error in full,
    attempts and the next one, and what to do. While an agent works on the root directory it is asked; otherwise the
    records tell, and in a cluster its objects: claims, attachments, events. POD is a pod's name, NAMESPACE/NAME as
    status shows it, or its uid when nothing but its directory is left. Changes nothing.
    """
    name = choose_pod(settings, pod)
    with looking_for(settings, name):
        told = _explanation(settings, name)
    if settings.output == "table":
        for note in told.notes:
            click.echo(as_given(f"note: {note}", settings), err=True)
        for line in told.lines():
            click.echo(as_given(line, settings))
    elif settings.output == "name":
        click.echo(f"pod/{told.name or told.uid}")
    else:
        from volumehost.cli.output import echo_data

        echo_data(told.to_dict(), settings.output)


def _explanation(settings: Settings, name: str) -> PodExplanation:
    with ExitStack() as stack:
        try:
            store = stack.enter_context(open_for_reading(settings))
        except StoreError:
            if settings.cluster:
                raise
            # The rest is still worth knowing; the reader says what is wrong with the store.
            return _recorded(settings, None, name)
        from volumehost.node.populating.pod_objects import find_pod

        pod = find_pod(store, name, settings.namespace)
        if settings.cluster:
            return _in_cluster(settings, store, pod, name)
        live = ask_agent(settings, lambda manager: manager.explain(pod)) if pod is not None else None
        return live if live is not None else _recorded(settings, store, name)


def _in_cluster(settings: Settings, api: ApiClient, pod: Pod | None, name: str) -> PodExplanation:
    """What the agent of this machine knows, of a pod that it works on, else what the cluster's objects tell."""
    from volumehost.node.explaining.in_cluster import explain_in_cluster

    def live(manager: PodManager) -> PodExplanation | None:
        if pod is None or all(each.uid != pod.metadata.uid for each in manager.status()):
            return None
        return manager.explain(pod)

    return ask_agent(settings, live) or explain_in_cluster(api, settings.namespace, name)


def _recorded(settings: Settings, store: ApiClient | None, name: str) -> PodExplanation:
    from volumehost.node.explaining.explain import explain_recorded

    return explain_recorded(settings.root, store, settings.namespace, name, node_name=settings.node_name or "")
