"""``kill -9`` at every change that is made to a volume: readers see one version, and the next try ends it (BR-61)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.root


@pytest.mark.parametrize("kind", ["configmap", "secret"])
def test_killed_at_every_change(directory, kind):
    script = Path(__file__).parent / "killed_everywhere.py"
    command = [sys.executable, str(script), directory, kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("WRONG")] == []
    deaths = dict(re.findall(rf"^{kind} (\w+) (\d+)$", done.stdout, re.MULTILINE))
    assert deaths.keys() == {"mount", "refresh", "unmount"}
    assert all(int(count) >= 3 for count in deaths.values()), done.stdout
