"""The same tests where the kernel lacks the newer system calls (before 5.2, in effect)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

HERE = Path(__file__).parent
# What an old kernel cannot give (a read-only bind that is never writable, reasons and types without looking), and what
# takes long without showing anything more here.
LEFT_OUT = (
    "not never_seen_read_write and not itself_says_what_is_wrong and not come_without_a_walk"
    " and not deeper_than and not wide_branches and not tight_loop and not swapped"
    " and not (exchanged and (relative or magic or top-))"
)


@pytest.mark.parametrize(
    "names",
    [
        ("test_mounter_contract", "test_bind", "test_mounter", "test_mount_point"),
        ("test_removal", "test_cleanup"),
        ("test_subpath", "test_subpath_attacks", "test_safe_path"),
    ],
)
def test_an_old_kernel_passes_too(names: tuple[str, ...]) -> None:
    command = [sys.executable, str(HERE / "old_kernel.py"), sys.executable, "-m", "pytest", "-q", "-x", "-k", LEFT_OUT]
    run = subprocess.run(
        [*command, *(str(HERE / f"{name}.py") for name in names)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
