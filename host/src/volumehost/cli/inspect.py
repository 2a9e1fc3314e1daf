"""``volumehost inspect``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from volumehost.cli.as_given import as_given
from volumehost.cli.command import Command
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.tables import printable

if TYPE_CHECKING:
    from volumehost.inspection.inspect import Sources
    from volumehost.inspection.report import Inspection

_F = TypeVar("_F", bound=Callable[..., Any])


def source_options(function: _F) -> _F:
    """The options that say where pods are known from; ``inspect`` and ``repair`` take them."""
    for option in reversed(
        (
            click.option(
                "--pods",
                metavar="FILE",
                help="The pods of the node, as 'kubectl get pods --all-namespaces --field-selector spec.nodeName=NODE "
                "-o json' prints them; - for standard input.",
            ),
            click.option(
                "--static-pods",
                metavar="DIR",
                help="Directory of static pod manifests.  [default: of a kubelet in its usual place, "
                "/etc/kubernetes/manifests]",
            ),
            click.option(
                "--pod-logs",
                metavar="DIR",
                help="Directory of pod logs, for the names of pods.  [default: of a kubelet in its usual place, "
                "/var/log/pods]",
            ),
        )
    ):
        function = option(function)
    return function


def sources_of(pods: str | None, static_pods: str | None, pod_logs: str | None) -> Sources:
    """The sources that these options name."""
    from volumehost.inspection.inspect import Sources

    return Sources(pods=pods, static_pods=static_pods, pod_logs=pod_logs)


@click.command(
    cls=Command,
    examples=(
        ("", "volumehost inspect"),
        ("For a program", "volumehost inspect -o json"),
    ),
)
@source_options
@shared_options("root-dir", "output")
@click.pass_obj
def inspect(settings: Settings, pods: str | None, static_pods: str | None, pod_logs: str | None) -> None:
    """Show what lies under a root directory, a kubelet's too: mounts, their pods, and what is wrong.

    Reads directories, records and the kernel's mount table. It changes nothing, takes no lock, and works beside a
    running agent or kubelet and on a read-only filesystem. Without a source of pods nothing is called orphaned: for a
    kubelet's directory give --pods.
    """
    from volumehost.inspection.inspect import inspect_root

    found = inspect_root(settings.root, sources_of(pods, static_pods, pod_logs))
    if settings.output == "table":
        _print_text(settings, found)
    elif settings.output == "name":
        for finding in found.findings:
            click.echo(printable(f"{finding.kind}/{finding.subject}"))
    else:
        from volumehost.cli.inspection_report import inspection_data
        from volumehost.cli.output import echo_data

        echo_data(inspection_data(found), settings.output)


def _print_text(settings: Settings, found: Inspection) -> None:
    from volumehost.cli.inspection_report import finding_lines, heading, tables

    for note in found.notes:
        click.echo(as_given(f"note: {note}", settings), err=True)
    click.echo(heading(found), nl=False)
    click.echo(tables(found), nl=False)
    for finding in found.findings:
        click.echo()
        for line in finding_lines(finding, found):
            click.echo(as_given(line, settings))
    if not found.findings:
        click.echo("\nNothing is wrong.")
