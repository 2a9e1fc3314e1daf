"""Every module of every distribution: it imports by itself, does no work when it does, and keeps its ``__all__``."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

import volumehost
import volumehost_csi
import volumehost_csi_kit
import volumehost_emptydir
import volumehost_hostpath
import volumehost_loop_driver
import volumehost_projected

PACKAGES = (
    volumehost,
    volumehost_csi,
    volumehost_csi_kit,
    volumehost_emptydir,
    volumehost_hostpath,
    volumehost_loop_driver,
    volumehost_projected,
)


def modules():
    """Names of all modules, scripts left out."""
    return sorted(
        module.name
        for package in PACKAGES
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.name.endswith("__main__")
    )


@pytest.mark.parametrize("name", modules())
def test_a_declared_all_is_exact(name):
    module = importlib.import_module(name)
    declared = getattr(module, "__all__", None)
    if declared is None:
        return
    assert len(declared) == len(set(declared))
    assert [entry for entry in declared if not hasattr(module, entry)] == []
    assert [entry for entry in declared if entry.startswith("_") and not entry.startswith("__")] == []


@pytest.mark.parametrize("name", modules())
def test_a_module_says_what_it_is_for(name):
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()


LOOK = """
import importlib, json, logging, os, sys, threading
root = logging.getLogger()
before = (threading.active_count(), list(root.handlers), dict(os.environ), os.getcwd(), sys.path[:])
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
after = (threading.active_count(), list(root.handlers), dict(os.environ), os.getcwd(), sys.path[:])
children = open(f"/proc/self/task/{os.getpid()}/children").read() if sys.platform == "linux" else ""
print(json.dumps([repr(before), repr(after), children]))
"""


def test_importing_everything_does_no_work(tmp_path):
    """No thread, no child, no handler, no change of the environment, no file in the working directory."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK, json.dumps(modules())],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after, children = json.loads(done.stdout)
    assert after == before
    assert children == ""
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []
