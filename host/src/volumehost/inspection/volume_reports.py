"""Tells each volume of each pod: what is mounted, what the records say, and whether the witnesses agree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from volumehost.inspection.context import Context, Record
from volumehost.inspection.mounts import mount_facts
from volumehost.inspection.pod_directories import VolumeEntry
from volumehost.inspection.report import PodReport, VolumeReport, Witnesses
from volumehost.inspection.tree import EntryKind
from volumehost.node.journal.format import FAILED, LOST, MOUNTED, MOUNTING, UNMOUNTING, text_of
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint


def pod_reports(context: Context) -> list[PodReport]:
    """Every pod that has a directory, a record, or that a source tells of and something here is of."""
    uids = [pod.uid for pod in context.survey.pods if pod.entry.kind is EntryKind.DIRECTORY]
    uids += sorted(context.recorded_pods.difference(uids))
    return [_pod(context, uid) for uid in uids]


def _pod(context: Context, uid: str) -> PodReport:
    name = context.survey.known.name_of(uid)
    entry = context.entries.get(uid)
    volumes = [_volume(context, volume) for volume in entry.volumes] if entry is not None else []
    there = {(volume.plugin, volume.name) for volume in volumes}
    volumes += [
        _recorded(context, uid, record)
        for record in context.records_by_pod.get(uid, ())
        if (text_of(record, "plugin"), text_of(record, "inner")) not in there
    ]
    return PodReport(
        uid=uid,
        state=context.state_of(uid),
        namespace=name.namespace if name else "",
        name=name.name if name else "",
        named_by=name.source if name else "",
        volumes=tuple(volumes),
    )


# --- one volume -----------------------------------------------------------------------------------------------


def _volume(context: Context, volume: VolumeEntry) -> VolumeReport:
    mounts = context.mounts_of(volume)
    record = context.record_of(volume.pod_uid, volume.plugin, volume.name)
    place = mounts[0].path if mounts else volume.mount_path
    return VolumeReport(
        pod_uid=volume.pod_uid,
        name=volume.name,
        plugin=volume.plugin,
        mode=volume.mode,
        path=volume.path,
        mount_path=place,
        state=_state(context, volume, record, mounts),
        mounts=tuple(mount_facts(mount) for mount in mounts),
        driver=volume.record.driver if volume.record is not None else "",
        handle=volume.record.handle if volume.record is not None else "",
        witnesses=_witnesses(context, volume, record, mounts),
    )


def _state(context: Context, volume: VolumeEntry, record: Record | None, mounts: list[MountPoint]) -> str:
    if record is not None and context.survey.at_work and record.get("state") in (MOUNTING, UNMOUNTING):
        return "changing"
    if mounts:
        answer = context.survey.answers.get(mounts[-1].path)
        if answer is None or not (answer.dead or answer.hung):
            return "mounted"
        return "hung" if answer.hung else "corrupted"
    if context.state_of(volume.pod_uid).abandoned or _is_half(volume):
        return "leftover"
    if volume.mode == BLOCK_MODE:
        return "bare"
    if context.is_mount_promised(volume):
        if record is None and context.journal_tells_all:
            return "leftover"  # nobody has mounted it, or it was unmounted to the end
        return "bare"
    return "directory"


def _is_half(volume: VolumeEntry) -> bool:
    """Whether so much is missing that it cannot be a volume that was set up once and lost its mount."""
    if volume.record is None:
        return volume.entry.kind is EntryKind.MISSING
    return volume.at_mount_path.kind is EntryKind.MISSING or not volume.record.exists


def _recorded(context: Context, uid: str, record: Record) -> VolumeReport:
    """A volume of which only the journal tells; something may be mounted for it all the same."""
    path = text_of(record, "path")
    place = text_of(record, "mount") or path
    mounts = context.survey.index.at(place)
    changing = bool(context.survey.at_work) and record.get("state") in (MOUNTING, UNMOUNTING)
    return VolumeReport(
        pod_uid=uid,
        name=text_of(record, "inner"),
        plugin=text_of(record, "plugin"),
        mode=text_of(record, "mode") or FILESYSTEM_MODE,
        path=path,
        mount_path=place,
        state="changing" if changing else "mounted" if mounts else "recorded",
        mounts=tuple(mount_facts(mount) for mount in mounts),
        witnesses=Witnesses(
            journal=text_of(record, "state"),
            boot="this" if context.same_boot else "earlier",
            mount_table=_mount_table(mounts),
            directory=EntryKind.MISSING.value if path else "",
            disagreements=tuple(_disagreements(context, record, None, mounts)),
        ),
    )


# --- witnesses ------------------------------------------------------------------------------------------------


def _witnesses(context: Context, volume: VolumeEntry, record: Record | None, mounts: list[MountPoint]) -> Witnesses:
    return Witnesses(
        journal=text_of(record, "state") if record is not None else "",
        boot="" if record is None else "this" if context.same_boot else "earlier",
        mount_table=_mount_table(mounts),
        directory=volume.entry.kind.value,
        record=volume.record.word if volume.record is not None else "",
        loop_device=_loop_device(context, mounts),
        disagreements=tuple(_disagreements(context, record, volume, mounts)),
    )


def _mount_table(mounts: list[MountPoint]) -> str:
    return "stacked" if len(mounts) > 1 else "mounted" if mounts else "not mounted"


def _loop_device(context: Context, mounts: list[MountPoint]) -> str:
    """The loop device that is mounted, and its file."""
    numbers = {(mount.major, mount.minor) for mount in mounts}
    nodes = {mount.root for mount in mounts if mount.fs_type == "devtmpfs"}
    for loop in context.survey.loops:
        if (loop.major, loop.minor) in numbers or loop.device.removeprefix("/dev") in nodes:
            return f"{loop.device} on {loop.backing_file}{' (deleted)' if loop.deleted else ''}"
    return ""


def _disagreements(
    context: Context, record: Record | None, volume: VolumeEntry | None, mounts: list[MountPoint]
) -> Iterator[str]:
    state = record.get("state") if record is not None else None
    if state == MOUNTED and not context.same_boot:
        yield "the journal says mounted, in an earlier boot; no mount has survived that"
    elif state in (MOUNTED, LOST) and record is not None and record.get("is_mount") and not mounts:
        yield f"the journal says {state}, the mount table shows nothing there"
    if mounts and record is None and context.journal_tells_all:
        yield "something is mounted there, and the journal does not tell of it"
    if mounts and state == FAILED:
        yield "the journal says that the mount has failed, the mount table shows one"
    if volume is not None:
        yield from _record_disagreements(context, volume, mounts)


def _record_disagreements(context: Context, volume: VolumeEntry, mounts: list[MountPoint]) -> Iterator[str]:
    """Whether what is mounted is the volume of the record beside it."""
    record = volume.record
    if record is None or record.problem or not mounts:
        if record is not None and mounts and not record.exists:
            yield "something is mounted there, and there is no record beside it"
        return
    digest = hashlib.sha256(record.handle.encode("utf-8", "surrogatepass")).hexdigest()
    for other in context.survey.index.showing_the_same(mounts[-1]):
        device = context.devices_by_mount.get(other.path)
        if device is not None and device.driver == record.driver and device.name != digest and device.record:
            yield f"the record says {record.handle}, what is mounted there is {device.record.handle or device.name}"
