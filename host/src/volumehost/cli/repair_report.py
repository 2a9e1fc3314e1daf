"""A repair as text and as plain data: its steps and what became of them, and what was left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from volumehost.cli.inspection_report import text
from volumehost.cli.tables import printable

if TYPE_CHECKING:
    from volumehost.inspection.repair import RepairReport
    from volumehost.inspection.repairing.plan import Refusal, Repair, Step, StepResult


def report_lines(report: RepairReport) -> Iterator[str]:
    """The steps by what they are for, then what is left alone and why."""
    results = {id(result.step): result for _, result in report.results}
    for repair in report.plan.repairs:
        yield f"{repair.kind} {printable(_subject(repair))}"
        for number, step in enumerate(repair.steps, 1):
            yield from _step_lines(number, step, results.get(id(step)))
        yield ""
    for refusal in report.plan.refusals:
        yield from _refusal_lines(refusal)
        yield ""


def _step_lines(number: int, step: Step, result: StepResult | None) -> Iterator[str]:
    outcome = f"{result.outcome}: " if result is not None else ""
    yield f"  {number}. {outcome}{printable(step.describe())}"
    if result is not None and result.detail:
        yield f"     {printable(result.detail)}"
    if result is not None and result.hint:
        yield f"     to do: {printable(result.hint)}"


def _refusal_lines(refusal: Refusal) -> Iterator[str]:
    yield f"left alone: {refusal.kind} {printable(_subject(refusal))}"
    yield from (f"  - {printable(reason)}" for reason in refusal.reasons)
    if refusal.advice:
        yield f"  to do: {printable(refusal.advice)}"


def _subject(item: Repair | Refusal) -> str:
    return f"{item.subject} (pod {item.label})" if item.label and item.label != item.subject else item.subject


# --- data -----------------------------------------------------------------------------------------------------


def repair_data(report: RepairReport) -> dict[str, Any]:
    """The documented shape."""
    results = {id(result.step): result for _, result in report.results}
    return {
        "rootDir": text(report.inspection.root_dir),
        "kind": str(report.inspection.kind),
        "applied": report.applied,
        "complete": report.complete,
        "repairs": [_repair_data(repair, results) for repair in report.plan.repairs],
        "refusals": [_refusal_data(refusal) for refusal in report.plan.refusals],
    }


def _repair_data(repair: Repair, results: dict[int, StepResult]) -> dict[str, Any]:
    return {
        "kind": repair.kind,
        "subject": text(repair.subject),
        "podUID": text(repair.pod_uid),
        "pod": text(repair.label),
        "steps": [_step_data(step, results.get(id(step))) for step in repair.steps],
    }


def _step_data(step: Step, result: StepResult | None) -> dict[str, Any]:
    return {
        "action": str(step.action),
        "subject": text(step.subject),
        "description": text(step.describe()),
        "plugin": text(step.plugin),
        "driver": text(step.driver),
        "notTold": text(step.untold),
        "outcome": str(result.outcome) if result is not None else "",
        "detail": text(result.detail) if result is not None else "",
        "hint": text(result.hint) if result is not None else "",
    }


def _refusal_data(refusal: Refusal) -> dict[str, Any]:
    return {
        "kind": refusal.kind,
        "subject": text(refusal.subject),
        "podUID": text(refusal.pod_uid),
        "pod": text(refusal.label),
        "reasons": [text(reason) for reason in refusal.reasons],
        "advice": text(refusal.advice),
    }
