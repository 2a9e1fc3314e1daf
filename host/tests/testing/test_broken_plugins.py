"""Every conformance check fails for a plugin that is broken in exactly that respect, and says what is wrong with it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from volumehost.testing.conformance.subject import find_plugin, with_ids
from volumehost.testing.leaks import LeakGuard

pytestmark = pytest.mark.root

SUPPORT = Path(__file__).parent / "support"


def broken_plugins(path):
    """``module:Class`` of every class with ``says``, and the texts, without importing anything."""
    for node in ast.parse(path.read_text()).body:
        for line in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "says":
                yield f"{path.stem}:{node.name}", ast.literal_eval(line.value)


MODULES = {path.stem: dict(broken_plugins(path)) for path in sorted(SUPPORT.glob("broken_*.py"))}
#: Beside others that support the volume, a plugin that does not would not be asked about it.
ALONE = {"broken_support:it_supports_its_own_volume"}


def check_of(plugin):
    """The name of the check that must notice."""
    return plugin.partition(":")[2].partition("__")[0]


def finding(text):
    """What happened, without the statement of what must hold."""
    return text.partition("\n\nmust hold: ")[0]


def verdict(reports, says):
    """What is wrong with the reports of a check that is to fail, "" when nothing is."""
    called = [report for report in reports if report.when == "call"]
    others = [report for report in reports if report.when != "call" and not report.passed]
    if not called or others or not all(report.failed for report in called):
        return f"not failed: {[(report.nodeid, report.when, report.outcome) for report in reports]}"
    texts = [" ".join(finding(report.longreprtext).split()) for report in called]
    return "" if any(says in text for text in texts) else f"{says!r} is not in {texts}"


@pytest.fixture
def no_process_left(tmp_path):
    """What the broken plugins start is gone when the run is over."""
    with LeakGuard(str(tmp_path), grace=0.0) as guard:
        yield
        left = [leak for leak in guard.leaks() if leak.kind == "process"]
        guard.take_away()
    assert left == []


@pytest.mark.parametrize(
    "plugins",
    [
        *({name: says for name, says in module.items() if name not in ALONE} for module in MODULES.values()),
        *({name: says} for module in MODULES.values() for name, says in module.items() if name in ALONE),
    ],
    ids=[*MODULES, *ALONE],
)
def test_each_check_notices_what_it_is_for(no_process_left, run_kit, all_volumes, plugins):
    first, *more = plugins
    options = [option for name in more for option in ("--volume-plugin", name)]
    ids = {
        subject.target: f"{subject.id}::{check_of(subject.target)}"
        for subject in with_ids(list(map(find_plugin, plugins)))
    }
    recorded = run_kit(first, *options, *ids.values(), volumes=all_volumes, inline=True)
    reports = recorded.getreports("pytest_runtest_logreport")
    found = {
        name: verdict([report for report in reports if report.nodeid.partition("[")[0] == ids[name]], says)
        for name, says in plugins.items()
    }
    assert {name: problem for name, problem in found.items() if problem} == {}


def test_there_is_a_broken_plugin_for_every_check(checks):
    assert {check_of(name) for module in MODULES.values() for name in module} == set(checks)


def test_what_is_not_noticed_is_told(run_kit):
    """The test above can fail: a good plugin is no broken one."""
    recorded = run_kit("complete_plugin:CompletePlugin", "example.com/complete::it_loads", inline=True)
    assert verdict(recorded.getreports("pytest_runtest_logreport"), "").startswith("not failed: ")
    assert verdict([], "").startswith("not failed: ")
