"""Watches the directories on ``sys.path`` for changes and re-reads only what changed. The prober owns one."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from volumehost.loader.scan import (
    Distribution,
    group_marker,
    list_directory,
    metadata_entries,
    read_entry,
    read_zip_entry,
    zip_entries,
)

_Stamp = tuple[int, ...]

#: Seconds within which a second change can leave a directory's times as they are: clock ticks of the kernel, and
#: filesystems that keep whole seconds.
_TICK = 0.05
_COARSE_TICK = 2.0
#: Seconds after which a directory's times are old without any doubt, and new metadata is no longer being written.
_OLD = 10.0
_YOUNG_METADATA = 600.0


class _Directory:
    """One entry of the path: what was in it when it was last listed."""

    __slots__ = ("entries", "first_seen", "pth_files", "settled", "stamp", "stashes", "watched")

    def __init__(self, stamp: _Stamp, first_seen: float) -> None:
        self.stamp = stamp
        self.first_seen = first_seen
        self.settled = False
        self.entries: dict[str, tuple[_Stamp, Distribution]] = {}
        self.watched: dict[str, _Stamp] = {}
        self.pth_files: list[str] = []
        self.stashes: list[str] = []


class Environment:
    """The installed distributions on a path, kept up to date at the cost of one ``stat`` per path entry.

    A directory's times alone do not do: they can be set back, and two changes can share a tick. So a directory
    counts as unchanged when inode, change time (which nobody can set) and modification time are the same, and it
    is listed again until a tick has passed since its times were first seen.

    :param path: directories to watch instead of ``sys.path``.
    :param clock: a monotonic clock, in seconds.
    """

    def __init__(
        self, group: str, path: Sequence[str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._group = group
        self._marker = group_marker(group)
        self._path = None if path is None else list(path)
        self._clock = clock
        self._extra: tuple[str, ...] = ()
        self._directories: dict[str, _Directory] = {}
        self._seen_path: list[str] = []
        self._stamps: list[tuple[str, _Stamp]] = []
        self._watched: list[tuple[str, _Stamp]] = []
        self._unsettled = True
        #: Counts the scans that found something changed: a directory, the path, an entry.
        self.generation = 0

    def watch(self, directories: Sequence[str]) -> None:
        """Watch directories besides the path, for what may appear in them."""
        self._extra = tuple(directories)

    def changed(self) -> bool:
        """Whether anything may have changed since the last scan."""
        if self._unsettled or self._seen_path != (sys.path if self._path is None else self._path):
            return True
        stat = os.stat
        for directory, stamp in self._stamps:
            try:
                info = stat(directory)
            except (OSError, ValueError):
                if stamp:
                    return True
            else:
                if (info.st_mtime_ns, info.st_ctime_ns, info.st_ino) != stamp:
                    return True
        return bool(self._watched) and any(_stamp(path) != stamp for path, stamp in self._watched)

    def scan(self, *, force: bool = False) -> dict[str, Distribution]:
        """Every distribution by name, the first copy on the path, with its entry points of the group.

        :param force: list every directory again, whatever its times say.
        """
        seen_path = list(sys.path if self._path is None else self._path)
        path = [location for location in seen_path if _is_text(location)]
        known, self._directories = self._directories, {}
        found: dict[str, Distribution] = {}
        for location in dict.fromkeys([*path, *self._extra]):
            directory = self._directories[location] = self._update(location, known.get(location), force=force)
            if location in path:
                for distribution in _newest_first(directory.entries):
                    found.setdefault(distribution.name, distribution)
        if seen_path != self._seen_path or not _same(self._directories, known):
            self.generation += 1
        self._seen_path = seen_path
        self._stamps = [(location or os.curdir, each.stamp) for location, each in self._directories.items()]
        self._watched = [item for each in self._directories.values() for item in each.watched.items()]
        self._unsettled = not all(each.settled for each in self._directories.values())
        return found

    def pth_files(self, location: str) -> list[str]:
        """Names of the ``.pth`` files in a directory, as of the last scan."""
        directory = self._directories.get(location)
        return directory.pth_files if directory else []

    def stashes(self) -> list[str]:
        """Names under which pip keeps metadata that it is replacing, as of the last scan."""
        return [name for directory in self._directories.values() for name in directory.stashes]

    def _update(self, location: str, known: _Directory | None, *, force: bool) -> _Directory:
        stamp = _stamp(location or os.curdir)
        now = self._clock()
        if known is not None and known.stamp == stamp:
            unchanged = known.settled and not any(_stamp(path) != seen for path, seen in known.watched.items())
            if unchanged and not force:
                return known
            directory = _Directory(stamp, known.first_seen)
        else:
            directory = _Directory(stamp, now)
        self._list(location, directory, known)
        directory.settled = _is_settled(stamp, now - directory.first_seen)
        return directory

    def _list(self, location: str, directory: _Directory, known: _Directory | None) -> None:
        names = list_directory(location)
        reader = read_zip_entry if names is None else read_entry
        names = zip_entries(location) if names is None else names
        for entry in metadata_entries(names, location):
            # The first listing takes no stamps: it has nothing to compare with, and the program is starting.
            stamp = _stamp(f"{location or os.curdir}/{entry}") if known is not None else ()
            before = known.entries.get(entry) if known is not None else None
            if before is None or not stamp or before[0] != stamp:
                distribution = reader(location, entry, self._group, self._marker)
            else:
                distribution = before[1]
            directory.entries[entry] = (stamp, distribution)
            self._watch_if_young(distribution.metadata_path, directory)
        for name in names:
            if name.endswith(".pth"):
                directory.pth_files.append(name)
            elif name.startswith("~") and name.endswith((".dist-info", ".egg-info")):
                directory.stashes.append(name)

    def _watch_if_young(self, metadata_path: str, directory: _Directory) -> None:
        """Watch metadata that may still get its entry points: writing them does not touch the directory above."""
        if not directory.stamp or time.time() - directory.stamp[0] / 1e9 > _YOUNG_METADATA:
            return
        if metadata_path.endswith(".dist-info") and not os.path.exists(f"{metadata_path}/RECORD"):
            stamp = _stamp(metadata_path)
            if stamp and time.time() - stamp[0] / 1e9 < _YOUNG_METADATA:
                directory.watched[metadata_path] = stamp


def _same(directories: dict[str, _Directory], known: dict[str, _Directory]) -> bool:
    """Whether two scans of the same path found the same."""
    if directories.keys() != known.keys():
        return False
    for location, directory in directories.items():
        before = known[location]
        if directory is before:
            continue
        if directory.stamp != before.stamp or directory.watched != before.watched:
            return False
        found = {entry: distribution.entry_points for entry, (_, distribution) in directory.entries.items()}
        if found != {entry: distribution.entry_points for entry, (_, distribution) in before.entries.items()}:
            return False
    return True


def _is_text(location: object) -> bool:
    return isinstance(location, str)  # Python ignores other entries of sys.path too


def _stamp(path: str) -> _Stamp:
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def _is_settled(stamp: _Stamp, seen_for: float) -> bool:
    """Whether a later change is certain to show in the stamp."""
    if not stamp:
        return True
    if time.time() - max(stamp[0], stamp[1]) / 1e9 > _OLD:
        return True
    coarse = stamp[0] % 1_000_000_000 == 0 and stamp[1] % 1_000_000_000 == 0
    return seen_for > (_COARSE_TICK if coarse else _TICK)


def _newest_first(entries: dict[str, tuple[_Stamp, Distribution]]) -> list[Distribution]:
    """The distributions of one directory; of two versions side by side the one written last comes first."""
    distributions = [distribution for _, distribution in entries.values()]
    if len({distribution.name for distribution in distributions}) < len(distributions):
        distributions.sort(key=lambda each: _stamp(each.metadata_path), reverse=True)
    return distributions
