"""Fixtures of the sdk's tests: a directory that takes its mounts with it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from volumehost.mount.mounter import LinuxMounter


@pytest.fixture
def directory(tmp_path) -> Iterator[str]:
    """A directory; whatever is still mounted below it at the end is unmounted, and fails the test."""
    path = os.path.realpath(tmp_path)
    yield path
    left = [mount for mount in LinuxMounter().list_mounts() if mount.path.startswith(path + "/")]
    for mount in reversed(left):
        LinuxMounter().unmount(mount.path)
    assert not left, f"mounts left behind: {[mount.path for mount in left]}"
