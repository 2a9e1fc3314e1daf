"""A walk over a directory tree by descriptors, children before their parent, that no link can lead astray.

Ownership and disk usage walk trees that containers write to while the walk runs: entries are swapped for links,
vanish, or nest deeper than a process may open files. Nothing here resolves a path: each directory is opened relative
to its parent without following links, and only ``max_open`` of them are open at one time; a parent that had to be
closed is opened again as ``..`` of its child and must be the same directory as before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from volumehost.errors import UnsafePathError
from volumehost.sdk.directories import DIRECTORY_FLAGS

#: Called for each entry with (descriptor of its directory, name, lstat); True to walk into it (directories only).
VisitEntry = Callable[[int, str, os.stat_result], bool]
#: Called with a directory's descriptor when it was opened; False leaves it out, unread.
EnterDirectory = Callable[[int], bool]
#: Called with a directory's descriptor when everything below it was visited.
LeaveDirectory = Callable[[int], None]
#: Called with (relative path, error) when an entry cannot be examined or a directory not be read; raises to stop.
WalkFailed = Callable[[str, OSError], None]

MAX_OPEN_DIRECTORIES = 64


@dataclass(slots=True)
class _Frame:
    """One directory on the way down; ``fd`` is -1 while it is closed for want of descriptors."""

    name: str
    fd: int
    identity: tuple[int, int]
    pending: list[str] = field(default_factory=list)


class TreeWalk:
    """One walk over the tree below an open directory; the root itself gets ``leave`` as the last."""

    def __init__(
        self,
        *,
        visit: VisitEntry,
        failed: WalkFailed,
        enter: EnterDirectory | None = None,
        leave: LeaveDirectory | None = None,
        max_open: int = MAX_OPEN_DIRECTORIES,
    ) -> None:
        self._visit = visit
        self._failed = failed
        self._enter = enter
        self._leave = leave
        self._max_open = max(2, max_open)
        self._frames: list[_Frame] = []
        self._first_open = 0

    def run(self, root_fd: int) -> None:
        """Walk. The descriptor stays the caller's.

        :raises UnsafePathError: a directory was moved elsewhere while the walk was inside it.
        """
        try:
            self._push("", os.dup(root_fd))
            while self._frames:
                frame = self._frames[-1]
                if frame.pending:
                    self._descend(frame, frame.pending.pop())
                else:
                    if self._leave is not None:
                        self._leave(frame.fd)
                    self._pop()
        finally:
            for frame in self._frames:
                if frame.fd >= 0:
                    os.close(frame.fd)
            self._frames.clear()

    def path(self, name: str = "") -> str:
        """The relative path of the directory that the walk is in, or of an entry in it, for messages."""
        names = [frame.name for frame in self._frames if frame.name]
        return "/".join([*names, name] if name else names) or "."

    def _descend(self, frame: _Frame, name: str) -> None:
        try:
            fd = os.open(name, DIRECTORY_FLAGS, dir_fd=frame.fd)
        except OSError as error:
            self._failed(self.path(name), error)
            return
        if self._enter is not None and not self._enter(fd):
            os.close(fd)
            return
        self._push(name, fd)

    def _push(self, name: str, fd: int) -> None:
        frame = _Frame(name, fd, (-1, -1))
        self._frames.append(frame)
        status = os.fstat(fd)
        frame.identity = (status.st_dev, status.st_ino)
        if len(self._frames) - self._first_open > self._max_open:
            shallowest = self._frames[self._first_open]
            os.close(shallowest.fd)
            shallowest.fd = -1
            self._first_open += 1
        try:
            self._read(frame)
        except OSError as error:
            self._failed(self.path(), error)

    def _read(self, frame: _Frame) -> None:
        with os.scandir(frame.fd) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as error:
                    self._failed(self.path(entry.name), error)
                    continue
                if self._visit(frame.fd, entry.name, status):
                    frame.pending.append(entry.name)

    def _pop(self) -> None:
        child = self._frames[-1]
        if len(self._frames) > 1 and self._frames[-2].fd < 0:
            self._reopen(self._frames[-2], child)
        self._frames.pop()
        os.close(child.fd)

    def _reopen(self, parent: _Frame, child: _Frame) -> None:
        fd = os.open("..", DIRECTORY_FLAGS, dir_fd=child.fd)
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != parent.identity:
            os.close(fd)
            raise UnsafePathError(
                "the directory was moved elsewhere meanwhile",
                action=f"walking through {self.path()}",
                subject=self.path(),
            )
        parent.fd = fd
        self._first_open -= 1
