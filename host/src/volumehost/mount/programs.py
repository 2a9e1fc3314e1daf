"""Runs the system's programs (mkfs, fsck, blkid, mount helpers) with a deadline and without hanging on their pipes.

Called by what formats, checks and resizes devices, and by the mounter for filesystems that need a helper.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from volumehost.errors import MountError

if TYPE_CHECKING:
    import subprocess

logger = logging.getLogger(__name__)

# Where administration programs lie that a user's PATH often lacks.
_ADMINISTRATION: Final = "/usr/local/sbin:/usr/sbin:/sbin"
_OUTPUT_LIMIT: Final = 256 * 1024
_REAP_SECONDS: Final = 1.0


class MissingProgramError(MountError):
    """A program that the machine should have is not installed."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended: its exit status (negative for a signal) and what it wrote, apart."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def output(self) -> str:
        """Both streams, for error texts."""
        return "\n".join(text for text in (self.stdout.strip(), self.stderr.strip()) if text)

    def describe(self) -> str:
        """How it ended, in words."""
        if self.timed_out:
            return "it did not end in time and was killed"
        if self.returncode < 0:
            return f"killed by signal {-self.returncode}"
        return f"exit status {self.returncode}"


class Programs:
    """Finds and runs programs.

    :param search_path: directories in the form of PATH, in place of PATH and the usual directories for administration.
    """

    def __init__(self, search_path: str | None = None) -> None:
        self._search_path = search_path

    def find(self, name: str) -> str | None:
        """The program's file, None when it is not installed."""
        import shutil

        return shutil.which(name, path=self._path())

    def run(self, command: Sequence[str], *, timeout: float | None) -> ProgramResult:
        """Run it in a session of its own with an empty stdin; after ``timeout`` seconds the whole session is killed.

        Output goes to files in memory: a daemon that the program leaves behind may keep its streams open for ever
        (MOUNT-15).

        :raises MissingProgramError: it is not installed.
        :raises MountError: it cannot be started.
        """
        # Loading it takes milliseconds, and most hosts never need it.
        import subprocess

        executable = self.find(command[0])
        if executable is None:
            raise MissingProgramError(
                f"the program {command[0]} is not installed", action=f"run {command[0]}", subject=command[0]
            )
        out_fd, err_fd = _memory_file("stdout"), _memory_file("stderr")
        try:
            try:
                process = subprocess.Popen(
                    [executable, *command[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=out_fd,
                    stderr=err_fd,
                    start_new_session=True,
                    env={**os.environ, "PATH": self._path(), "LC_ALL": "C"},
                )
            except OSError as error:
                raise MountError(
                    error.strerror or str(error), action=f"run {executable}", subject=command[0], errno=error.errno
                ) from error
            returncode, timed_out = _wait(process, timeout)
            return ProgramResult(returncode, _text(out_fd), _text(err_fd), timed_out)
        finally:
            os.close(out_fd)
            os.close(err_fd)

    def _path(self) -> str:
        if self._search_path is not None:
            return self._search_path
        return f"{os.environ.get('PATH', os.defpath)}:{_ADMINISTRATION}"


def _memory_file(name: str) -> int:
    return os.memfd_create(name, os.MFD_CLOEXEC)


def _text(fd: int) -> str:
    return os.pread(fd, _OUTPUT_LIMIT, 0).decode(errors="replace")


def _wait(process: subprocess.Popen[bytes], timeout: float | None) -> tuple[int, bool]:
    import subprocess

    try:
        return process.wait(timeout), False
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    except BaseException:
        # An interrupt while waiting: leave nothing running behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise
    try:
        return process.wait(_REAP_SECONDS), True
    except subprocess.TimeoutExpired:
        logger.warning("process %d does not end, it is stuck in the kernel", process.pid)
        return -int(signal.SIGKILL), True
