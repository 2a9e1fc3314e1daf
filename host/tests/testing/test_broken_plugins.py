"""Every conformance check fails for a plugin that is broken in exactly that respect, and says what is wrong with it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

SUPPORT = Path(__file__).parent / "support"


def broken_plugins():
    """``(module:Class, what must be said)`` of every class with ``says``, without importing anything."""
    for path in sorted(SUPPORT.glob("broken_*.py")):
        for node in ast.parse(path.read_text()).body:
            for line in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "says":
                    yield pytest.param(f"{path.stem}:{node.name}", ast.literal_eval(line.value), id=node.name)


def check_of(plugin):
    """The name of the check that must notice."""
    return plugin.partition(":")[2].partition("__")[0]


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize(("plugin", "says"), list(broken_plugins()))
def test_the_check_notices(run_kit, checks, block_volume, plugin, says):
    check = checks[check_of(plugin)]
    volumes = {"volumes": block_volume} if check.mode == "Block" else {}
    result = run_kit(plugin, f"{plugin}::{check.name}", **volumes)
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed") == 1
    assert not {"passed", "error", "errors", "skipped"} & set(outcomes)
    assert says in words(result.stdout.str())


def test_there_is_a_broken_plugin_for_every_check(checks):
    assert {check_of(each.values[0]) for each in broken_plugins()} == set(checks)
