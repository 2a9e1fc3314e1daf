"""``volumehost snapshot delete``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from volumehost.cli.command import Command
from volumehost.cli.complete import snapshot_names
from volumehost.cli.managing import timeout_option
from volumehost.cli.objects import NameType
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.snapshot_report import names_of, with_content
from volumehost.cli.wish import Wish, bring_about, existing_store
from volumehost.errors import VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import VolumeSnapshot


@click.command(cls=Command, examples=(("", "volumehost snapshot delete monday tuesday"),))
@click.argument("names", metavar="SNAPSHOT...", nargs=-1, required=True, type=NameType(), shell_complete=snapshot_names)
@click.option("--wait/--no-wait", default=True, help="Wait until they are gone.  [default: wait]")
@timeout_option("How long to wait.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def delete(settings: Settings, names: tuple[str, ...], *, wait: bool, timeout: float) -> None:
    """Delete snapshots.

    Where the class of a snapshot says Delete, what the driver has goes with it; where it says Retain, that stays. A
    snapshot that a claim is being restored from goes when that is done.
    """
    deadline = time.monotonic() + timeout
    errors: list[Exception] = []
    done: list[str] = []
    with existing_store(settings, f"snapshot {settings.namespace}/{names[0]}") as store:
        marked: list[VolumeSnapshot] = []
        for name in names_of(names):
            try:
                marked.append(_mark(store, settings.namespace, name))
            except VolumeHostError as error:
                errors.append(error)
        for snapshot in marked:
            try:
                if wait:
                    bring_about(settings, store, _wish(store, snapshot), max(0.0, deadline - time.monotonic()))
            except VolumeHostError as error:
                errors.append(error)
            else:
                done.append(snapshot.metadata.name)
    _print(settings, done, "deleted" if wait else "marked for deletion")
    if errors:
        raise errors[0] if len(errors) == 1 else ExceptionGroup("some snapshots could not be deleted", errors)


def _mark(store: ApiClient, namespace: str, name: str) -> VolumeSnapshot:
    from volumehost.api.objects import VolumeSnapshot

    return store.delete(VolumeSnapshot, name, namespace)


def _print(settings: Settings, done: Sequence[str], outcome: str) -> None:
    if settings.output in {"json", "yaml"}:
        from volumehost.cli.output import echo_data

        echo_data({"deleted": [f"{settings.namespace}/{name}" for name in done]}, settings.output)
        return
    for name in done:
        click.echo(f"volumesnapshot/{name}" if settings.output == "name" else f"volumesnapshot/{name} {outcome}")


def _wish(store: ApiClient, snapshot: VolumeSnapshot) -> Wish:
    from volumehost.control.writes import fresh_or_none

    label = f"{snapshot.metadata.namespace}/{snapshot.metadata.name}"
    return Wish(
        f"snapshot {label} to be deleted",
        lambda: fresh_or_none(store, snapshot) is None,
        lambda: with_content(store, snapshot),
    )
