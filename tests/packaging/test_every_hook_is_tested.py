"""Every hook of the contract is called by at least one test of the repository."""

from __future__ import annotations

import ast

import pytest

from volumehost import hookspecs

HOOKS = sorted({hook for hook_class in hookspecs.HOOK_CLASSES for hook in hookspecs.own_hooks(hook_class)})


def names_called(source):
    """The names of methods that the source calls, and those that it asks for with ``getattr`` or ``methodcaller``."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                names.add(node.func.attr)
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in {"getattr", "methodcaller"}:
                names |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    return names


@pytest.fixture(scope="module")
def called(pytestconfig):
    """What all tests call."""
    root = pytestconfig.rootpath
    files = [
        path
        for directory in (
            "host/tests",
            "plugins/hostpath/tests",
            "plugins/emptydir/tests",
            "plugins/projected/tests",
            "plugins/csi/tests",
            "tests",
        )
        for path in (root / directory).rglob("test_*.py")
    ]
    assert files
    return set().union(*(names_called(path.read_text()) for path in files))


@pytest.mark.parametrize("hook", HOOKS)
def test_a_test_calls_the_hook(called, hook):
    assert hook in called


def test_a_hook_that_is_only_mentioned_does_not_count():
    source = '"""new_mounter"""\ndef new_mounter(): ...\nplugin.new_unmounter("v", "u")\ngetattr(plugin, "recycle")()\n'
    assert names_called(source) == {"new_unmounter", "recycle"}
