"""``volumehost unmount``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from volumehost.cli.api_choice import refuse_cluster
from volumehost.cli.command import Command
from volumehost.cli.complete import pod_names
from volumehost.cli.managing import at_work, make_room, root_dir_exists, timeout_option, volume_manager
from volumehost.cli.objects import NameType
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.pod_names import split_pod, tell_where
from volumehost.cli.pod_report import pod_label
from volumehost.cli.progress import progress
from volumehost.errors import ObjectNotFoundError, VolumeHostError, WaitTimeoutError

if TYPE_CHECKING:
    from volumehost.node.pod_manager import PodManager


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost unmount web"),
        ("Everything under this root directory", "volumehost unmount --all"),
    ),
)
@click.argument("pods", metavar="[POD]...", nargs=-1, type=NameType(), shell_complete=pod_names)
@click.option("--all", "all_pods", is_flag=True, help="Unmount every pod, of every namespace.")
@timeout_option("How long to wait.")
@shared_options("root-dir", "cluster", "node-name", "output", "namespace")
@click.pass_obj
def unmount(settings: Settings, pods: tuple[str, ...], *, all_pods: bool, timeout: float) -> None:
    """Unmount the volumes of a pod, to the last directory.

    POD is a pod's name, NAMESPACE/NAME as status shows it, or its uid when nothing but its directory is left. The pod
    is deleted from the store when nothing of it is mounted any more. Data that is not the pod's own (hostPath) stays;
    anything that something is still mounted on stays too, and is reported.
    """
    refuse_cluster(settings, "unmounting", "delete the pod: its node's agent unmounts it once it has ended")
    if all_pods == bool(pods):
        raise click.UsageError("name a POD, or give --all" if not pods else "give either a POD or --all")
    wanted = [split_pod(settings, pod) for pod in pods]
    if not root_dir_exists(settings):
        if all_pods:
            _print(settings, [])
            return
        raise ObjectNotFoundError(
            "there is no root directory, so nothing is mounted",
            action=f"unmounting {', '.join(pods)}",
            subject=settings.root,
            hint=f"looked in {settings.root}; another one is given with --root-dir",
        )
    make_room(settings)
    deadline = time.monotonic() + timeout
    with volume_manager(settings, timeout) as entered:
        manager = at_work(entered)
        with progress(lambda: _lines(manager), verbosity=settings.verbosity):
            done, errors = _unmount(manager, settings, wanted, deadline)
    if done or not errors or settings.output in {"json", "yaml"}:
        _print(settings, done)
    if errors:
        raise errors[0] if len(errors) == 1 else ExceptionGroup("pods could not be unmounted", errors)


def _unmount(
    manager: PodManager, settings: Settings, pods: Sequence[tuple[str, str]], deadline: float
) -> tuple[list[str], list[VolumeHostError]]:
    if not pods:
        return manager.unmount_all(timeout=max(0.0, deadline - time.monotonic())), []
    from volumehost.node.explaining.facts import argument_of

    done: list[str] = []
    errors: list[VolumeHostError] = []
    for namespace, name in pods:
        try:
            manager.unmount_pod(name, namespace, timeout=max(0.0, deadline - time.monotonic()))
        except VolumeHostError as error:
            if isinstance(error, WaitTimeoutError):
                again = f"'volumehost unmount {argument_of(f'{namespace}/{name}')}' goes on with it"
                error.hint = "the agent goes on trying" if manager.stays_at_work else again
            tell_where(error, settings, namespace, name)
            errors.append(error)
        else:
            done.append(f"{namespace}/{name}")
    return done, errors


def _lines(manager: PodManager) -> list[str]:
    ending = [status for status in manager.status() if status.state == "unmounting"]
    return [
        "unmounting",
        *(
            f"  {pod_label(status)} {volume.volume}: {volume.state} {volume.step or volume.error}".rstrip()
            for status in ending
            for volume in status.volumes
        ),
    ]


def _print(settings: Settings, done: Sequence[str]) -> None:
    if settings.output in {"json", "yaml"}:
        from volumehost.cli.output import echo_data

        echo_data({"unmounted": list(done)}, settings.output)
    elif settings.output == "name":
        for label in done:
            click.echo(f"pod/{label.rpartition('/')[2]}")
    else:
        for label in done:
            click.echo(f"pod {label} unmounted")
        if not done:
            click.echo("Nothing was unmounted.", err=True)
