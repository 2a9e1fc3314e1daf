"""``volumehost status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volumehost.cli.agent_view import with_live_pods
from volumehost.cli.command import Command
from volumehost.cli.complete import pod_names
from volumehost.cli.objects import NameType, open_for_reading
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.pod_report import pod_data, unready_lines, volume_table
from volumehost.cli.tables import printable
from volumehost.errors import ObjectNotFoundError, StoreError

if TYPE_CHECKING:
    from volumehost.node.recorded_status import NodeStatus
    from volumehost.node.status import PodStatus


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost status"),
        ("Why a pod is not ready", "volumehost status web"),
        ("For a program", "volumehost status -o json"),
    ),
)
@click.argument("pod", metavar="[POD]", required=False, type=NameType(), shell_complete=pod_names)
@shared_options("root-dir", "output", "namespace")
@click.pass_obj
def status(settings: Settings, pod: str | None) -> None:
    """Show pods, their volumes, and what is being done about them.

    Read from the records under the root directory and from the kernel's mount table: it changes nothing, needs no
    right to write, and waits for no other process. Pods of every namespace are shown unless -n or POD is given.
    """
    found = with_live_pods(settings, _read(settings))
    pods = list(found.pods)
    if pod is not None:
        name = pod.removeprefix("pod/")
        pods = [each for each in pods if (each.namespace, each.name) == (settings.namespace, name) or each.uid == name]
        if not pods:
            raise ObjectNotFoundError(
                f"there is no pod {settings.namespace}/{name}",
                subject=name,
                hint="'volumehost status' lists what there is; -n names another namespace",
            )
    elif settings.namespace_given:
        pods = [each for each in pods if each.namespace == settings.namespace]
    _print(settings, found, pods)


def _read(settings: Settings) -> NodeStatus:
    from volumehost.node.recorded_status import read_status

    try:
        store = open_for_reading(settings)
    except StoreError:
        # The rest is still worth knowing; the reader says what is wrong with the store.
        return read_status(settings.root)
    with store:
        return read_status(settings.root, api=store)


def _print(settings: Settings, found: NodeStatus, pods: list[PodStatus]) -> None:
    if settings.output == "table":
        _print_text(found, pods)
    elif settings.output == "name":
        for each in pods:
            click.echo(f"pod/{each.name or each.uid}")
    else:
        from volumehost.cli.output import echo_data

        data = {
            "rootDir": found.root_dir,
            "managerPid": found.manager_pid,
            "notes": list(found.notes),
            "pods": [pod_data(each) for each in pods],
        }
        echo_data(data, settings.output)


def _print_text(found: NodeStatus, pods: list[PodStatus]) -> None:
    for note in found.notes:
        click.echo(f"note: {printable(note)}", err=True)
    if found.manager_pid is not None:
        who = f"process {found.manager_pid}" if found.manager_pid else "a process of another container"
        click.echo(f"note: {who} works on this root directory", err=True)
    if not pods:
        click.echo(f"No pods under {printable(found.root_dir)}.", err=True)
        return
    click.echo(volume_table(pods, with_pod=True), nl=False)
    for line in (*unready_lines(pods), *(f"{each.name or each.uid}: {each.note}" for each in pods if each.note)):
        click.echo(f"\n{printable(line)}", nl=False)
    if unready_lines(pods) or any(each.note for each in pods):
        click.echo()
