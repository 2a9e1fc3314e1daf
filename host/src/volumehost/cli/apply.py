"""``volumehost apply``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volumehost.cli.api_choice import open_for_writing
from volumehost.cli.command import Command
from volumehost.cli.managing import no_wait_option, timeout_option
from volumehost.cli.objects import read_manifests, reference
from volumehost.cli.options import Settings, shared_options
from volumehost.errors import VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.apply import Applied
    from volumehost.api.manifests import Manifest
    from volumehost.cli.wish import Wish


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost apply -f pod.yaml"),
        ("Several files, a whole directory, standard input", "volumehost apply -f claim.yaml -f manifests/"),
        ("", "cat pod.yaml | volumehost apply -f -"),
    ),
)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="File, directory, or - for standard input; may be given more than once.",
)
@no_wait_option
@timeout_option("How long to wait.")
@click.option("-R", "--recursive", is_flag=True, help="Search directories in directories too.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def apply(settings: Settings, filenames: tuple[str, ...], *, recursive: bool, wait: bool, timeout: float) -> None:
    """Create or update objects from manifests.

    YAML or JSON, any number of documents. All of them are checked first: if one is invalid, nothing is applied. What
    an earlier apply set and the manifest no longer says is removed. Applying a pod mounts nothing, "volumehost mount"
    does. Claims and snapshots are provided for before the command ends, as far as that needs no pod; in a cluster only
    snapshots are waited for.
    """
    try:
        manifests = read_manifests(filenames, settings, recursive=recursive)
    except Exception as error:
        error.add_note("nothing was applied")
        raise
    errors: list[Exception] = []
    results: list[dict[str, Any]] = []
    wishes: list[Wish] = []
    with open_for_writing(settings) as store:
        from volumehost.api.apply import apply_object
        from volumehost.cli.wishes import of_applied, settle

        for manifest in manifests:
            try:
                applied = apply_object(store, manifest.kind.struct, manifest.document)
            except VolumeHostError as error:
                errors.append(_explained(manifest, error))
            else:
                _print(settings, manifest, applied)
                results.append(_as_data(manifest, applied))
                wishes += of_applied(store, manifest.kind, applied.object)
        if wait and wishes:
            errors += settle(settings, store, wishes, timeout)
    if settings.output in {"json", "yaml"}:
        from volumehost.cli.output import echo_data

        echo_data({"objects": results}, settings.output)
    if errors:
        raise errors[0] if len(errors) == 1 and wishes else ExceptionGroup("some objects could not be applied", errors)


def _explained(manifest: Manifest, error: VolumeHostError) -> Exception:
    from volumehost.errors import InvalidObjectError

    return manifest.explain(error) if isinstance(error, InvalidObjectError) else error


def _print(settings: Settings, manifest: Manifest, applied: Applied) -> None:
    name = reference(manifest.kind, applied.object.metadata.name)
    if settings.output == "table":
        click.echo(f"{name} {applied.outcome}")
    elif settings.output == "name":
        click.echo(name)


def _as_data(manifest: Manifest, applied: Applied) -> dict[str, Any]:
    metadata = applied.object.metadata
    return {
        "kind": manifest.kind.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "outcome": applied.outcome,
    }
