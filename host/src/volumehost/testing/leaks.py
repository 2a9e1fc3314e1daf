"""Finds what a test leaves behind in its process and on the machine, names each thing, and takes it away.

The fixture ``volumehost_leaks`` and the conformance kit use it.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import select
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from volumehost.errors import VolumeHostError
from volumehost.mount.loop import LoopDevice, detach
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.namespaces import has_own_mounts
from volumehost.testing.process_state import Mount, Process, ProcessState, ended_children

logger = logging.getLogger(__name__)

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
#: Seconds that threads and processes get to end by themselves.
GRACE = 2.0


@dataclass(frozen=True, slots=True)
class Leak:
    """One thing that was left behind: ``kind`` is ``mount``, ``loop device``, ``thread``, ``process`` or
    ``descriptor``; ``what`` names it.
    """

    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind} {self.what}"


class LeakGuard:
    """Remembers what there is when it is made, and tells later what has come and not gone.

    While it watches, children of children that lose their parent come to this process, so that a daemon that was
    started and forgotten is found too.

    :param within: loop devices count when their file lies below this directory; mounts too, unless the process has
        a mount namespace of its own, in which all count.
    :param grace: seconds that threads and processes get to end by themselves.
    """

    def __init__(self, within: str, *, grace: float = GRACE) -> None:
        self._within = os.path.realpath(within)
        self._mounts_below = "" if has_own_mounts() else self._within  # once: they may come to be its own later
        self._grace = grace
        self._adopts = _adopt_orphans(True)
        self._before = self._look()
        self._zombies = frozenset(ended_children())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop to watch."""
        if not self._adopts:
            _adopt_orphans(False)
        for process in frozenset(ended_children()) - self._zombies - self._before.children:
            with suppress(OSError):
                os.waitpid(process.pid, os.WNOHANG)

    def leaks(self) -> list[Leak]:
        """What has come since and is still there, after a short wait for threads and processes that are ending."""
        gc.collect()
        deadline = time.monotonic() + self._grace
        self._wait_for_threads(deadline)
        self._wait_for_processes(deadline)
        return list(self._describe(self._look()))

    def take_away(self) -> None:
        """Unmount, detach and end what has come since; threads and descriptors cannot be taken away from outside."""
        now = self._look()
        for process in now.children - self._before.children:
            _kill(process)
        for mount in self._new_mounts(now):
            with suppress(VolumeHostError):
                LinuxMounter().unmount_with_force(mount.path, timeout=self._grace)
        for loop in now.loop_devices - self._before.loop_devices:
            with suppress(VolumeHostError):
                detach(loop.device)

    def _look(self) -> ProcessState:
        return ProcessState.now(mounts_below=self._mounts_below, loops_below=self._within)

    def _new_mounts(self, now: ProcessState) -> list[Mount]:
        """The last one first: it may lie on the others. Of equal ones as many as there are more of."""
        more = Counter(now.mounts) - Counter(self._before.mounts)
        found = []
        for mount in reversed(now.mounts):
            if more[mount]:
                more[mount] -= 1
                found.append(mount)
        return found

    def _describe(self, now: ProcessState) -> Iterator[Leak]:
        before = self._before
        for mount in self._new_mounts(now):
            yield Leak("mount", f"{mount.path} ({mount.fs_type} from {mount.source})")
        for loop in sorted(now.loop_devices - before.loop_devices, key=_device):
            yield Leak("loop device", f"{loop.device} of {loop.backing_file}")
        for thread in now.threads - before.threads:
            yield Leak("thread", f"{thread.name!r}, not a daemon, still running")
        for process in sorted(now.children - before.children):
            yield Leak("process", f"{process.pid}: {process.command}")
        for number, target in sorted(now.descriptors.items()):
            if before.descriptors.get(number) != target:
                yield Leak("descriptor", f"{number}, open on {target}")

    def _wait_for_threads(self, deadline: float) -> None:
        for thread in self._look().threads - self._before.threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _wait_for_processes(self, deadline: float) -> None:
        for process in self._look().children - self._before.children:
            with suppress(OSError):
                _wait_for_end(process.pid, max(0.0, deadline - time.monotonic()))


def _device(loop: LoopDevice) -> str:
    return loop.device


def _wait_for_end(pid: int, timeout: float) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(timeout * 1000)
    finally:
        os.close(descriptor)


def _kill(process: Process) -> None:
    with suppress(OSError):
        os.kill(process.pid, signal.SIGKILL)
        _wait_for_end(process.pid, GRACE)
        logger.warning("ended process %d, which a test left behind", process.pid)


def _adopt_orphans(adopt: bool) -> bool:
    """Have orphaned descendants come to this process, or no longer; whether they did before."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        former = ctypes.c_int(0)
        libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(former), 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)
    except (OSError, AttributeError):
        return False
    return bool(former.value)
