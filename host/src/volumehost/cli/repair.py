"""``volumehost repair``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volumehost.cli.as_given import as_given
from volumehost.cli.command import Command, did_you_mean
from volumehost.cli.inspect import source_options, sources_of
from volumehost.cli.options import Settings, shared_options
from volumehost.cli.tables import printable

if TYPE_CHECKING:
    from volumehost.inspection.inspect import Sources
    from volumehost.inspection.repair import RepairReport
    from volumehost.inspection.repairing.planning import Choice


def _kinds(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> frozenset[str]:
    from volumehost.inspection.kinds import KINDS

    for value in values:
        if value not in KINDS:
            near = did_you_mean(value, KINDS) or f"; there are {', '.join(KINDS)}"
            raise click.BadParameter(f"there is no kind {value!r}{near}")
    return frozenset(values)


@click.command(
    cls=Command,
    examples=(
        ("What would be done, and what is left alone", "volumehost repair"),
        ("Do it", "volumehost repair --apply"),
        ("Only some of it", "volumehost repair --apply --only orphaned-pod --only leaked-mount"),
    ),
)
@click.argument("pods_to_repair", metavar="[POD]...", nargs=-1)
@click.option("--apply/--dry-run", default=False, help="Do it, or only tell what would be done.  [default: dry-run]")
@click.option("--only", metavar="KIND", multiple=True, callback=_kinds, help="Only findings of this kind; repeatable.")
@click.option(
    "--while-kubelet-runs", is_flag=True, help="Repair a kubelet's directory although the kubelet is at work."
)
@source_options
@shared_options("root-dir", "output")
@click.pass_context
def repair(
    ctx: click.Context,
    pods_to_repair: tuple[str, ...],
    *,
    apply: bool,
    only: frozenset[str],
    while_kubelet_runs: bool,
    pods: str | None,
    static_pods: str | None,
    pod_logs: str | None,
) -> None:
    """Clean up what 'volumehost inspect' finds: a dry run, unless --apply is given.

    Unmounts before it removes, deepest first and never lazily, through the volume's plugin where that is there. Removes
    only empty directories and records of its own, never a file with data. Leaves alone, and says why, what something
    uses, what is not empty, and what a pod wants. POD is a name or a uid; all are repaired when none is given. A
    repair that was interrupted is gone on with by the next.

    Exits with 1 when something was left alone or failed.
    """
    settings: Settings = ctx.obj
    from volumehost.inspection.repairing.planning import Choice

    names = tuple(name.removeprefix("pod/") for name in pods_to_repair)
    choice, sources = Choice(only, names), sources_of(pods, static_pods, pod_logs)
    report = _repair(settings, sources, choice, apply=apply, while_kubelet_runs=while_kubelet_runs)
    if settings.output == "table":
        _print_text(settings, report, names)
    elif settings.output == "name":
        for each in report.plan.repairs:
            click.echo(printable(f"{each.kind}/{each.subject}"))
    else:
        from volumehost.cli.output import echo_data
        from volumehost.cli.repair_report import repair_data

        echo_data(repair_data(report), settings.output)
    if not report.complete:
        ctx.exit(1)


def _repair(
    settings: Settings, sources: Sources, choice: Choice, *, apply: bool, while_kubelet_runs: bool
) -> RepairReport:
    from volumehost.cli.streams import plugins_print_to_stderr
    from volumehost.inspection.repair import apply_repair, plan_repair

    with plugins_print_to_stderr():
        if apply:
            return apply_repair(settings.root, sources, choice, while_kubelet_runs=while_kubelet_runs)
        return plan_repair(settings.root, sources, choice)


def _print_text(settings: Settings, report: RepairReport, names: tuple[str, ...]) -> None:
    from volumehost.cli.repair_report import report_lines

    for note in report.inspection.notes:
        click.echo(as_given(f"note: {note}", settings), err=True)
    for line in report_lines(report):
        click.echo(as_given(line, settings))
    if not report.plan.repairs and not report.plan.refusals:
        of_pods = f" of {printable(', '.join(names))}" if names else ""
        click.echo(f"There is nothing to repair{of_pods}.")
    elif not report.applied and report.plan.repairs:
        click.echo("This was a dry run: nothing was changed. --apply does it.")
