"""What ``/proc`` tells: whether a process still is the one that a record names, and whether a kubelet is at work."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from typing import Final

#: Sockets below its root directory on which a kubelet listens, whatever its program is called.
_KUBELET_SOCKETS: Final = ("pod-resources/kubelet.sock", "device-plugins/kubelet.sock")

#: Programs that are a kubelet, alone or with others.
_KUBELET_PROGRAMS: Final = ("kubelet", "kubelite", "hyperkube")
_KUBELET_ROOT: Final = "/var/lib/kubelet"

#: Longest path of a unix socket, in bytes.
_LONGEST_SOCKET: Final = 107


def is_alive(pid: int, start_time: int) -> bool:
    """Whether the process runs that has this pid and began at this time (in clock ticks since the boot)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0] not in "ZX" and int(fields[19]) == start_time
    except (OSError, ValueError, IndexError):
        return False


def command_of(pid: int) -> str:
    """The name of the process's program, ``?`` when it is not known."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip() or "?"
    except OSError:
        return "?"


def kubelet_at_work(root: str) -> str:
    """Who the kubelet is that works on the root directory: ``process 812 (kubelet)``; "" when none does."""
    for name in _KUBELET_SOCKETS:
        if is_listened_to(f"{root}/{name}"):
            return f"a kubelet, which listens on {root}/{name}"
    for pid in pids():
        if command_of(pid) in _KUBELET_PROGRAMS and os.path.realpath(_root_dir_of(pid)) == root:
            return f"process {pid} ({command_of(pid)})"
    return ""


def pids() -> Iterator[int]:
    """Every process."""
    with contextlib.suppress(OSError):
        yield from sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())


def _root_dir_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = os.fsdecode(file.read()).split("\0")
    except OSError:
        return ""
    for number, argument in enumerate(arguments):
        name, equals, value = argument.lstrip("-").partition("=")
        if name == "root-dir" and argument.startswith("-"):
            return value if equals else "".join(arguments[number + 1 : number + 2])
    return _KUBELET_ROOT


def is_listened_to(path: str) -> bool | None:
    """Whether somebody listens on the unix socket; None for what is no socket, or cannot be told.

    Asked by a connection that is closed at once.
    """
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return None
        directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        short = f"/proc/self/fd/{directory}/{os.path.basename(path)}"
        address = path if len(os.fsencode(path)) <= _LONGEST_SOCKET else short
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)
            connection.connect(address)
    except BlockingIOError:
        return True  # so busy that connections wait
    except OSError as error:
        return False if error.errno == errno.ECONNREFUSED else None
    finally:
        os.close(directory)
    return True
