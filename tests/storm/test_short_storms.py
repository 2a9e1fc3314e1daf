"""The storms in short: what ``make storm`` does for 20 minutes, a few rounds of each."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.root


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("storm", "rounds"),
    [("kill", 3), ("drivers", 4), ("reboot", 1), ("scale", 4), ("full-disk", 1), ("corrupt", 3)],
)
def test_all_promises_are_kept(storm, rounds, tmp_path):
    command = [sys.executable, "-m", "storm", storm, "--rounds", str(rounds), "--minutes", "0.5"]
    command += ["--evidence", str(tmp_path / "evidence")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "all promises kept" in done.stdout
