"""kill -9 between any two steps: the next process goes on from what is written down (BR-47; no leak, no loss)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_run.py")


@pytest.mark.parametrize(
    ("scenario", "at_least"),
    [
        ("attach", 8),
        ("attach, then deleted", 8),
        ("detach", 4),
        ("expand", 6),
        ("expand without a node", 8),
        ("modify", 6),
        ("snapshot, then deleted", 16),
        ("snapshot that takes a while", 20),
        ("snapshot deleted", 12),
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
