"""``volumehost delete``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import kinds as complete_kinds
from volumehost.cli.complete import object_names
from volumehost.cli.managing import make_room, root_dir_exists, timeout_option, volume_manager
from volumehost.cli.objects import KindType, NameType, open_for_writing, read_manifests, reference, targets
from volumehost.cli.options import Settings, shared_options
from volumehost.errors import ObjectNotFoundError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.kinds import Kind
    from volumehost.api.objects import KubeObject
    from volumehost.api.store import EmbeddedStore

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
@timeout_option("How long to wait for volumes to be unmounted.")
@shared_options("root-dir", "node-name", "output", "namespace")
@click.pass_obj
def delete(
    settings: Settings,
    kinds: list[tuple[Kind[KubeObject], str]] | None,
    names: tuple[str, ...],
    filenames: tuple[str, ...],
    timeout: float,
) -> None:
    """Delete objects by name or by manifest.

    The volumes of a mounted pod are unmounted first. An object that others still need (finalizers) is marked and goes
    when they let go of it.
    """
    wanted = _wanted(settings, kinds, names, filenames)
    if not root_dir_exists(settings):
        kind, name, namespace = wanted[0]
        raise ObjectNotFoundError(
            f"there is no {kind.describe(name, namespace)}: the root directory {settings.root} does not exist",
            subject=name,
            hint="another root directory is given with --root-dir",
        )
    make_room(settings)
    deadline = time.monotonic() + timeout
    errors: list[Exception] = []
    results: list[dict[str, Any]] = []
    with open_for_writing(settings) as store:
        for kind, name, namespace in wanted:
            try:
                outcome = _delete(settings, store, (kind, name, namespace), deadline)
            except VolumeHostError as error:
                errors.append(error)
            else:
                _print(settings, reference(kind, name), outcome)
                results.append({"kind": kind.kind, "namespace": namespace, "name": name, "outcome": outcome})
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


def _delete(settings: Settings, store: EmbeddedStore, target: Target, deadline: float) -> str:
    from volumehost.node.pod_objects import FINALIZER

    kind, name, namespace = target
    found = store.get(kind.struct, name, namespace)
    if kind.kind == "Pod" and FINALIZER in found.metadata.finalizers:
        return _unmount(settings, store, target, deadline)
    left = store.delete(kind.struct, name, namespace, uid=found.metadata.uid)
    return f"marked, kept by {', '.join(left.metadata.finalizers)}" if left.metadata.finalizers else "deleted"


def _unmount(settings: Settings, store: EmbeddedStore, target: Target, deadline: float) -> str:
    """Unmount the pod's volumes, which deletes it; whoever has the root directory now may do it in our stead."""
    kind, name, namespace = target

    def is_gone() -> bool:
        try:
            store.get(kind.struct, name, namespace)
        except ObjectNotFoundError:
            return True
        return False

    store.delete(kind.struct, name, namespace)
    with volume_manager(settings, max(0.0, deadline - time.monotonic()), unless=is_gone) as manager:
        if manager is not None and not is_gone():
            manager.unmount_pod(name, namespace, timeout=max(0.0, deadline - time.monotonic()))
    return "deleted"


def _print(settings: Settings, name: str, outcome: str) -> None:
    if settings.output == "table":
        click.echo(f"{name} {outcome}")
    elif settings.output == "name":
        click.echo(name)
