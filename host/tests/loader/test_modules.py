"""The modules of a distribution: which they are, taking them out, putting them back, importing them ahead."""

from __future__ import annotations

import importlib
import sys

import pytest

from volumehost.loader.installed import InstalledDistribution
from volumehost.loader.modules import OwnModules
from volumehost.loader.scan import group_marker, read_entry

GROUP = "volumehost.plugins"


@pytest.fixture
def own(importable):
    """Installs a distribution and gives its modules."""

    def install(name, files, entry_points=None):
        info = importable.add(name, "1.0", entry_points or {"x": f"{next(iter(files)).partition('/')[0]}:X"}, files)
        installed = InstalledDistribution.from_scan(read_entry(importable.path, info.name, GROUP, group_marker(GROUP)))
        importlib.invalidate_caches()
        return OwnModules(installed)

    return install


def test_own_modules_are_those_that_record_lists(own):
    modules = own("mine", {"mine_pkg/__init__.py": "", "mine_pkg/sub.py": "import json"})
    other = own("other", {"mine_pkg/foreign.py": ""}, {"x": "mine_pkg.foreign:X"})
    for name in ("mine_pkg.sub", "mine_pkg.foreign"):
        importlib.import_module(name)
    assert set(modules.loaded()) == {"mine_pkg", "mine_pkg.sub"}
    assert set(other.loaded()) == {"mine_pkg.foreign"}


def test_taking_out_and_putting_back_restores_everything(own):
    modules = own("mine", {"back_pkg/__init__.py": "", "back_pkg/sub.py": "value = []"})
    first = importlib.import_module("back_pkg.sub")
    package = sys.modules["back_pkg"]
    taken = modules.take_out()
    assert set(taken) == {"back_pkg", "back_pkg.sub"}
    assert "back_pkg" not in sys.modules
    second = importlib.import_module("back_pkg.sub")
    assert second is not first
    modules.put_back(taken)
    assert sys.modules["back_pkg"] is package
    assert sys.modules["back_pkg"].sub is sys.modules["back_pkg.sub"] is first


def test_modules_to_keep_stay(own):
    modules = own("mine", {"keep_pkg/__init__.py": "", "keep_pkg/sub.py": ""})
    importlib.import_module("keep_pkg")
    before = frozenset(sys.modules)
    importlib.import_module("keep_pkg.sub")
    assert set(modules.take_out(keep=before)) == {"keep_pkg.sub"}
    assert "keep_pkg" in sys.modules


def test_a_shared_namespace_package_stays_and_forgets_the_module(own):
    mine = own("mine", {"shared_ns/mine.py": "x = 1"}, {"x": "shared_ns.mine:X"})
    own("theirs", {"shared_ns/theirs.py": "x = 2"}, {"x": "shared_ns.theirs:X"})
    for name in ("shared_ns.mine", "shared_ns.theirs"):
        importlib.import_module(name)
    namespace = sys.modules["shared_ns"]
    taken = mine.take_out()
    assert set(taken) == {"shared_ns.mine"}
    assert sys.modules["shared_ns"] is namespace
    assert not hasattr(namespace, "mine")
    assert namespace.theirs.x == 2
    mine.put_back(taken)
    assert namespace.mine.x == 1


def test_submodules_are_imported_ahead_except_those_that_may_do_anything(own):
    files = {
        "ahead_pkg/__init__.py": "",
        "ahead_pkg/late.py": "",
        "ahead_pkg/deep/__init__.py": "",
        "ahead_pkg/deep/er.py": "",
        "ahead_pkg/optional.py": "import a_module_that_is_not_there",
        "ahead_pkg/exits.py": "raise SystemExit(1)",
        "ahead_pkg/__main__.py": "raise AssertionError('run')",
        "ahead_pkg/tests/test_x.py": "raise AssertionError('run')",
        "ahead_pkg/not-a-module.py": "raise AssertionError('run')",
        "ahead_other.py": "raise AssertionError('not of the packages that the entry points name')",
    }
    own("ahead", files).import_ahead()
    assert {name for name in sys.modules if name.startswith("ahead")} == {
        "ahead_pkg",
        "ahead_pkg.late",
        "ahead_pkg.deep",
        "ahead_pkg.deep.er",
    }


def test_an_extension_module_is_named(own, importable):
    import _heapq

    modules = own("ext", {"ext_pkg/__init__.py": ""})
    module = importlib.import_module("ext_pkg")
    assert modules.extension() == ""
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    assert _heapq
    module.__file__ = f"{importable.path}/ext_pkg/__init__.py"
    fast = type(sys)("ext_pkg.fast")
    fast.__file__ = f"{importable.path}/ext_pkg/fast{suffix}"
    sys.modules["ext_pkg.fast"] = fast
    try:
        assert modules.extension() == "", "it is not in RECORD"
        own_too = own("ext-too", {f"ext_pkg/fast{suffix}": ""}, {"x": "ext_pkg:X"})
        assert own_too.extension() == "ext_pkg.fast"
    finally:
        del sys.modules["ext_pkg.fast"]


def test_odd_objects_in_sys_modules_do_no_harm(own):
    class Lazy:
        @property
        def __file__(self):
            raise RuntimeError("not now")

    modules = own("odd", {"odd_pkg/__init__.py": ""})
    sys.modules["odd_pkg.lazy"] = Lazy()
    sys.modules["odd_pkg.none"] = None
    try:
        assert modules.loaded() == {}
    finally:
        del sys.modules["odd_pkg.lazy"], sys.modules["odd_pkg.none"]
