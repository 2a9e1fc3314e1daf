"""What a test process holds of the machine at a moment: mounts, loop devices, threads, children, descriptors.

The leak guard compares two such moments. Linux only; everything comes from ``/proc`` and ``/sys``.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from volumehost.errors import VolumeHostError
from volumehost.mount.loop import LoopDevice, list_attached
from volumehost.mount.mountinfo import read_mount_table

_CAPTURED_DESCRIPTORS = 3  # pytest points 0, 1 and 2 elsewhere at will
_START_TIME_FIELD = 19  # counted from the state


class Mount(NamedTuple):
    """One mount, without its number: that is another one in another mount namespace."""

    path: str
    source: str
    fs_type: str


class Process(NamedTuple):
    """A child of this process; the start time tells it from a later one with the same number."""

    pid: int
    started: str
    command: str


@dataclass(frozen=True, slots=True)
class ProcessState:
    """One moment. ``mounts`` are in the kernel's order; ``descriptors`` maps the number to what it is open on."""

    mounts: tuple[Mount, ...]
    loop_devices: frozenset[LoopDevice]
    threads: frozenset[threading.Thread]
    children: frozenset[Process]
    descriptors: dict[int, str]

    @classmethod
    def now(cls, *, mounts_below: str = "", loops_below: str) -> ProcessState:
        """Look.

        :param mounts_below: count only mounts at or below this directory, "" for all.
        :param loops_below: count only loop devices of files below this directory: they belong to the whole machine.
        """
        return cls(
            mounts=tuple(mount for mount in _mounts() if _is_below(mount.path, mounts_below)),
            loop_devices=frozenset(loop for loop in list_attached() if _is_below(loop.backing_file, loops_below)),
            threads=frozenset(thread for thread in threading.enumerate() if not thread.daemon),
            children=frozenset(running_children()),
            descriptors=open_descriptors(),
        )


def _mounts() -> list[Mount]:
    with suppress(VolumeHostError):
        return [Mount(each.path, each.source, each.fs_type) for each in read_mount_table()]
    return []


def _is_below(path: str, directory: str) -> bool:
    return not directory or path == directory or path.startswith(directory.rstrip("/") + "/")


def open_descriptors() -> dict[int, str]:
    """Number to target of every open descriptor but standard input, output and error."""
    found: dict[int, str] = {}
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            number = int(name)
            if number >= _CAPTURED_DESCRIPTORS:
                with suppress(OSError):  # the one that listed the directory is closed by now
                    found[number] = os.readlink(f"/proc/self/fd/{name}")
    return found


def running_children() -> list[Process]:
    """Children of all threads that have not ended."""
    return [process for process, state in _children() if state != "Z"]


def ended_children() -> list[Process]:
    """Children that have ended and that nobody has waited for."""
    return [process for process, state in _children() if state == "Z"]


def _children() -> list[tuple[Process, str]]:
    found = []
    for pid in _child_pids():
        with suppress(OSError, IndexError, ValueError):
            found.append(_read_process(pid))
    return found


def _child_pids() -> list[int]:
    pids: list[int] = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                pids.extend(int(pid) for pid in file.read().split())
    return sorted(pids)


def _read_process(pid: int) -> tuple[Process, str]:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        head, _, rest = file.read().rpartition(") ")
    fields = rest.split()
    with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
        command = " ".join(file.read().split("\0")).strip()
    return Process(pid, fields[_START_TIME_FIELD], command or head.partition("(")[2]), fields[0]
