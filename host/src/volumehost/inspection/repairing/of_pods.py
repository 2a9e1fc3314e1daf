"""The steps that take away what is left of a pod that nobody wants, and what forbids them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from volumehost.inspection.context import LOCAL_PLUGINS, Context
from volumehost.inspection.pod_directories import CSI, PodEntry, VolumeEntry
from volumehost.inspection.repairing.obstacles import Obstacles
from volumehost.inspection.repairing.plan import Action, Reason, Step, told_step
from volumehost.inspection.tree import EntryKind
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint
    from volumehost.inspection.report import PodReport, VolumeReport


_MOVE_AWAY: Final = "move away what matters, and remove the rest"


def obstacles_of_pod(context: Context, pod: PodReport, obstacles: Obstacles) -> Iterator[Reason]:
    """Why the pod is left alone: live users, files, content that would be lost; none when it may go."""
    entry = context.entries.get(pod.uid)
    if entry is None:
        return
    index = context.survey.index
    places = set()
    for volume in entry.volumes:
        mounts = context.mounts_of(volume)
        places |= {mount.path for mount in mounts}
        yield from obstacles.of_volume(volume, mounts)
        if volume.content and not mounts and not volume.payload:
            yield Reason(f"there are files in {volume.mount_path}: {', '.join(volume.content)}", _MOVE_AWAY)
        if volume.stray:
            yield Reason(f"there are files in {volume.path}: {', '.join(volume.stray)}", _MOVE_AWAY)
    for mount in index.below(entry.path):
        if mount.path not in places:
            yield from obstacles.of_mount(mount)
            yield from obstacles.of_memory(mount)
    for subpath in entry.subpaths:
        if subpath.content or (subpath.entry.kind is EntryKind.FILE and subpath.entry.size):
            what = (
                f"there are files in it: {', '.join(subpath.content)}"
                if subpath.content
                else "it is a file with content"
            )
            yield Reason(f"{subpath.path}: {what}", _MOVE_AWAY)
    for stray in (*entry.unexpected, *entry.plugin_files):
        if stray.holds_data:
            yield Reason(str(stray), _MOVE_AWAY)


def pod_repair(context: Context, pod: PodReport, plugins: Collection[str]) -> list[Step]:
    """Unmount deepest first, the volumes through their plugins, then remove what is empty, then end the records."""
    steps: list[Step] = []
    entry = context.entries.get(pod.uid)
    if entry is not None:
        steps += _unmount_stray(context, entry)
        for volume in entry.volumes:
            steps += _volume_steps(context, volume, plugins)
    there = {volume.path for volume in entry.volumes} if entry is not None else set()
    steps += [_recorded_step(volume, plugins) for volume in pod.volumes if volume.mounts and volume.path not in there]
    if entry is not None:
        steps.append(Step(Action.REMOVE_POD, entry.path, pod_uid=pod.uid))
    records = _records_of(context, pod.uid)
    if records:
        steps.append(Step(Action.END_RECORDS, pod.uid, pod_uid=pod.uid, records=records))
    return steps


def _unmount_stray(context: Context, entry: PodEntry) -> Iterator[Step]:
    """What is mounted for subpaths, inside volumes, or where nothing should be; the dead first of all (ORPHAN-10)."""
    index = context.survey.index
    volumes = {mount.path for volume in entry.volumes for mount in context.mounts_of(volume)}
    below = list(reversed(index.below(entry.path)))
    dead = [mount for mount in below if _is_dead(context, mount)]
    alive = [mount for mount in below if not _is_dead(context, mount) and mount.path not in volumes]
    for mount in (*dead, *alive):
        yield Step(Action.UNMOUNT, mount.path, pod_uid=entry.uid)


def _is_dead(context: Context, mount: MountPoint) -> bool:
    answer = context.survey.answers.get(mount.path)
    return answer is not None and answer.dead


def _volume_steps(context: Context, volume: VolumeEntry, plugins: Collection[str]) -> Iterator[Step]:
    mounts = context.mounts_of(volume)
    driver = volume.record.driver if volume.record is not None else ""
    has_record = volume.record is not None and volume.record.exists
    is_block = volume.mode == BLOCK_MODE
    if is_block or (volume.plugin not in LOCAL_PLUGINS and (mounts or (volume.plugin == CSI and has_record))):
        yield told_step(
            Action.UNMAP if is_block else Action.UNPUBLISH,
            volume.path,
            plugins,
            plugin=volume.plugin,
            driver=driver,
            pod_uid=volume.pod_uid,
            name=volume.name,
            place=mounts[0].path if mounts else context.block_places(volume)[0] if is_block else volume.mount_path,
        )
        return
    for mount in reversed(mounts):
        if not _is_dead(context, mount):
            yield Step(Action.UNMOUNT, mount.path, pod_uid=volume.pod_uid)
    if volume.payload and not mounts:
        yield Step(Action.REMOVE_PAYLOAD, volume.path, pod_uid=volume.pod_uid)


def _recorded_step(volume: VolumeReport, plugins: Collection[str]) -> Step:
    """Takes away a volume of which only the journal and the mount table tell."""
    action = Action.UNMAP if volume.mode == BLOCK_MODE else Action.UNPUBLISH
    return told_step(
        action,
        volume.path,
        plugins,
        plugin=volume.plugin,
        driver=volume.driver,
        pod_uid=volume.pod_uid,
        name=volume.name,
        place=volume.mount_path,
    )


def _records_of(context: Context, uid: str) -> tuple[tuple[str, str], ...]:
    journal = context.survey.journal
    if journal is None or journal.newer_version:
        return ()
    return tuple(sorted(key for key in journal.entries if key[1] == uid))
