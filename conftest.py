"""Every test process gets a mount namespace of its own; tests marked ``root`` are skipped where that cannot be.

What is random in tests is the same in every run, unless one asks for more.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

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
