"""Processes that are known by more than their number: a pid is used again, pid with start time and boot is not.

Whoever signals a process of another lifetime goes through here, so that none is ever hit by a recycled pid.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """``start_time`` is in clock ticks since the boot that ``boot_id`` names."""

    pid: int
    start_time: int
    boot_id: str


def boot_id() -> str:
    """Names this boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def identify(pid: int) -> ProcessIdentity | None:
    """The process that has this pid now; None when there is none, or only its exit status is left (a zombie)."""
    fields = _stat(pid)
    if fields is None or fields[0] in "ZX":
        return None
    return ProcessIdentity(pid, int(fields[19]), boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether that very process still runs."""
    return identity.boot_id == boot_id() and identify(identity.pid) == identity


@contextlib.contextmanager
def opened(identity: ProcessIdentity) -> Iterator[int | None]:
    """A descriptor of that very process (pidfd: readable once it ends), None when it has ended."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except (ProcessLookupError, ValueError):
        yield None
        return
    try:
        # Looked at after opening: what the descriptor refers to cannot change any more.
        yield descriptor if is_alive(identity) else None
    finally:
        os.close(descriptor)


def send_signal(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal that very process; False when it has ended."""
    with opened(identity) as descriptor:
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
    return True


def wait_for_end(identity: ProcessIdentity, timeout: float) -> bool:
    """Wait at most ``timeout`` seconds for its end; whether it has ended."""
    with opened(identity) as descriptor:
        if descriptor is None:
            return True
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(max(0.0, timeout) * 1000))


def group_members(leader: int, mark: bytes) -> list[ProcessIdentity]:
    """The processes of a group, dead leader or not, that carry ``mark`` in their environment (``NAME=value``).

    The mark proves that the group is still the one that was meant, and not a later one of that number.
    """
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdecimal():
            continue
        fields = _stat(int(entry))
        if fields is None or fields[0] in "ZX" or int(fields[2]) != leader:
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
            if mark in file.read().split(b"\0"):
                found.append(ProcessIdentity(int(entry), int(fields[19]), boot_id()))
    return found


def _stat(pid: int) -> list[str] | None:
    """The fields of ``/proc/<pid>/stat`` from the state on; the name before them may hold blanks and brackets."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
