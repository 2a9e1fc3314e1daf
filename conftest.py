"""Every test process gets a mount namespace of its own; tests marked ``root`` are skipped where that cannot be.

The fixtures are there for the tests of every distribution. What is random in tests is the same in every run, unless one
asks for more.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml  # noqa: F401 - its part in C cannot be loaded twice, as it would be where tests run pytest within this process
from hypothesis import HealthCheck, settings

from volumehost.errors import WaitTimeoutError
from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table
from volumehost.testing.agents import PATIENCE
from volumehost.testing.namespaces import enter_private_mount_namespace, why_not_private

_reason = why_not_private()

#: Names the mount namespace that the tests were started in. Where a CSI driver that runs already is to be tested, its
#: mounts are there and not in a private namespace; the processes under test are then started in there.
OUTER_NAMESPACE = "VOLUMEHOST_TEST_OUTER_NAMESPACE"

# A busy machine is no failure, and what one machine tries every other tries too; "--hypothesis-profile exploring" tries
# what was never tried. A test with a "suppress_health_check" of its own has to name "too_slow" again.
settings.register_profile("exploring", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", settings.get_profile("exploring"), derandomize=True, database=None)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Enter the namespace before any test, fixture or subprocess; they can be interrupted, as from a terminal."""
    if sys.version_info < (3, 12):
        _show_tracebacks_one_at_a_time()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is for what a shell starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not _reason:
        if OUTER_NAMESPACE not in os.environ:  # a worker inherits it from the process that started it
            outer = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            os.environ[OUTER_NAMESPACE] = f"/proc/{os.getpid()}/fd/{outer}"
        enter_private_mount_namespace()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs root, with the reason."""
    if _reason:
        skip = pytest.mark.skip(reason=f"tests with real mounts: {_reason}")
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(skip)


def _show_tracebacks_one_at_a_time() -> None:
    """Threads that log failures do not disturb each other.

    To mark the place in a line Python 3.11 parses it, and it counts the depth of the tree in one place for all threads:
    when one comes while another is at it, both fail with a SystemError ("recursion depth mismatch"). A program has one
    handler for its log, which has a lock; pytest has two, each with a lock of its own.
    """
    name = "_extract_caret_anchors_from_line_segment"
    parse, one_at_a_time = getattr(traceback, name), threading.RLock()

    def parse_alone(segment: str) -> Any:
        with one_at_a_time:
            return parse(segment)

    setattr(traceback, name, parse_alone)


@pytest.fixture
def until() -> Callable[..., None]:
    """Wait for a condition, with a deadline in seconds."""

    def wait(condition: Callable[[], object], seconds: float = PATIENCE, what: str = "the condition") -> None:
        deadline = time.monotonic() + seconds
        pause = threading.Event()
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"{what} did not come true within {seconds} s")
            pause.wait(0.005)

    return wait


@pytest.fixture
def refused(until: Callable[..., None]) -> Callable[..., Any]:
    """Asks again and again, each time for a moment, until the error has the words (a pattern); returns it."""

    def ask(call: Callable[..., Any], words: str) -> pytest.ExceptionInfo[WaitTimeoutError]:
        found = []

        def has_words() -> bool:
            with pytest.raises(WaitTimeoutError) as caught:
                call(timeout=0.1)
            found[:] = [caught]
            return re.search(words, str(caught.value)) is not None

        until(has_words, what=f"that {words} is told")
        return found[0]

    return ask


@pytest.fixture
def kept(refused: Callable[..., Any]) -> Callable[..., Any]:
    """Asks to unmount a pod, by default until an attempt has failed."""
    return lambda node, name, words="attempts? failed": refused(partial(node.unmount_pod, name), words)


@pytest.fixture
def unready(refused: Callable[..., Any]) -> Callable[..., Any]:
    """Asks to mount a pod."""
    return lambda node, pod, words: refused(partial(node.mount_pod, pod), words)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[str]:
    """A root directory on a tmpfs of its own; everything below the test's directory is unmounted at the end."""
    place = tmp_path / "host"
    place.mkdir()
    syscalls.mount("root", str(place), "tmpfs", 0, "")
    yield str(place / "root")
    for _ in range(3):
        below = [mount.path for mount in read_mount_table() if f"{mount.path}/".startswith(f"{tmp_path}/")]
        for path in reversed(below):
            with contextlib.suppress(OSError):
                syscalls.umount2(path, syscalls.MNT_DETACH)


@pytest.fixture
def snapshot() -> Callable[[str], object]:
    """Everything that could have changed below a directory: names, kinds, modes, sizes, times, contents; and mounts."""

    def take(root: str) -> object:
        found = {}
        for directory, _, names in os.walk(root):
            for path in (directory, *(os.path.join(directory, name) for name in names)):
                status = os.lstat(path)
                content = b""
                if stat.S_ISREG(status.st_mode):
                    with open(path, "rb") as file:
                        content = file.read()
                found[path] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino, content)
        return found, [str(mount) for mount in read_mount_table()]

    return take
