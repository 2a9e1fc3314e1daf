"""Checks of a plugin whose process is killed with SIGKILL between two steps: the next process must find its way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from volumehost.testing.conformance.check import check, fail, require
from volumehost.testing.conformance.content import remove_content, write_content
from volumehost.testing.conformance.plugin_process import PluginProcess

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.testing.conformance.plugin_process import Outcome
    from volumehost.testing.conformance.trial import Trial

#: At how many steps an operation is interrupted at most.
_POINTS = 16


@check("PLUG-03", mode="")
def the_volume_name_is_the_same_in_another_process(trial: Trial) -> None:
    """get_volume_name gives the same in another process: it names the storage on every node and after a restart."""
    here = trial.plugin.get_volume_name(trial.spec)
    with PluginProcess(trial) as process:
        there = _succeeded(process.call("volume_name", trial.pod), "get_volume_name", "in another process")
    require(there.value == here, f"get_volume_name is {here!r} in this process, and {there.value!r} in another")


@check("VOL-12", "MOUNTOP-15")
def set_up_killed_at_any_step_can_be_repeated(trial: Trial) -> None:
    """When the process is killed at any step of set_up, the next process sets the volume up to the end, and then takes
    it away to the last directory.
    """
    with _interrupted(trial, "set_up") as points:
        for process, pod, where in points:
            _require_usable(trial, _succeeded(process.call("set_up", pod), "set_up", where), where)
            _succeeded(process.call("tear_down", pod), "tear_down", where)
            trial.require_nothing_left(pod, after=f"{where}, set_up and tear_down in new processes")


@check("VOL-06", "VOL-12")
def set_up_killed_at_any_step_can_be_torn_down(trial: Trial) -> None:
    """When the process is killed at any step of set_up and the pod is gone meanwhile, the next process takes away what
    there is, to the last directory.
    """
    with _interrupted(trial, "set_up") as points:
        for process, pod, where in points:
            _succeeded(process.call("tear_down", pod), "tear_down", where)
            trial.require_nothing_left(pod, after=f"{where} and tear_down in a new process")


@check("VOL-06", "VOL-12", "EMPTYDIR-40")
def tear_down_killed_at_any_step_can_be_repeated(trial: Trial) -> None:
    """When the process is killed at any step of tear_down, the next process takes the rest away, to the last
    directory.
    """
    with _interrupted(trial, "tear_down") as points:
        for process, pod, where in points:
            _succeeded(process.call("tear_down", pod), "tear_down", where)
            trial.require_nothing_left(pod, after=f"{where} and tear_down in a new process")


@contextmanager
def _interrupted(trial: Trial, action: str) -> Iterator[Iterator[tuple[PluginProcess, Pod, str]]]:
    """For each step at which the action is killed: the process for what follows, the pod, and words for it."""
    with PluginProcess(trial) as process:
        yield _interrupt(trial, process, action)


def _interrupt(trial: Trial, process: PluginProcess, action: str) -> Iterator[tuple[PluginProcess, Pod, str]]:
    _ = trial.plugin
    _rehearse(trial, process, trial.another_pod(), action)  # the very first time makes more than any other
    steps = _rehearse(trial, process, trial.another_pod(), action)
    for number in _points(steps):
        pod = trial.another_pod()
        before = f"before {steps[number]}" if number < len(steps) else "after its last step"
        where = f"{action} was killed {before} (step {number + 1} of {len(steps) + 1})"
        if action == "tear_down":
            set_up = _succeeded(process.call("set_up", pod), "set_up", "the first time")
            trial.put_content_at(set_up.value, writable=not (set_up.read_only or trial.spec.read_only))
        outcome = process.call(action, pod, kill_at=number)
        if outcome.error:
            fail(f"{action} raised {outcome.error}")
        yield process, pod, where


def _rehearse(trial: Trial, process: PluginProcess, pod: Pod, action: str) -> tuple[str, ...]:
    """The steps of the action when nothing interrupts it."""
    set_up = _succeeded(process.call("set_up", pod), "set_up", "uninterrupted")
    trial.put_content_at(set_up.value, writable=not (set_up.read_only or trial.spec.read_only))
    tear_down = _succeeded(process.call("tear_down", pod), "tear_down", "uninterrupted")
    return set_up.steps if action == "set_up" else tear_down.steps


def _points(steps: Sequence[str]) -> list[int]:
    """The numbers of the steps to kill before; the number of all steps is the moment when all is done.

    First those around what matters most, mounts and files, then some of the rest, which is mostly directories.
    """
    last = len(steps)
    around = [number for number, step in enumerate(steps) if not step.startswith("os.mkdir ")]
    wanted = dict.fromkeys([last, *(point for number in around for point in (number, number + 1)), 0])
    spread = [round(index * last / _POINTS) for index in range(_POINTS)]
    return sorted(list(dict.fromkeys([*wanted, *spread]))[:_POINTS])


def _succeeded(outcome: Outcome, what: str, where: str) -> Outcome:
    require(not outcome.killed, f"{where}: the process of {what} died")
    require(not outcome.error, f"after {where}, {what} in a new process raised {outcome.error}")
    return outcome


def _require_usable(trial: Trial, set_up: Outcome, where: str) -> None:
    """There is something at the path; where that is a directory and not read-only, a file can be made in it."""
    path = set_up.value
    require(os.path.lexists(path), f"after {where} the next set_up succeeded, but there is nothing at {path}")
    if not os.path.isdir(path) or trial.spec.read_only or set_up.read_only:
        return
    try:
        remove_content(write_content(path))
    except OSError as error:
        fail(f"after {where} and another set_up, {path} cannot be written: {error}")
