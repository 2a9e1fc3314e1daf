"""Findings about single volumes, of pods and of the node: bare, half removed, dead, hung, with files underneath."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from volumehost.inspection.context import Context
from volumehost.inspection.findings.advice import command_on
from volumehost.inspection.kinds import (
    BARE_DIRECTORY,
    CORRUPTED_MOUNT,
    DAMAGED_RECORD,
    FILES_UNDER_MOUNT,
    HALF_REMOVED,
    HUNG_MOUNT,
    STACKED_MOUNTS,
    TEMPORARY_FILE,
)
from volumehost.inspection.pod_directories import VolumeEntry
from volumehost.inspection.records import VOL_DATA, VOL_DATA_TEMPORARY
from volumehost.inspection.report import (
    DeviceReport,
    Finding,
    PodReport,
    PodState,
    RootKind,
    Severity,
    VolumeReport,
)
from volumehost.inspection.tree import EntryKind
from volumehost.spec import BLOCK_MODE


def findings_of_volumes(
    context: Context, pods: Iterable[PodReport], devices: Iterable[DeviceReport]
) -> Iterator[Finding]:
    """All of them."""
    for pod in pods:
        entry = context.entries.get(pod.uid)
        entries = {(volume.plugin, volume.name): volume for volume in entry.volumes} if entry is not None else {}
        for volume in pod.volumes:
            yield from _of_volume(context, pod, volume, entries.get((volume.plugin, volume.name)))
    for device in devices:
        yield from _of_mounts(context, device.path, device.state, device.mounts, None)
    yield from _of_device_directories(context, devices)


def _of_volume(context: Context, pod: PodReport, volume: VolumeReport, entry: VolumeEntry | None) -> Iterator[Finding]:
    yield from _of_mounts(context, volume.mount_path, volume.state, volume.mounts, pod)
    if entry is None:
        if volume.state == "recorded" and pod.state is PodState.KNOWN and volume.witnesses.disagreements:
            evidence = volume.witnesses.disagreements
            yield Finding(
                BARE_DIRECTORY, Severity.ERROR, volume.path, pod.uid, evidence, advice=_mount_again(context, pod)
            )
        return
    yield from _of_record(context, pod, entry)
    files = entry.content if not volume.mounts and context.is_mount_promised(entry) and entry.mode != BLOCK_MODE else ()
    if files:
        yield Finding(
            FILES_UNDER_MOUNT,
            Severity.ERROR,
            volume.mount_path,
            pod.uid,
            (f"it holds {', '.join(files)}", "nothing is mounted there", *volume.witnesses.disagreements),
            advice="move the files away if they matter, then remove them",
        )
    elif volume.state == "bare":
        evidence = volume.witnesses.disagreements or ("the volume always lies on a mount, and nothing is mounted",)
        yield Finding(
            BARE_DIRECTORY, Severity.ERROR, volume.mount_path, pod.uid, evidence, advice=_mount_again(context, pod)
        )
    elif volume.state == "leftover" and context.is_mount_promised(entry):
        yield from _half_removed(context, pod, volume, entry)


def _half_removed(context: Context, pod: PodReport, volume: VolumeReport, entry: VolumeEntry) -> Iterator[Finding]:
    if entry.content:  # of an orphan: told with it
        return
    what = []
    if entry.record is not None:
        there = "is" if entry.at_mount_path.kind is not EntryKind.MISSING else "is not"
        what.append(f"the directory 'mount' {there} there, {VOL_DATA} is {entry.record.word}")
    else:
        what.append("the directory is empty")
    advice = "" if pod.state.abandoned else _mount_again(context, pod)
    yield Finding(HALF_REMOVED, Severity.WARNING, volume.path, pod.uid, (*what, "nothing is mounted"), advice=advice)


def _mount_again(context: Context, pod: PodReport) -> str:
    if context.survey.kind is RootKind.KUBELET:
        return "restart the pod: its volumes are set up anew with it"
    if not pod.name:
        return ""
    return f"{command_on('mount', pod)} mounts it again"


# --- what is mounted ------------------------------------------------------------------------------------------


def _of_mounts(
    context: Context, path: str, state: str, mounts: tuple[object, ...], pod: PodReport | None
) -> Iterator[Finding]:
    uid = pod.uid if pod is not None else ""
    advice = _mount_again(context, pod) if pod is not None and not pod.state.abandoned else ""
    if state in ("corrupted", "hung") and mounts:
        answer = context.survey.answers.get(path)
        told = answer.problem if answer is not None else ""
        if state == "corrupted":
            yield Finding(CORRUPTED_MOUNT, Severity.ERROR, path, uid, (f"asked, it says: {told}",), advice=advice)
        else:
            wait = "end or wake its daemon, or wait for its server"
            yield Finding(HUNG_MOUNT, Severity.ERROR, path, uid, (told,), advice=wait)
    stacked = context.survey.index.at(path)
    if len(stacked) > 1:
        lines = tuple(f"{mount.fs_type} from {mount.source}" for mount in stacked)
        yield Finding(STACKED_MOUNTS, Severity.WARNING, path, uid, lines, advice="see which one is meant")


# --- records --------------------------------------------------------------------------------------------------


def _of_record(context: Context, pod: PodReport, volume: VolumeEntry) -> Iterator[Finding]:
    record = volume.record
    if record is not None and record.exists and record.problem:
        yield Finding(
            DAMAGED_RECORD,
            Severity.WARNING,
            f"{volume.path}/{VOL_DATA}",
            pod.uid,
            (record.problem, _fallback(context, volume)),
        )
    if volume.temporary and not context.survey.at_work:
        yield Finding(TEMPORARY_FILE, Severity.INFO, f"{volume.path}/{VOL_DATA_TEMPORARY}", pod.uid)


def _fallback(context: Context, volume: VolumeEntry) -> str:
    """Which other witness tells the driver and the handle (BR-56)."""
    for mount in context.survey.index.at(volume.mount_path):
        for other in context.survey.index.showing_the_same(mount):
            device = context.devices_by_mount.get(other.path)
            if device is not None and device.record is not None and not device.record.problem:
                return f"the record of the volume's global mount tells: {device.driver}, {device.record.handle}"
    journal = context.record_of(volume.pod_uid, volume.plugin, volume.name)
    if journal is not None and journal.get("v"):
        return f"the journal tells: {journal['v']}"
    if context.survey.kind is RootKind.OWN:
        return f"the store may tell, if it has the persistent volume {volume.name}"
    return f"the API may tell, if it has the persistent volume {volume.name}"


def _of_device_directories(context: Context, devices: Iterable[DeviceReport]) -> Iterator[Finding]:
    states = {device.path: device for device in devices}
    for entry in context.survey.devices:
        report = states[entry.mount_path]
        record = entry.record
        place = f"{entry.directory}/data" if entry.mode == BLOCK_MODE else entry.directory
        if record is not None and record.exists and record.problem:
            others = (f"pods that have it tell: {', '.join(report.used_by)}",) if report.used_by else ()
            yield Finding(DAMAGED_RECORD, Severity.WARNING, f"{place}/{VOL_DATA}", "", (record.problem, *others))
        if entry.temporary and not context.survey.at_work:
            yield Finding(TEMPORARY_FILE, Severity.INFO, f"{place}/{VOL_DATA_TEMPORARY}")
        if report.state != "leftover":
            continue
        if entry.content and entry.mode != BLOCK_MODE:
            yield Finding(
                FILES_UNDER_MOUNT,
                Severity.ERROR,
                entry.mount_path,
                "",
                (f"it holds {', '.join(entry.content)}", "nothing is mounted there"),
                advice="move the files away if they matter, then remove them",
            )
        elif not context.may_be_wanted:
            evidence = ("no pod has it, and nothing is mounted", f"{VOL_DATA} is {record.word}" if record else "")
            yield Finding(HALF_REMOVED, Severity.WARNING, entry.directory, "", tuple(filter(None, evidence)))
