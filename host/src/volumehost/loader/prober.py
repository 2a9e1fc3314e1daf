"""Finds installed plugins by their entry points while the host runs. The manager asks at nearly every look-up."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import PluginError
from volumehost.loader.completeness import is_stash_of, unfinished_reason
from volumehost.loader.environment import Environment
from volumehost.loader.events import (
    NOTHING,
    DynamicPluginProber,
    NoProber,
    ProbeEvent,
    ProbeOperation,
    ProbeResult,
)
from volumehost.loader.import_path import add_paths_of, site_directories, user_site_directory
from volumehost.loader.installed import InstalledDistribution

if TYPE_CHECKING:
    from volumehost.loader.scan import Distribution

__all__ = [
    "GROUP",
    "DynamicPluginProber",
    "EntryPointProber",
    "NoProber",
    "ProbeEvent",
    "ProbeOperation",
    "ProbeResult",
]

#: The entry point group of volume plugins.
GROUP = "volumehost.plugins"

#: Seconds for which a removed distribution may be waited for while pip keeps a copy aside.
_STASH_LIMIT = 120.0
#: ``.pth`` files can lead to directories, each of them once; this only bounds a loop.
_MAX_PATH_ROUNDS = 8


class EntryPointProber:
    """Reports distributions with entry points of a group: installed, reinstalled, removed.

    Nothing is imported here. A probe with nothing changed costs one ``stat`` for each ``sys.path`` entry, however
    many distributions are installed (BR-14). Not safe for threads: the manager calls it under its lock.

    :param group: the entry point group.
    :param path: directories to scan instead of ``sys.path``; ``.pth`` files are then left alone, and it is the
        caller's business that the directories can be imported from.
    :param clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        *,
        group: str = GROUP,
        path: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.group = group
        self._clock = clock
        self._follow_site = path is None
        self._environment = Environment(group, path, clock)
        self._reported: dict[str, InstalledDistribution] = {}
        #: Distributions that are being installed or replaced: why, and since when.
        self._waiting: dict[str, tuple[str, float]] = {}
        #: A probe began and did not come to its end: what it saw was not reported.
        self._interrupted = False

    def init(self) -> None:
        """Start to watch the user's site directory too, which may be created later."""
        if self._follow_site:
            user_site = user_site_directory()
            self._environment.watch([user_site] if user_site else [])

    def probe(self) -> ProbeResult:
        """What changed since the last call; each event once."""
        if not self._waiting and not self._interrupted and not self._environment.changed():
            return NOTHING
        self._interrupted = True
        generation = self._environment.generation
        found = self._scan()
        if any(self._is_removed(name, found) for name in self._reported):
            # A listing can miss an entry that is renamed meanwhile; two in a row do not.
            found = self._scan(force=True)
        errors: list[Exception] = []
        changed = self._changed(found, errors)
        removed = [name for name in sorted(self._reported) if self._is_removed(name, found)]
        events = [
            ProbeEvent(ProbeOperation.ADD_OR_UPDATE, name, distribution=installed)
            for name, installed in sorted(changed.items())
        ]
        events += [ProbeEvent(ProbeOperation.REMOVE, name, installed=True) for name in removed]
        self._reported.update(changed)
        for name in removed:
            del self._reported[name]
            self._waiting.pop(name, None)
        self._interrupted = False
        return ProbeResult(tuple(events), tuple(errors), changed=self._environment.generation != generation)

    @property
    def waiting(self) -> dict[str, str]:
        """Distributions with an installation that is not finished, and what is missing."""
        return {name: reason for name, (reason, _) in dict(self._waiting).items()}

    def _scan(self, *, force: bool = False) -> dict[str, Distribution]:
        """All distributions, after every directory that ``.pth`` files name was added to ``sys.path``."""
        found = self._environment.scan(force=force)
        for _ in range(_MAX_PATH_ROUNDS):
            if not self._follow_site or not self._extend_path():
                break
            found = self._environment.scan()
        return found

    def _extend_path(self) -> bool:
        added = False
        user_site = user_site_directory()
        for directory in site_directories():
            pth_files = self._environment.pth_files(directory)
            if directory == user_site and directory not in sys.path and os.path.isdir(directory):
                sys.path.append(directory)
                added = True
            added = add_paths_of(directory, pth_files) or added
        return added

    def _changed(self, found: dict[str, Distribution], errors: list[Exception]) -> dict[str, InstalledDistribution]:
        """Distributions with plugins that are complete and not reported yet in this form."""
        for name in [name for name in self._waiting if name not in found and name not in self._reported]:
            del self._waiting[name]
        changed = {}
        for name, distribution in found.items():
            if not distribution.entry_points:
                continue
            try:
                installed = InstalledDistribution.from_scan(distribution)
                if not self._must_wait(name, self._unfinished(installed)) and self._reported.get(name) != installed:
                    changed[name] = installed
            except Exception as error:  # noqa: BLE001 - one broken distribution must not stop the others
                errors.append(_unreadable(distribution, error))
        return changed

    def _unfinished(self, installed: InstalledDistribution) -> str:
        if self._reported.get(installed.name) == installed:
            return ""
        _, since = self._waiting.get(installed.name, ("", self._clock()))
        return unfinished_reason(installed, now=time.time(), waited=self._clock() - since)

    def _is_removed(self, name: str, found: dict[str, Distribution]) -> bool:
        """Whether a reported distribution has gone, or has no entry points of the group any more."""
        distribution = found.get(name)
        if distribution is not None:
            if distribution.entry_points:
                return False
            return not self._must_wait(name, self._unfinished(InstalledDistribution.from_scan(distribution)))
        entry = self._reported[name].metadata_path.rpartition("/")[2]
        if any(is_stash_of(stash, entry) for stash in self._environment.stashes()):
            self._must_wait(name, "pip is replacing it")
            return self._clock() - self._waiting[name][1] > _STASH_LIMIT
        return True

    def _must_wait(self, name: str, reason: str) -> bool:
        """Remember, or forget, that a distribution is being changed; whether it is."""
        if not reason:
            self._waiting.pop(name, None)
            return False
        _, since = self._waiting.get(name, ("", self._clock()))
        self._waiting[name] = (reason, since)
        return True


def _unreadable(distribution: Distribution, cause: Exception) -> PluginError:
    error = PluginError(
        f"its metadata cannot be read: {cause!r}",
        distribution=distribution.name,
        version=distribution.version,
        action=f"looking for plugins in {distribution.metadata_path}",
        hint=f"install it again: pip install --force-reinstall {distribution.name}",
    )
    error.__cause__ = cause
    return error
