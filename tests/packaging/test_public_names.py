"""``volumehost.__all__`` is exact: what it lists is there, and what is public is listed, in all three places."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import volumehost
from volumehost import hookspecs, host_services, spec, volume_host, volumes

SOURCE = Path(volumehost.__file__).read_text()


def imports_for_type_checkers():
    """Name to module, from the block under TYPE_CHECKING."""
    block = next(
        node
        for node in ast.parse(SOURCE).body
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )
    return {
        alias.asname or alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }


def test_names_are_sorted_and_unique():
    assert volumehost.__all__ == sorted(set(volumehost.__all__))


@pytest.mark.parametrize("name", volumehost.__all__)
def test_every_name_resolves_and_is_the_object_of_its_home(name):
    value = getattr(volumehost, name)
    if name == "errors":
        assert value is importlib.import_module("volumehost.errors")
    else:
        assert value is getattr(importlib.import_module(volumehost._HOME[name]), name)


def test_the_lazy_table_the_type_checkers_imports_and_the_list_agree():
    assert set(volumehost._HOME) | {"errors"} == set(volumehost.__all__)
    for_checkers = imports_for_type_checkers()
    assert for_checkers.pop("errors") == "volumehost"
    assert for_checkers == volumehost._HOME


def test_nothing_public_is_missing():
    """Every public class of the contract's modules is exported."""
    public = {
        name
        for module in (hookspecs, volumes, volume_host, host_services, spec)
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert public - set(volumehost.__all__) == set()


def test_dir_shows_the_public_names_and_an_unknown_one_is_an_attribute_error():
    assert dir(volumehost) == sorted(volumehost.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Volumes'"):
        volumehost.Volumes  # noqa: B018


def run_fresh(code):
    """What the code prints as JSON in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_import_star():
    names = run_fresh(
        "import json\nfrom volumehost import *\nprint(json.dumps(sorted(n for n in globals() if n != 'json')))"
    )
    assert set(volumehost.__all__) <= set(names)


HEAVY = {
    "kubernetes", "grpc", "pydantic", "msgspec", "yaml", "sqlite3", "rich", "click", "importlib_metadata", "asyncio",
    "prometheus_client", "packaging", "filelock",
}  # fmt: skip


def modules_after(code):
    """Top-level modules that the code adds to a new interpreter."""
    return set(
        run_fresh(
            "import json, sys\nbefore = set(sys.modules)\n"
            f"{code}\n"
            "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
        )
    )


def test_importing_the_package_loads_nothing_heavy_not_even_pluggy():
    loaded = modules_after("import volumehost")
    assert "volumehost" in loaded
    assert loaded & (HEAVY | {"pluggy", "dataclasses", "inspect", "importlib.metadata"}) == set()
    assert {name for name in loaded if name not in sys.stdlib_module_names} == {"volumehost"}


def test_the_heavy_names_would_be_noticed():
    """The test above can fail: the same look at a module that does load one of them."""
    assert "sqlite3" in modules_after("import volumehost, sqlite3")


CONTRACT = ["errors", "spec", "volumes", "host_services", "volume_host", "hookspecs"]


def test_the_whole_contract_loads_pluggy_and_nothing_heavier():
    loaded = modules_after("\n".join(f"import volumehost.{name}" for name in CONTRACT))
    assert loaded & HEAVY == set()
    assert {name for name in loaded if name not in sys.stdlib_module_names} == {"volumehost", "pluggy"}


def test_what_a_plugin_author_imports_loads_nothing_heavier():
    loaded = modules_after("from volumehost import Attributes, Mounter, MounterArgs, VolumeMetrics, errors, hookimpl")
    assert {name for name in loaded if name not in sys.stdlib_module_names} == {"volumehost", "pluggy"}
