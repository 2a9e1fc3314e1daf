"""``volumehost describe``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.api_choice import open_for_reading
from volumehost.cli.columns import parse_time, since
from volumehost.cli.command import Command
from volumehost.cli.complete import kinds as complete_kinds
from volumehost.cli.complete import object_names
from volumehost.cli.describing import describe_object
from volumehost.cli.objects import KindType, NameType, targets
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.tables import format_table, printable

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.kinds import Kind
    from volumehost.api.objects import Event, KubeObject
    from volumehost.node.status.records import PodStatus


@click.command(
    cls=Command,
    examples=(
        ("A pod, where its volumes stand, and what happened to it", "volumehost describe pod web"),
        ("", "volumehost describe pv/data"),
    ),
)
@click.argument("kinds", metavar="KIND[/NAME]", type=KindType(), shell_complete=complete_kinds)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=NameType(), shell_complete=object_names)
@shared_options("root-dir", "cluster", "namespace")
@click.pass_obj
def describe(settings: Settings, kinds: list[tuple[Kind[KubeObject], str]], names: tuple[str, ...]) -> None:
    """Show one object in full, with its events.

    Of private content, such as the data of a secret, only the sizes are shown. A kind without a name means all
    objects of that kind in the namespace.
    """
    with open_for_reading(settings) as store:
        objects: list[KubeObject] = []
        for kind, name in targets(kinds, names):
            namespace = settings.namespace if kind.namespaced else ""
            if name:
                objects.append(store.get(kind.struct, name, namespace))
            else:
                objects += store.list(kind.struct, namespace if kind.namespaced else None).items
        parts = [_describe(settings, store, obj) for obj in objects]
    if not parts:
        click.echo(f"No {', '.join(kind.plural for kind, _ in kinds)} found.", err=True)
    click.echo("\n\n".join(parts), nl=False)


def _describe(settings: Settings, store: ApiClient, obj: KubeObject) -> str:
    text = describe_object(obj)
    if obj.kind == "Pod":
        text += _volumes(settings, store, obj)
    return text + _events(store, obj)


def _volumes(settings: Settings, store: ApiClient, pod: Any) -> str:
    from volumehost.cli.pod_report import unready_lines, volume_table

    where = "in the cluster" if settings.cluster else "on this node"
    for status in _statuses(settings, store, pod):
        if status.uid == pod.metadata.uid and status.volumes:
            text = volume_table([status], with_pod=False) + "".join(f"{line}\n" for line in unready_lines([status]))
            return f"Volumes {where} ({status.state}):\n{_indented(text)}"
    return f"Volumes {where}: none\n"


def _statuses(settings: Settings, store: ApiClient, pod: Any) -> Sequence[PodStatus]:
    if settings.cluster:
        from volumehost.cli.agent_view import with_agents_pods
        from volumehost.node.explaining.in_cluster import cluster_status

        found = cluster_status(store, pod.metadata.namespace, pod.metadata.name)
        return with_agents_pods(settings, found)[0]
    from volumehost.node.status.recorded import read_status

    return read_status(settings.root, api=store).pods


def _events(store: ApiClient, obj: KubeObject) -> str:
    from volumehost.api.objects import Event

    events = [event for event in store.list(Event).items if _concerns(event, obj)]
    if not events:
        return "Events: none\n"
    events.sort(key=lambda event: str(parse_time(_moment(event)) or ""))
    rows = [(since(_moment(event)), event.type, event.reason, event.count or 1, event.message) for event in events]
    return f"Events:\n{_indented(format_table(('last seen', 'type', 'reason', 'count', 'message'), rows))}"


def _concerns(event: Event, obj: KubeObject) -> bool:
    involved = event.involved_object
    if involved.uid and obj.metadata.uid:
        return involved.uid == obj.metadata.uid
    same_name = (involved.kind, involved.name) == (obj.kind, obj.metadata.name)
    return same_name and involved.namespace in {obj.metadata.namespace, ""}


def _moment(event: Event) -> str | None:
    return event.last_timestamp or event.event_time or event.metadata.creation_timestamp


def _indented(text: str) -> str:
    return "".join(f"  {printable(line)}\n" for line in text.splitlines())
