"""What lies in the registration directory now: a bounded look that never walks into data (BR-24, CSI-WATCH-03)."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

#: Levels below the directory itself that are looked at; drivers use none or one (CSI-WATCH-12).
MAX_DEPTH = 8
#: Directories that are looked at, and watched.
MAX_DIRECTORIES = 128
#: Entries in all of them together.
MAX_ENTRIES = 8192
#: A subdirectory with more entries than this holds data, not registration sockets.
MAX_SUBDIRECTORY_ENTRIES = 512


@dataclass(frozen=True, slots=True)
class Marks:
    """What tells a socket from another one that had its path before.

    The time is that of the last modification: a socket is never written to, so it stays what it was when the socket
    was made, whereas the change time moves with the first ``chmod``. Without it a new socket with the inode number of
    the one just removed would look the same.
    """

    device: int
    inode: int
    made_at: int

    @classmethod
    def of(cls, status: os.stat_result) -> Marks:
        """Those of a file."""
        return cls(status.st_dev, status.st_ino, status.st_mtime_ns)


@dataclass(slots=True)
class Found:
    """Sockets by path, directories in the order of the look, and why it is not complete, "" when it is.

    ``failed`` says that something could not be read, so that another look may show more; bounds are no failure.
    """

    sockets: dict[str, Marks] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)
    incomplete: str = ""
    failed: bool = False

    def note(self, problem: str) -> None:
        """Keep the first thing that was left out."""
        self.incomplete = self.incomplete or problem


def is_hidden(name: str) -> bool:
    """Whether an entry is none of ours, file or directory (CSI-WATCH-05, -06 improved)."""
    return name.startswith(".")


def look(root: str, entering: Callable[[str], None]) -> Found:
    """Everything of interest below ``root``, nearest first.

    Links to sockets count as sockets (CSI-WATCH-07); links to directories and other filesystems are not entered.

    :param entering: called before a directory is read, so that nothing made meanwhile is missed (CSI-WATCH-02); when
        it raises an OSError, that directory is left out.
    :raises OSError: the root cannot be read.
    """
    found = Found()
    entering(root)
    device = os.stat(root).st_dev
    entries = _entries(root, MAX_ENTRIES)
    left = MAX_ENTRIES - len(entries)
    if left < 0:
        found.note(f"{root} holds more than {MAX_ENTRIES} entries: what lies beyond them is not seen")
    found.directories.append(root)
    pending = deque((each, 1) for each in _take(entries[:MAX_ENTRIES], found))
    while pending:
        directory, depth = pending.popleft()
        if len(found.directories) >= MAX_DIRECTORIES or left <= 0:
            found.note(f"only the {len(found.directories)} directories nearest to {root} are looked at")
            break
        if depth > MAX_DEPTH:
            found.note(f"{directory} lies too deep to be looked at")
            continue
        try:
            if os.lstat(directory).st_dev != device:
                continue
            entering(directory)
            entries = _entries(directory, MAX_SUBDIRECTORY_ENTRIES)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            found.note(f"{directory} cannot be read: {error.strerror}")
            found.failed = True
            continue
        left -= len(entries)
        if len(entries) > MAX_SUBDIRECTORY_ENTRIES:
            found.note(
                f"{directory} holds data, not registration sockets: more than {MAX_SUBDIRECTORY_ENTRIES} entries"
            )
            continue
        found.directories.append(directory)
        pending.extend((each, depth + 1) for each in _take(entries, found))
    return found


def marks_of(path: str) -> Marks | None:
    """The marks of the socket at that path, links followed; None when there is no socket."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return Marks.of(status) if stat.S_ISSOCK(status.st_mode) else None


def _entries(directory: str, limit: int) -> list[os.DirEntry[str]]:
    """At most one more than ``limit``."""
    with os.scandir(directory) as entries:
        return list(islice(entries, limit + 1))


def _take(entries: Iterable[os.DirEntry[str]], found: Found) -> Iterator[str]:
    """Keep the sockets among the entries; yields the directories."""
    for entry in entries:
        if is_hidden(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield entry.path
        elif not entry.is_file(follow_symlinks=False):
            marks = marks_of(entry.path)
            if marks is not None:
                found.sockets[entry.path] = marks
