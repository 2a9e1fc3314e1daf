"""The kill storm knows every named step that there is, and how to make an operation take it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from storm.actions import Actions
from storm.dying import VARIABLE, DieAt, variable_for
from storm.kept import KeptMounts
from storm.recipes import Cook
from storm.steps import Step, all_steps, steps_to_die_at

import volumehost.node


def test_every_step_that_the_code_names_is_known() -> None:
    """A step in a place that the walk over the code does not reach would never be killed at."""
    (directory,) = volumehost.node.__path__
    sources = [path.read_text() for path in Path(directory).rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'\benter\(\s*"([^"]+)"', source)}
    assert {step.step for step in all_steps()} == named


def test_every_operation_is_known() -> None:
    (directory,) = volumehost.node.__path__
    sources = [path.read_text() for path in Path(directory).rglob("*_operation*.py")]
    named = {name for source in sources for name in re.findall(r'^    name = "([^"]+)"$', source, re.MULTILINE)}
    assert named <= {step.operation for step in all_steps()}
    assert {"volume_mount", "map_volume"} <= {step.operation for step in all_steps()}


def test_each_step_has_a_way_to_be_taken() -> None:
    """Which really is one the storm itself shows: it fails when the agent did not die at a step."""
    world: object = object()
    kept = KeptMounts()
    cook = Cook(world, Actions(world, kept), kept)  # type: ignore[arg-type] # a recipe only acts when it is followed
    for step in steps_to_die_at():
        assert cook.recipe(step, 1).trigger is not None


def test_a_step_is_told_to_whoever_is_to_die_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Step("volume_mount", "set-up")
    (text,) = variable_for(step, 2).values()
    assert list(variable_for(step)) == [VARIABLE]
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr("os.kill", lambda pid, number: killed.append((pid, number)))
    observer = DieAt(text)
    observer("volume_mount", "set-up", "v", "p")
    observer("volume_mount", "check", "v", "p")
    observer("map_volume", "set-up", "v", "p")
    assert not killed
    observer("volume_mount", "set-up", "v", "p")
    assert len(killed) == 1
