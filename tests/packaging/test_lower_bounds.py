"""The oldest versions that the metadata allows are enough: installed with just these, the main job runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="old releases have wheels for the oldest Python only"),
]


def lowest(requirement):
    """``click>=8.1.8`` becomes ``click==8.1.8``."""
    exact = re.sub(r">=", "==", requirement.partition(",")[0])
    assert re.fullmatch(r"[\w.-]+==[\w.]+", exact), requirement
    return exact


@pytest.fixture(scope="module")
def oldest(distributions, tmp_path_factory):
    """The ``bin`` directory of a virtual environment with the lowest version of each direct requirement."""
    where = tmp_path_factory.mktemp("oldest") / "venv"
    venv.create(where, with_pip=True, symlinks=True)
    requirements = [
        lowest(requirement)
        for name in ("volumehost", "volumehost-csi-kit")
        for requirement in distributions[name].project["dependencies"]
    ]
    wheels = [str(distribution.wheel) for distribution in distributions.values()]
    pip = [str(where / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    done = subprocess.run([*pip, *requirements, *wheels], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return where / "bin"


def run(command, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VOLUMEHOST_", "PYTHON"))}
    environment["TMPDIR"] = str(tmp_path)
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env=environment,
    )


def test_plugins_load(oldest, tmp_path):
    done = run([oldest / "volumehost", "plugins", "check"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.root
def test_volumes_are_mounted_and_taken_away(oldest, tmp_path):
    done = run([oldest / "volumehost", "demo"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All as promised." in done.stdout
