"""``volumehost status``."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.agent_view import with_agents_pods, with_live_pods
from volumehost.cli.api_choice import open_for_reading
from volumehost.cli.as_given import as_given
from volumehost.cli.command import Command
from volumehost.cli.complete import pod_names
from volumehost.cli.objects import NameType
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.pod_names import choose_pod, looking_for
from volumehost.cli.pod_report import pod_data, pod_label, unready_lines, volume_table
from volumehost.cli.tables import printable
from volumehost.errors import ObjectNotFoundError, StoreError

if TYPE_CHECKING:
    from volumehost.node.status.recorded import NodeStatus
    from volumehost.node.status.records import PodStatus


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost status"),
        ("Why a pod is not ready", "volumehost status web"),
        ("Again and again, until Ctrl-C", "volumehost status --watch"),
        ("For a program", "volumehost status -o json"),
    ),
)
@click.argument("pod", metavar="[POD]", required=False, type=NameType(), shell_complete=pod_names)
@click.option("-w", "--watch", "watching", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@shared_options("root-dir", "cluster", "output", "namespace")
@click.pass_obj
def status(settings: Settings, pod: str | None, *, watching: bool) -> None:
    """Show pods, their volumes, and what is being done about them.

    Read from the records under the root directory and from the kernel's mount table: it changes nothing, needs no
    right to write, and waits for no other process. Pods of every namespace are shown unless -n or POD is given. In a
    cluster its objects tell, and of the pods of this machine the agent that works on the root directory.

    With --watch a terminal shows it in place; anywhere else comes a block, or a document on a line of its own, for each
    change. A pod that is watched need not be there yet.
    """
    name = choose_pod(settings, pod) if pod is not None else None
    if watching:
        _watch(settings, name)
        return
    found = _read(settings)
    pods = _selected(settings, found, name)
    if name is not None and not pods:
        with looking_for(settings, name):
            raise ObjectNotFoundError(f"there is no pod {settings.namespace}/{name}", subject=name)
    _print(settings, found, pods)


def _selected(settings: Settings, found: NodeStatus, name: str | None) -> list[PodStatus]:
    if name is not None:
        label = settings.namespace, name
        return [each for each in found.pods if (each.namespace, each.name) == label or each.uid == name]
    return [each for each in found.pods if not settings.namespace_given or each.namespace == settings.namespace]


def _watch(settings: Settings, name: str | None) -> None:
    from volumehost.cli.watching import watch

    def read() -> tuple[NodeStatus, list[PodStatus]]:
        found = _read(settings)
        return found, _selected(settings, found, name)

    if settings.output == "name":
        raise click.UsageError("--watch goes with -o table, json or yaml")
    watch(
        read,
        lambda seen: _watched_text(settings, *seen),
        lambda seen: _watched_text(settings, seen[0], _ageless(seen[1])),
        lambda seen: volume_table(seen[1], with_pod=True),
        _GAPS[settings.output],
    )


#: What stands between two states that are shown one after the other.
_GAPS = {"table": "\n", "json": "", "yaml": "---\n"}


def _watched_text(settings: Settings, found: NodeStatus, pods: list[PodStatus]) -> str:
    if settings.output == "json":
        import json

        return json.dumps(_data(found, pods), ensure_ascii=False) + "\n"
    if settings.output == "yaml":
        from volumehost.api.yaml_writer import dump_yaml

        return dump_yaml(_data(found, pods))
    return "".join(f"{line}\n" for line in (*_notes(settings, found, pods), *_lines(settings, pods)))


def _ageless(pods: list[PodStatus]) -> list[PodStatus]:
    """What is worth a new block: not that something has got older."""
    return [
        replace(each, volumes=tuple(replace(v, age=None, retry_in=None, where="", progress="") for v in each.volumes))
        for each in pods
    ]


def _read(settings: Settings) -> NodeStatus:
    if settings.cluster:
        return _read_cluster(settings)
    from volumehost.node.status.recorded import read_status

    with ExitStack() as stack:
        try:
            store = stack.enter_context(open_for_reading(settings))
        except StoreError:
            store = None  # the rest is still worth knowing; the reader says what is wrong with the store
        return with_live_pods(settings, read_status(settings.root, api=store))


def _read_cluster(settings: Settings) -> NodeStatus:
    from volumehost.node.explaining.in_cluster import cluster_status
    from volumehost.node.status.recorded import NodeStatus

    with open_for_reading(settings) as api:
        pods = cluster_status(api, settings.namespace if settings.namespace_given else None)
    shown, notes = with_agents_pods(settings, pods)
    return NodeStatus(settings.root, tuple(shown), notes=tuple(notes))


def _print(settings: Settings, found: NodeStatus, pods: list[PodStatus]) -> None:
    if settings.output == "table":
        _print_text(settings, found, pods)
    elif settings.output == "name":
        for each in pods:
            click.echo(f"pod/{each.name or each.uid}")
    else:
        from volumehost.cli.output import echo_data

        echo_data(_data(found, pods), settings.output)


def _data(found: NodeStatus, pods: list[PodStatus]) -> dict[str, Any]:
    return {
        "rootDir": found.root_dir,
        "managerPid": found.manager_pid,
        "notes": list(found.notes),
        "pods": [pod_data(each) for each in pods],
    }


def _print_text(settings: Settings, found: NodeStatus, pods: list[PodStatus]) -> None:
    for line in _notes(settings, found, pods):
        click.echo(line, err=True)
    for line in _lines(settings, pods):
        click.echo(line)


def _notes(settings: Settings, found: NodeStatus, pods: list[PodStatus]) -> list[str]:
    """What should be known before the rest is believed."""
    lines = [as_given(f"note: {note}", settings) for note in found.notes]
    if found.manager_pid is not None:
        who = f"process {found.manager_pid}" if found.manager_pid else "a process of another container"
        lines.append(f"note: {who} works on this root directory")
    where = "in the cluster" if settings.cluster else f"under {printable(found.root_dir)}"
    return lines if pods else [*lines, f"No pods {where}."]


def _lines(settings: Settings, pods: list[PodStatus]) -> list[str]:
    """The table, and a line for each volume that is not ready."""
    if not pods:
        return []
    told = [*unready_lines(pods), *(f"{pod_label(each)}: {each.note}" for each in pods if each.note)]
    shown = [as_given(line, settings) for line in told]
    return [*volume_table(pods, with_pod=True).splitlines(), *([""] if told else []), *shown]
