"""A few minutes' worth of storm in some seconds; ``make storm`` is the whole of it.

Each rages in a process of its own, which takes its world away even when the tests are ended.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from storm.corrupt import rage as rot
from storm.crew import side_by_side
from storm.drivers import combinations
from storm.drivers import rage as misbehave
from storm.full_disk import rage as fill
from storm.kill import rage as kill
from storm.reboot import rage as reboot
from storm.steps import Step

pytestmark = pytest.mark.root

SEED = 7

#: In the middle of what reaches outside.
STEPS = [
    (Step("volume_mount", "set-up"), 2),
    (Step("map_volume", "map"), 1),
    (Step("unmount_device", "unmount-device"), 1),
    (Step("volume_detach", "detach"), 1),
]


def test_br55_br57_br61_kills_at_steps_and_at_random(tmp_path: Path) -> None:
    tasks = [*STEPS, None, None]
    (counts,) = side_by_side(kill, [(SEED, tasks, time.monotonic() + 240, str(tmp_path))], 1)
    assert counts.broken == []
    assert counts.missed == []
    assert counts.kills >= len(tasks)
    assert counts.looks > 0
    assert counts.files > 0


def test_drivers_that_misbehave_in_every_way(tmp_path: Path) -> None:
    chosen = combinations(SEED)[:24]
    (counts,) = side_by_side(misbehave, [(SEED, chosen, 0.0, str(tmp_path))], 1)
    assert counts.broken == []
    assert counts.lives.total() == len(chosen)


def test_br58_reboots(tmp_path: Path) -> None:
    (counts,) = side_by_side(reboot, [(SEED, 2, str(tmp_path))], 1)
    assert counts.broken == []
    assert sum(counts.reboots.values()) == 2
    assert counts.looks > 0


def test_a_disk_with_ever_so_little_left(tmp_path: Path) -> None:
    (counts,) = side_by_side(fill, [("pages", 6, str(tmp_path))], 1)
    assert counts.broken == []
    assert counts.told.total() > 0


def test_br56_files_that_rot(tmp_path: Path) -> None:
    cases = [
        ("r/pods/*/volumes/kubernetes.io~csi/pvc-*/vol_data.json", "empty"),
        ("r/store.sqlite*", "gone"),
    ]
    (counts,) = side_by_side(rot, [(SEED, cases, time.monotonic() + 240, str(tmp_path))], 1)
    assert counts.broken == []
    assert counts.cases.total() == len(cases)
    assert counts.cleaned == 1


def test_the_program_tells_its_figures_and_whether_a_promise_was_broken(tmp_path: Path) -> None:
    top = Path(__file__).parents[2]
    command = [sys.executable, "-m", "storm", "scale", "--rounds", "4", "--seed", "3", "--evidence", str(tmp_path)]
    done = subprocess.run(command, cwd=top, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Scale: 4 pods, 16 volumes" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("seed 3, ")
    assert done.stdout.splitlines()[-1].endswith("all promises kept")
    wrong = subprocess.run([*command[:3], "hail"], cwd=top, capture_output=True, text=True, timeout=280, check=False)
    assert wrong.returncode == 2
    assert "unknown: hail" in wrong.stderr
