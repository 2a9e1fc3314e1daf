"""The wheels install with pip into a fresh virtual environment, with their dependencies, and run from there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("VOLUMEHOST_", "PYTHON"))}


def run(*command, cwd, **options):
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=cwd,
        env=ENVIRONMENT,
        **options,
    )


@pytest.fixture(scope="module")
def installed(fresh_venv, distributions, pytestconfig, tmp_path_factory):
    """The ``bin`` directory of a virtual environment with the host and two plugins, as a user's pip installs them."""
    constraints = pytestconfig.rootpath / "constraints.txt"
    names = ("volumehost", "volumehost-hostpath", "volumehost-emptydir")
    wheels = [distributions[name].wheel for name in names]
    pip = [fresh_venv / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    done = run(*pip, "install", "-c", constraints, *wheels, cwd=tmp_path_factory.mktemp("elsewhere"))
    assert done.returncode == 0, done.stderr
    return fresh_venv


def test_pip_finds_no_broken_requirements(installed, tmp_path):
    done = run(installed / "python", "-m", "pip", "--disable-pip-version-check", "check", cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "No broken requirements found.")


def test_only_the_declared_requirements_are_there(installed, tmp_path):
    """Nothing heavy comes along: no kubernetes, grpc or pydantic, nothing of the tests or the documentation."""
    done = run(installed / "python", "-m", "pip", "--disable-pip-version-check", "list", "--format=json", cwd=tmp_path)
    names = {entry["name"].lower() for entry in json.loads(done.stdout)}
    assert {"volumehost", "volumehost-hostpath", "volumehost-emptydir", "pluggy"} <= names
    assert names & {"kubernetes", "grpcio", "protobuf", "pydantic", "pytest", "sphinx", "hatchling", "mypy"} == set()


def test_the_command_runs_from_there(installed, tmp_path, distributions):
    done = run(installed / "volumehost", "version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert distributions["volumehost"].wheel.name.split("-")[1] in done.stdout
    as_module = run(installed / "python", "-m", "volumehost", "version", cwd=tmp_path)
    assert (as_module.returncode, as_module.stdout) == (0, done.stdout)


def test_both_plugins_are_found_by_their_entry_points(installed, tmp_path):
    root = tmp_path / "root"
    done = run(installed / "volumehost", "--root-dir", root, "-o", "name", "plugins", "list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("kubernetes.io/empty-dir", "kubernetes.io/host-path"):
        assert name in done.stdout


def test_type_checkers_see_the_installed_contract(installed, tmp_path, pytestconfig):
    """A right plugin is clean under ``mypy --strict``; each mistake of the wrong ones is found where it is marked."""
    pinned = pytestconfig.rootpath / "typing_tests"
    shutil.copy(pinned / "third_party_plugin.py", tmp_path / "right.py")
    marked = (pinned / "wrong_plugins.py").read_text().splitlines()
    unmarked = [line.partition("  # type: ignore")[0] for line in marked]
    (tmp_path / "wrong.py").write_text("\n".join(unmarked) + "\n")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    mypy = [sys.executable, "-m", "mypy", "--python-executable", installed / "python", "--no-error-summary"]
    done = run(*mypy, "--cache-dir", tmp_path / "cache", "right.py", "wrong.py", cwd=tmp_path)
    expected = {
        f"wrong.py:{number}: [{kind[1]}]"
        for number, line in enumerate(marked, 1)
        if (kind := re.search(r"# type: ignore\[([\w-]+)\]", line))
    }
    assert len(expected) >= 10
    found = re.findall(r"^(\w+\.py:\d+): error: .*(\[[\w-]+\])$", done.stdout, re.MULTILINE)
    assert {f"{place}: {kind}" for place, kind in found} == expected, done.stdout + done.stderr


def test_uninstalling_leaves_nothing(installed, tmp_path):
    """Last on purpose: what pip put there, pip can take away."""
    pip = [installed / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    done = run(*pip, "uninstall", "-y", "volumehost-hostpath", "volumehost-emptydir", "volumehost", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    look = "import sysconfig, os; print([n for n in os.listdir(sysconfig.get_path('purelib')) if 'volumehost' in n])"
    left = run(installed / "python", "-c", look, cwd=tmp_path)
    assert left.stdout.strip() == "[]"
    assert not (installed / "volumehost").exists()
