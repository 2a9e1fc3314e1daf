"""``volumehost delete``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from volumehost.cli.api_choice import open_for_writing
from volumehost.cli.command import Command
from volumehost.cli.complete import kinds as complete_kinds
from volumehost.cli.complete import object_names
from volumehost.cli.managing import make_room, no_wait_option, root_dir_exists, timeout_option, volume_manager
from volumehost.cli.objects import KindType, NameType, read_manifests, reference, targets
from volumehost.cli.options import Settings, shared_options
from volumehost.errors import ObjectNotFoundError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.kinds import Kind
    from volumehost.api.objects import KubeObject, Pod
    from volumehost.cli.wish import Wish

    Target = tuple[Kind[KubeObject], str, str]


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost delete pod web"),
        ("What a manifest holds", "volumehost delete -f pod.yaml"),
        ("", "volumehost delete pvc data scratch"),
    ),
)
@click.argument("kinds", metavar="[KIND[/NAME]]", required=False, type=KindType(), shell_complete=complete_kinds)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=NameType(), shell_complete=object_names)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Delete the objects of this manifest: a file, a directory, or -.",
)
@no_wait_option
@timeout_option("How long to wait for volumes to be unmounted, and for the controllers.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def delete(
    settings: Settings,
    kinds: list[tuple[Kind[KubeObject], str]] | None,
    names: tuple[str, ...],
    filenames: tuple[str, ...],
    *,
    wait: bool,
    timeout: float,
) -> None:
    """Delete objects by name or by manifest.

    The volumes of a mounted pod are unmounted first. With a claim goes the volume that was made for it, if its policy
    says so. An object that others still need (finalizers) is marked and goes when they let go of it. A cluster's pod
    ends with its containers; whoever runs them on its node deletes it.
    """
    wanted = _wanted(settings, kinds, names, filenames)
    if not settings.cluster and not root_dir_exists(settings):
        kind, name, namespace = wanted[0]
        raise ObjectNotFoundError(
            f"there is no {kind.describe(name, namespace)}: the root directory {settings.root} does not exist",
            subject=name,
            hint="another root directory is given with --root-dir",
        )
    if not settings.cluster:
        make_room(settings)
    deadline = time.monotonic() + timeout
    errors: list[Exception] = []
    marked: list[Target] = []
    wishes: list[Wish] = []
    with open_for_writing(settings) as store:
        from volumehost.cli.cluster_wait import to_be_gone
        from volumehost.cli.wishes import of_deleted, settle

        for kind, name, namespace in wanted:
            try:
                before = store.get(kind.struct, name, namespace)
                _delete(settings, store, kind, before, deadline)
            except VolumeHostError as error:
                errors.append(error)
            else:
                marked.append((kind, name, namespace))
                if settings.cluster:
                    wishes.append(to_be_gone(store, kind.struct, before, kind.describe(name, namespace)))
                else:
                    wishes += of_deleted(store, kind, before)
        if wait:
            errors += settle(settings, store, wishes, max(0.0, deadline - time.monotonic()))
        results = [
            {"kind": kind.kind, "namespace": namespace, "name": name, "outcome": _outcome(store, kind, name, namespace)}
            for kind, name, namespace in marked
        ]
    for (kind, name, _), result in zip(marked, results, strict=True):
        _print(settings, reference(kind, name), result["outcome"])
    if settings.output in {"json", "yaml"}:
        from volumehost.cli.output import echo_data

        echo_data({"objects": results}, settings.output)
    if errors:
        raise errors[0] if len(errors) == 1 else ExceptionGroup("some objects could not be deleted", errors)


def _wanted(
    settings: Settings,
    kinds: list[tuple[Kind[KubeObject], str]] | None,
    names: Sequence[str],
    filenames: Sequence[str],
) -> list[Target]:
    if bool(kinds) == bool(filenames):
        raise click.UsageError("give either KIND and NAME, or manifests with -f")
    if kinds:
        found = targets(kinds, names)
        if not all(name for _, name in found):
            raise click.UsageError("name the object to delete: KIND NAME, or KIND/NAME")
        return [(kind, name, settings.namespace if kind.namespaced else "") for kind, name in found]
    return [
        (manifest.kind, manifest.obj.metadata.name, manifest.obj.metadata.namespace)
        for manifest in read_manifests(filenames, settings)
    ]


def _delete(settings: Settings, store: ApiClient, kind: Kind[KubeObject], obj: KubeObject, deadline: float) -> None:
    from volumehost.api.objects import Pod
    from volumehost.node.populating.pod_objects import FINALIZER, mark_workload_ended

    metadata = obj.metadata
    if isinstance(obj, Pod) and FINALIZER in metadata.finalizers and not settings.cluster:
        mark_workload_ended(store, obj)  # whoever comes next goes on, should this process be killed
        _unmount(settings, store, kind, obj, deadline)
    else:
        store.delete(kind.struct, metadata.name, metadata.namespace, uid=metadata.uid)


def _outcome(store: ApiClient, kind: Kind[KubeObject], name: str, namespace: str) -> str:
    try:
        left = store.get(kind.struct, name, namespace).metadata
    except ObjectNotFoundError:
        return "deleted"
    if not left.deletion_timestamp:
        return "deleted, and made anew by somebody else"
    return f"marked, kept by {', '.join(left.finalizers)}" if left.finalizers else "marked, until its containers end"


def _unmount(settings: Settings, store: ApiClient, kind: Kind[KubeObject], pod: Pod, deadline: float) -> None:
    """Unmount the pod's volumes, which deletes it; whoever has the root directory now may do it in our stead."""
    from volumehost.api.mirrors import is_mirror

    name, namespace = pod.metadata.name, pod.metadata.namespace

    def is_gone() -> bool:
        if is_mirror(pod):
            return False  # its object may be gone only until it is made anew: the manager knows
        try:
            store.get(kind.struct, name, namespace)
        except ObjectNotFoundError:
            return True
        return False

    store.delete(kind.struct, name, namespace)
    with volume_manager(settings, max(0.0, deadline - time.monotonic()), unless=is_gone) as manager:
        if manager is not None and not is_gone():
            manager.unmount_pod(name, namespace, timeout=max(0.0, deadline - time.monotonic()))


def _print(settings: Settings, name: str, outcome: str) -> None:
    if settings.output == "table":
        click.echo(f"{name} {outcome}")
    elif settings.output == "name":
        click.echo(name)
