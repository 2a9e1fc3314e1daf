"""The page of events names every reason that the source gives one, and no other."""

from __future__ import annotations

import ast
import re

REASON = re.compile(r"[A-Z][a-z]+[A-Z][A-Za-z]+|Resizing")
#: Calls that record an event, at last.
RECORDING = {"event", "_event", "_events", "_tell", "_lose", "_fail", "save_error", "_problem_event"}
#: Names that hold a reason.
HOLDING = {"event_reason", "EVENT_REASON", "LIMIT_EXCEEDED", "reason"}


def reasons_in(tree):
    for node in ast.walk(tree):
        values = []
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            values = [keyword.value for keyword in node.keywords if keyword.arg in HOLDING]
            values += node.args if name in RECORDING else []
        elif isinstance(node, ast.Assign):
            held = [getattr(target, "id", getattr(target, "attr", "")) for each in node.targets
                    for target in getattr(each, "elts", [each])]  # fmt: skip
            values = getattr(node.value, "elts", [node.value]) if HOLDING & set(held) else []
        for value in values:
            for constant in ast.walk(value):
                text = constant.value if isinstance(constant, ast.Constant) else None
                if isinstance(text, str) and REASON.fullmatch(text):
                    yield text


def test_every_reason_is_on_the_page_and_no_other(repository, read_source):
    found = set()
    plugins = [f"plugins/{name}/src" for name in ("csi", "emptydir", "hostpath", "projected")]
    for directory in ("host/src/volumehost", *plugins):
        for path in (repository / directory).rglob("*.py"):
            if {"testing", "api"}.isdisjoint(path.relative_to(repository).parts):
                found.update(reasons_in(ast.parse(path.read_text())))
    page = read_source("reference/events.md")
    shown = re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
    assert set(shown) == found


def test_every_row_has_a_type_and_a_kind(read_source):
    page = read_source("reference/events.md")
    rows = re.findall(r"^\| `\w+`[ *]*\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert len(rows) > 40
    for types, kinds, _ in rows:
        assert set(types.split(", ")) <= {"Normal", "Warning"}
        assert all(re.fullmatch(r"[A-Z][A-Za-z]+", kind) for kind in kinds.split(", "))
