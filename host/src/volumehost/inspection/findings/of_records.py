"""Findings about records and other files of the host: damaged, stale, cut short, kept; sockets; driver processes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from volumehost.inspection.context import Context
from volumehost.inspection.kinds import (
    ATTACHMENT,
    DAMAGED_RECORD,
    KEPT_COPY,
    STALE_PROCESS,
    STALE_RECORD,
    STALE_SOCKET,
    TEMPORARY_FILE,
    UNREADABLE,
)
from volumehost.inspection.processes import command_of, is_alive
from volumehost.inspection.report import DeviceReport, Finding, PodReport, Severity
from volumehost.node.journal.format import FAILED, UNMOUNTED, text_of


def findings_of_records(
    context: Context, pods: Iterable[PodReport], devices: Iterable[DeviceReport]
) -> Iterator[Finding]:
    """All of them."""
    yield from _journal(context)
    pods = list(pods)
    yield from _devices(context, pods, devices)
    yield from _attachments(context, pods)
    yield from _drivers(context)
    files = context.survey.files
    yield from (Finding(TEMPORARY_FILE, Severity.INFO, path) for path in files.temporary if not context.survey.at_work)
    yield from (
        Finding(KEPT_COPY, Severity.INFO, path, advice="remove it when nobody needs it any more") for path in files.kept
    )
    yield from (Finding(STALE_SOCKET, Severity.INFO, path, "", ("a connection is refused",)) for path in files.sockets)
    yield from unreadable_places(context.survey.problems)


def unreadable_places(problems: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Each place once, and nothing below a place that could not be looked at for the same reason."""
    told: set[tuple[str, str]] = set()
    for path, why in sorted(set(problems)):
        if not any((str(above), why) in told for above in PurePosixPath(path).parents):
            told.add((path, why))
            denied = why == os.strerror(errno.EACCES)
            yield Finding(UNREADABLE, Severity.WARNING, path, "", (why,), advice="run it as root" if denied else "")


def _journal(context: Context) -> Iterator[Finding]:
    journal = context.survey.journal
    if journal is None or not journal.exists or journal.intact:
        return
    fallback = "the mount table and the directories tell instead"
    advice = "use the newer version that wrote it" if journal.newer_version else ""
    yield Finding(
        DAMAGED_RECORD,
        Severity.ERROR,
        context.survey.layout.journal_file(),
        "",
        (*journal.notes, fallback),
        advice=advice,
    )


def _devices(context: Context, pods: list[PodReport], devices: Iterable[DeviceReport]) -> Iterator[Finding]:
    """What the journal says of volumes as a whole, against what there is."""
    mounted = {device.path for device in devices if device.mounts}
    used = {text_of(record, "v") for records in context.records_by_pod.values() for record in records}
    used |= {f"{volume.plugin}/{volume.driver}^{volume.handle}" for pod in pods for volume in pod.volumes}
    for name, record in context.device_records.items():
        state, attached = text_of(record, "dev"), text_of(record, "att")
        if not name or name in used or context.survey.at_work:
            continue
        on_node = bool(state) and state not in (UNMOUNTED, FAILED)
        if attached:
            yield Finding(
                ATTACHMENT,
                Severity.INFO,
                name,
                "",
                (f"the journal says {attached}; no pod here has it",),
                advice="the next command that mounts or unmounts a pod detaches it",
            )
        if on_node and text_of(record, "dmpath") not in mounted:
            evidence = (f"the journal says {state}; nothing is mounted, and no pod has it",)
            yield Finding(STALE_RECORD, Severity.INFO, name, "", evidence)


def _attachments(context: Context, pods: list[PodReport]) -> Iterator[Finding]:
    """Attachments of the store whose volume no pod here has, and none is about to have."""
    here = {volume.name for pod in pods for volume in pod.volumes}
    if context.survey.at_work or context.waiting_pods:
        return
    for attachment in context.survey.known.attachments:
        if attachment.volume and attachment.volume not in here:
            what = f"the store has it of volume {attachment.volume} to node {attachment.node}, by {attachment.attacher}"
            advice = "if it is this node, the next command that mounts or unmounts a pod detaches it"
            yield Finding(ATTACHMENT, Severity.INFO, attachment.name, "", (what, "no pod here has it"), advice=advice)


def _drivers(context: Context) -> Iterator[Finding]:
    for path, why in context.survey.drivers.damaged:
        yield Finding(DAMAGED_RECORD, Severity.INFO, path, "", (why, "it is written anew when the driver runs again"))
    for process in context.survey.drivers.processes:
        same_boot = process.boot_id == context.survey.boot_id
        if not same_boot or not is_alive(process.pid, process.start_time):
            continue
        if is_alive(process.keeper_pid, process.keeper_start_time) or context.survey.at_work:
            continue
        program = f"process {process.pid} ({command_of(process.pid)}) of the driver {process.driver}"
        evidence = (f"{program} runs, and its keeper (process {process.keeper_pid}) is gone",)
        if process.keep_alive:
            advice = "mounts need it alive: the next command that needs the driver takes it over"
        else:
            advice = f"'volumehost drivers show {process.driver} --start' puts that in order"
        severity = Severity.INFO if process.keep_alive else Severity.WARNING
        yield Finding(STALE_PROCESS, severity, f"{process.pid}", "", evidence, advice=advice)
