"""Every test process gets a mount namespace of its own; tests marked ``root`` are skipped where that cannot be."""

from __future__ import annotations

import os
import signal

import pytest

from volumehost.testing.namespaces import enter_private_mount_namespace, why_not_private

_reason = why_not_private()

#: Names the mount namespace that the tests were started in. Where a CSI driver that runs already is to be tested, its
#: mounts are there and not in a private namespace; the processes under test are then started in there.
OUTER_NAMESPACE = "VOLUMEHOST_TEST_OUTER_NAMESPACE"


def pytest_configure(config: pytest.Config) -> None:
    """Enter the namespace before any test, fixture or subprocess; they can be interrupted, as from a terminal."""
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
