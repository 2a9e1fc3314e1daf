"""Counts what a call changes outside of its process, step by step, and ends the process before a chosen one.

For the process behind ``plugin_process``: mounts, and the system calls that Python reports to audit hooks.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from volumehost.testing.conformance.faults import PassingMounter

if TYPE_CHECKING:
    from volumehost.host_services import MountInterface

_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: Audit events of calls that change something outside of the process.
_EVENTS = frozenset(
    {
        "fcntl.ioctl",
        "os.chmod",
        "os.chown",
        "os.link",
        "os.mkdir",
        "os.posix_spawn",
        "os.remove",
        "os.removexattr",
        "os.rename",
        "os.rmdir",
        "os.setxattr",
        "os.symlink",
        "os.system",
        "os.truncate",
        "os.utime",
        "socket.connect",
        "sqlite3.connect",
        "subprocess.Popen",
    }
)


class Steps:
    """Counts steps while ``counting``, and ends the process before the one that was chosen."""

    def __init__(self, kill_at: int | None) -> None:
        self.kill_at = kill_at
        self.taken: list[str] = []
        self.counting = False

    def take(self, what: str) -> None:
        """A step is about to be taken."""
        if self.counting:
            self.end()
            self.taken.append(what)

    def end(self) -> None:
        """The present step is over; the process too, if the next one is the chosen one."""
        if len(self.taken) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook: Python's own account of what it is about to do."""
        if event in _EVENTS:
            self.take(f"{event} {_shown(arguments)}")
        elif event == "open" and len(arguments) > 2 and isinstance(arguments[2], int) and arguments[2] & _CHANGING:
            self.take(f"open {_shown(arguments)}")


def _shown(arguments: tuple[Any, ...]) -> str:
    first = arguments[0] if arguments else ""
    return os.fsdecode(first) if isinstance(first, (str, bytes)) else ""


class SteppingMounter(PassingMounter):
    """A mounter each of whose changes is a step."""

    def __init__(self, mounter: MountInterface, steps: Steps) -> None:
        super().__init__(mounter)
        self._steps = steps

    def before(self, action: str, target: str) -> None:
        """A mount or unmount is about to be made."""
        self._steps.take(f"{action} {target}")
