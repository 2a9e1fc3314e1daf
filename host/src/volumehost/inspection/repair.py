"""Repairs a root directory, this host's or a kubelet's: plans first, and does it only when told to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.inspection.context import Context
from volumehost.inspection.inspect import Looks, Sources
from volumehost.inspection.repairing.plan import Outcome, Plan, Repair, StepResult
from volumehost.inspection.repairing.planning import Choice, make_plan
from volumehost.inspection.repairing.tools import Tools, exclusive, names_of_plugins

if TYPE_CHECKING:
    from volumehost.inspection.repairing.executor import OnStep
    from volumehost.inspection.report import Inspection
    from volumehost.inspection.survey import Survey


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was planned, and when ``applied`` what became of each step; ``left`` is what a second repair would meet."""

    inspection: Inspection
    plan: Plan
    applied: bool = False
    results: tuple[tuple[Repair, StepResult], ...] = ()
    left: Plan = field(default_factory=Plan)

    @property
    def complete(self) -> bool:
        """Whether nothing was refused, and nothing failed or is left."""
        failed = any(result.outcome is not Outcome.DONE for _, result in self.results)
        return not self.plan.refusals and not failed and not self.left.repairs and not self.left.refusals


def plan_repair(root_dir: str, sources: Sources | None = None, choice: Choice | None = None) -> RepairReport:
    """What a repair would do and what it would refuse. Changes nothing; see :func:`inspect_root` for the errors."""
    looks = Looks(root_dir, sources if sources is not None else Sources())
    inspection, context = _look(looks)
    plugins = names_of_plugins() if _needs_plugins(inspection) else frozenset()
    return RepairReport(inspection, make_plan(context, inspection, plugins=plugins, choice=choice))


def apply_repair(
    root_dir: str,
    sources: Sources | None = None,
    choice: Choice | None = None,
    *,
    plugins: Sequence[object] = (),
    while_kubelet_runs: bool = False,
    on_step: OnStep = lambda _repair, _result: None,
) -> RepairReport:
    """Do it. Whatever is killed on the way is gone on with by the next repair; one more has nothing to do.

    :param plugins: volume plugins (classes, instances, modules) besides those that are installed.
    :param while_kubelet_runs: a kubelet may work on the directory meanwhile.
    :param on_step: is told of each step when it has ended.
    :raises RootDirectoryLockedError: an agent, a command or another repair works on the root directory.
    :raises FailedPreconditionError: a kubelet does.
    :raises MissingPrivilegeError: this process cannot unmount.
    """
    from volumehost.inspection.repairing.executor import Executor
    from volumehost.mount.privileges import check_mount_privileges

    check_mount_privileges()
    looks = Looks(root_dir, sources if sources is not None else Sources())
    with exclusive(looks.root, looks.kind, while_kubelet_runs=while_kubelet_runs):
        inspection, context = _look(looks)
        with Tools(looks.root, looks.kind, plugins, with_plugins=_needs_plugins(inspection)) as tools:
            names = tools.plugin_names
            plan = make_plan(context, inspection, plugins=names, choice=choice)
            results = Executor(tools, on_step).run(plan)
        after, context = _look(looks)
        left = make_plan(context, after, plugins=names, choice=choice)
    return RepairReport(inspection, plan, applied=True, results=tuple(results), left=left)


def _look(looks: Looks) -> tuple[Inspection, Context]:
    surveys: list[Survey] = []
    inspection = looks.inspect(then=surveys.append)
    return inspection, Context(surveys[-1])


def _needs_plugins(inspection: Inspection) -> bool:
    """Whether volumes may have to be taken away: loading plugins takes its time."""
    return any(pod.state.abandoned for pod in inspection.pods) or any(
        device.state in {"unused", "leftover"} for device in inspection.devices
    )
