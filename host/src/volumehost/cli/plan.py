"""``volumehost plan``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from volumehost.cli.api_choice import open_for_reading
from volumehost.cli.as_given import as_given
from volumehost.cli.command import Command
from volumehost.cli.complete import pod_names
from volumehost.cli.objects import NameType, read_manifests
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.pod_names import choose_pod, looking_for
from volumehost.errors import InvalidObjectError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.manifests import Manifest
    from volumehost.api.objects import Pod
    from volumehost.node.explaining.plan import Planner
    from volumehost.node.explaining.planned import PodPlan


@click.command(
    cls=Command,
    examples=(
        ("What mounting it would do", "volumehost plan -f pod.yaml"),
        ("For a pod that was applied", "volumehost plan web"),
        ("What unmounting it would do, for a program", "volumehost plan --unmount web -o json"),
    ),
)
@click.argument("pod", metavar="[POD]", required=False, type=NameType(), shell_complete=pod_names)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Manifest that counts as applied: a file, a directory, or -; may be given more than once.",
)
@click.option("--unmount", "unmounting", is_flag=True, help="Plan to unmount POD.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_context
def plan(ctx: click.Context, pod: str | None, filenames: tuple[str, ...], *, unmounting: bool) -> None:
    """Show what would be done to mount the volumes of a pod, without doing it.

    For each volume, in order: what would be provisioned, bound, attached, mounted and where, by which plugin or driver;
    and what would be in the way. Nothing is applied, called or written, and no other process is waited for. Exits with
    1 when it would not work as things are. In a cluster the plan is that of the pod's node, as if this machine, with
    its plugins and root directory, were that node.
    """
    settings = ctx.ensure_object(Settings)
    if pod is None and (unmounting or not filenames):
        raise click.UsageError("name a POD" if unmounting else "name a POD, or give manifests with -f")
    if unmounting and filenames:
        raise click.UsageError("--unmount takes a POD, and no manifests")
    name = choose_pod(settings, pod) if pod is not None else None
    manifests = read_manifests(filenames, settings)
    if name is None and not any(manifest.kind.kind == "Pod" for manifest in manifests):
        raise click.UsageError("the manifests hold no pod")
    with looking_for(settings, name):
        plans = _plans(settings, manifests, name, unmounting=unmounting)
    _print(settings, plans)
    if not all(each.works for each in plans):
        ctx.exit(1)


def _plans(settings: Settings, manifests: Sequence[Manifest], name: str | None, *, unmounting: bool) -> list[PodPlan]:
    from volumehost.cli.streams import plugins_print_to_stderr
    from volumehost.node.explaining.plan import planner

    with ExitStack() as stack:
        source = stack.enter_context(open_for_reading(settings)) if settings.cluster else None
        node = settings.node_name or _node(settings, source, manifests, name)
        stack.enter_context(plugins_print_to_stderr())
        made = stack.enter_context(planner(settings.root, node_name=node, source=source))
        if unmounting and name is not None:
            return [made.unmount(name, settings.namespace)]
        pods = _applied(made, manifests, name, settings.namespace)
        return [made.mount(each) for each in pods]


def _node(settings: Settings, api: ApiClient | None, manifests: Sequence[Manifest], name: str | None) -> str | None:
    """In a cluster the node that the pod is for, unless the root directory is that of a node."""
    from volumehost.api.objects import Pod
    from volumehost.hosts.layout import Layout
    from volumehost.hosts.root_dir import resolve_root_dir
    from volumehost.node.populating.pod_objects import find_pod

    if api is None or os.path.lexists(Layout(resolve_root_dir(settings.root)).node_name_file()):
        return None
    given = (each.obj for each in manifests if isinstance(each.obj, Pod) and name in {None, each.obj.metadata.name})
    pod = next(given, None) or (find_pod(api, name, settings.namespace) if name is not None else None)
    return (pod.spec.node_name or None) if pod is not None else None


def _applied(made: Planner, manifests: Sequence[Manifest], name: str | None, namespace: str) -> list[Pod]:
    """Put what the manifests hold into the copy of the store, pods last; returns the pods to be planned."""
    from volumehost.api.apply import apply_object
    from volumehost.api.objects import Pod
    from volumehost.node.populating.pod_objects import apply_pod

    pods: list[Pod] = []
    for manifest in sorted(manifests, key=lambda each: each.kind.kind == "Pod"):
        metadata = manifest.obj.metadata
        try:
            if manifest.kind.kind != "Pod":
                apply_object(made.api, manifest.kind.struct, manifest.document)
            elif name is None or (metadata.name, metadata.namespace) == (name, namespace):
                pods.append(apply_pod(made.api, manifest.document))
        except InvalidObjectError as error:
            raise manifest.explain(error) from error
    return pods or [made.api.get(Pod, name or "", namespace)]


def _print(settings: Settings, plans: Sequence[PodPlan]) -> None:
    if settings.output == "table":
        for number, each in enumerate(plans):
            for line in ([""] if number else []) + each.lines():
                click.echo(as_given(line, settings))
    elif settings.output == "name":
        for each in plans:
            click.echo(f"pod/{each.name}")
    else:
        from volumehost.cli.output import echo_data

        echo_data({"plans": [each.to_dict() for each in plans]}, settings.output)
