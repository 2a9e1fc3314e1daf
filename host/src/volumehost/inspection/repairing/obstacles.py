"""What stands in the way of an unmount: processes, copies in other namespaces, content that would be lost, silence.

One look at all processes serves a whole plan.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from volumehost.inspection.context import Context
from volumehost.inspection.mounts import DELETED, MEMORY_FS_TYPES
from volumehost.inspection.pod_directories import COPYING_PLUGINS, NAMES_SHOWN
from volumehost.inspection.processes import command_of, pids
from volumehost.inspection.repairing.plan import Reason
from volumehost.mount.busy import find_holders_of
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint
    from volumehost.inspection.pod_directories import VolumeEntry

#: How long all processes may be looked at, in seconds.
_SCAN_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 5.0
_HOLDERS_SHOWN: Final = 3
_COPY_AND_UNMOUNT: Final = "copy what matters, then unmount it by hand"
#: What a new filesystem has by itself.
_NOTHING: Final = frozenset({"lost+found"})


class Obstacles:
    """Answers why a mount cannot be taken away; made for the mounts that a plan is about."""

    def __init__(self, context: Context, mounts: Iterable[MountPoint]) -> None:
        self._context = context
        self._runner = DeadlineRunner()
        self._holders = find_holders_of(mounts, limit=_HOLDERS_SHOWN, seconds=_SCAN_SECONDS)

    def of_mount(self, mount: MountPoint) -> Iterator[Reason]:
        """Why the mount must stay; none when it may go."""
        context = self._context
        if mount.path.endswith(DELETED):
            path = mount.path.removesuffix(DELETED)
            yield Reason(f"no path leads to {path} any more", "it goes when its mount namespace ends")
        elif context.survey.index.is_hidden(mount) and context.survey.index.at(mount.path)[-1] is mount:
            yield Reason(f"another mount lies over {mount.path}", "unmount what lies over it first")
        answer = context.survey.answers.get(mount.path)
        if answer is not None and answer.hung:
            yield Reason(f"{mount.path} does not answer: {answer.problem}", "wake or end its server or daemon")
        for user in (*self._holders.get(mount.mount_id, ()), *context.survey.others.holding(mount)):
            yield Reason(f"{mount.path} is in use by {user}", "end what uses it")

    def of_volume(self, volume: VolumeEntry, mounts: Iterable[MountPoint]) -> Iterator[Reason]:
        """Why a volume's mounts must stay, its content that would be lost with them included."""
        for mount in mounts:
            yield from self.of_mount(mount)
            if volume.plugin in COPYING_PLUGINS:
                continue
            lost = list(self.of_memory(mount))
            yield from lost
            if not lost and volume.record is not None and volume.record.ephemeral:
                content = self._content(mount)
                if content:
                    text = f"the volume at {mount.path} lives only as long as its pod, and holds {content}"
                    yield Reason(text, _COPY_AND_UNMOUNT)

    def of_memory(self, mount: MountPoint) -> Iterator[Reason]:
        """Why a mount must stay whose content lies in memory, and nowhere else."""
        if mount.fs_type not in MEMORY_FS_TYPES or self._is_elsewhere(mount):
            return
        content = self._content(mount)
        if content:
            text = f"{mount.path} lies in memory, so its content ends with the mount: {content}"
            yield Reason(text, _COPY_AND_UNMOUNT)

    def _is_elsewhere(self, mount: MountPoint) -> bool:
        """Whether the filesystem is mounted at a place outside of the root too, so that its content stays."""
        index = self._context.survey.index
        others = index.showing_device(mount.major, mount.minor)
        return any(not f"{other.path}/".startswith(f"{index.root}/") for other in others)

    def _content(self, mount: MountPoint) -> str:
        """First names of what is in it; that it cannot be read when it cannot."""
        answer = self._context.survey.answers.get(mount.path)
        if answer is not None and answer.problem:
            return ""  # dead: there is nothing to lose; silent: told already
        try:
            names = self._runner.run(os.listdir, mount.path, timeout=_ANSWER_SECONDS, what=f"list {mount.path}")
        except (OSError, DeadlineExceededError) as error:
            return f"what cannot be read ({error})"
        found = sorted(set(names) - _NOTHING)
        more = f" and {len(found) - NAMES_SHOWN} more" if len(found) > NAMES_SHOWN else ""
        return f"{', '.join(found[:NAMES_SHOWN])}{more}"


def users_of_device(device: str) -> list[Reason]:
    """Processes that have the device open, at most a few."""
    found: list[Reason] = []
    for pid in pids():
        if device in _opened_by(pid):
            found.append(Reason(f"process {pid} ({command_of(pid)}) has {device} open", "end what has it open"))
        if len(found) == _HOLDERS_SHOWN:
            break
    return found


def _opened_by(pid: int) -> Iterator[str]:
    """What the process has open."""
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):  # closed meanwhile
            yield os.readlink(f"{directory}/{name}")
