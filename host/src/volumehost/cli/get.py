"""``volumehost get``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.api_choice import open_for_reading
from volumehost.cli.columns import columns_for
from volumehost.cli.command import Command
from volumehost.cli.complete import kinds as complete_kinds
from volumehost.cli.complete import object_names
from volumehost.cli.objects import KindType, NameType, reference, targets
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.tables import format_table

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.kinds import Kind
    from volumehost.api.objects import KubeObject


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost get pods"),
        ("One object as it is stored", "volumehost get pod web -o yaml"),
        ("Two kinds, everywhere, by label", "volumehost get pods,pvc -A -l app=web"),
    ),
)
@click.argument("kinds", metavar="KIND[/NAME]", type=KindType(), shell_complete=complete_kinds)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=NameType(), shell_complete=object_names)
@click.option("-l", "--selector", metavar="LABELS", help="Only objects with these labels: app=web,tier!=cache.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Objects of every namespace.")
@click.option("--show-managed-fields", is_flag=True, help="Keep metadata.managedFields in json and yaml.")
@shared_options("root-dir", "cluster", "output", "namespace")
@click.pass_obj
def get(
    settings: Settings,
    kinds: list[tuple[Kind[KubeObject], str]],
    names: tuple[str, ...],
    selector: str | None,
    *,
    all_namespaces: bool,
    show_managed_fields: bool,
) -> None:
    """List objects of a kind, or one of them.

    KIND is a kind's name in any usual spelling: pod, pods, po; several are separated by commas.
    """
    wanted = targets(kinds, names)
    by_name = all(name for _, name in wanted)
    if by_name and (selector or all_namespaces):
        raise click.UsageError("objects are asked for by name, or with -l or -A, not both")
    namespace = None if all_namespaces else settings.namespace
    with open_for_reading(settings) as store:
        found = [(kind, _find(store, kind, name, namespace, selector)) for kind, name in wanted]
    if settings.output in {"json", "yaml"}:
        objects = [obj for _, each in found for obj in each]
        _echo_documents(objects, settings.output, one=by_name and len(wanted) == 1, managed_fields=show_managed_fields)
    elif settings.output == "name":
        for kind, objects in found:
            for obj in objects:
                click.echo(reference(kind, obj.metadata.name))
    else:
        _echo_tables(found, namespace)


def _find(
    store: ApiClient, kind: Kind[KubeObject], name: str, namespace: str | None, selector: str | None
) -> list[KubeObject]:
    if name:
        return [store.get(kind.struct, name, (namespace or "") if kind.namespaced else "")]
    return list(store.list(kind.struct, namespace if kind.namespaced else None, selector).items)


def _echo_tables(found: Sequence[tuple[Kind[KubeObject], list[KubeObject]]], namespace: str | None) -> None:
    merged: dict[str, tuple[Kind[KubeObject], list[KubeObject]]] = {}
    for kind, objects in found:
        merged.setdefault(kind.kind, (kind, []))[1].extend(objects)
    shown = [(kind, objects) for kind, objects in merged.values() if objects]
    if not shown:
        where = (
            f" in the namespace {namespace}" if namespace is not None and any(k.namespaced for k, _ in found) else ""
        )
        click.echo(f"No {', '.join(kind.plural for kind, _ in merged.values())} found{where}.", err=True)
    for number, (kind, objects) in enumerate(shown):
        if number:
            click.echo()
        click.echo(object_table(kind, objects, with_namespace=namespace is None and kind.namespaced), nl=False)


def object_table(kind: Kind[KubeObject], objects: Sequence[KubeObject], *, with_namespace: bool) -> str:
    """The objects as a table with the columns of their kind."""
    columns = [*columns_for(kind.kind)]
    if with_namespace:
        columns.insert(0, ("namespace", lambda obj: obj.metadata.namespace))
    return format_table([header for header, _ in columns], [[cell(obj) for _, cell in columns] for obj in objects])


def _echo_documents(objects: Sequence[KubeObject], output: str, *, one: bool, managed_fields: bool) -> None:
    from volumehost.api.convert import to_wire
    from volumehost.cli.output import echo_data

    documents: list[dict[str, Any]] = [to_wire(obj) for obj in objects]
    if not managed_fields:
        for document in documents:
            document.get("metadata", {}).pop("managedFields", None)
    echo_data(documents[0] if one else {"apiVersion": "v1", "kind": "List", "items": documents}, output)
