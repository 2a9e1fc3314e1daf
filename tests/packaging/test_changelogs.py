"""One changelog per distribution, made by towncrier from fragments."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest


@pytest.fixture(
    params=[
        "host",
        "plugins/hostpath",
        "plugins/emptydir",
        "plugins/projected",
        "plugins/csi",
        "drivers/kit",
        "drivers/loop",
    ]
)
def directory(request, pytestconfig):
    return pytestconfig.rootpath / request.param


def fragments(directory):
    return [path for path in (directory / "changelog.d").iterdir() if not path.name.startswith(".")]


def test_every_fragment_has_a_type_that_is_known(directory):
    types = {
        t["directory"] for t in tomllib.loads((directory / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]
    }
    for fragment in fragments(directory):
        parts = fragment.name.split(".")
        assert parts[-1] == "md"
        assert parts[-2] in types, f"{fragment} has none of the types {sorted(types)}"
        assert fragment.read_text().strip()


def test_the_next_release_collects_every_fragment(directory):
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9", "--date", "2030-01-02"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "## 9.9.9 (2030-01-02)" in done.stdout
    for fragment in fragments(directory):
        assert fragment.read_text().strip() in done.stdout


def test_changelog_has_the_place_for_the_next_release(directory):
    settings = tomllib.loads((directory / "pyproject.toml").read_text())["tool"]["towncrier"]
    assert settings["start_string"] in (directory / settings["filename"]).read_text()
    assert settings["name"] == tomllib.loads((directory / "pyproject.toml").read_text())["project"]["name"]
