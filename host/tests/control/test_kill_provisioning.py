"""kill -9 between any two steps of provisioning, binding and reclaim: no volume is forgotten, none is made twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_provisioning.py")


@pytest.mark.parametrize(
    ("scenario", "at_least"),
    [
        ("provision", 16),
        ("provision, then deleted", 16),
        ("provision, the answer lost", 16),
        ("provision, the answer lost, then deleted", 16),
        ("a volume of the wrong size", 20),
        ("bind", 8),
        ("reclaim", 6),
    ],
)
def test_killed_at_every_step(scenario: str, at_least: int) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), scenario], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["problems"] == []
    assert told["steps"] >= at_least
