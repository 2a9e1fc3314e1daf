"""A world for each test: a root directory on a tmpfs of its own, drivers that end with the test."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for world.py: tests are imported without a package

from world import World

from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Nothing runs yet; everything ends with the test, whatever the test did."""
    place = tmp_path / "host"
    place.mkdir()
    syscalls.mount("root", str(place), "tmpfs", 0, "")
    sockets = tempfile.mkdtemp(prefix="csi-")  # short enough for sockets
    made = World(str(place / "root"), sockets, str(tmp_path))
    try:
        yield made
    finally:
        made.close()
        for _ in range(3):
            below = [mount.path for mount in read_mount_table() if f"{mount.path}/".startswith(f"{tmp_path}/")]
            for path in reversed(below):
                with contextlib.suppress(OSError):
                    syscalls.umount2(path, syscalls.MNT_DETACH)
        shutil.rmtree(sockets, ignore_errors=True)
