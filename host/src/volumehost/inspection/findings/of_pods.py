"""Findings about pods as a whole: orphaned, gone, of unknown origin, begun and not ended; and stray entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from volumehost.inspection.context import Context
from volumehost.inspection.findings.advice import command_on
from volumehost.inspection.kinds import (
    GONE_POD,
    ORPHANED_POD,
    SUBPATH_LEFTOVER,
    UNEXPECTED_ENTRY,
    UNFINISHED,
    UNKNOWN_POD,
)
from volumehost.inspection.pod_directories import Stray
from volumehost.inspection.report import Finding, PodReport, PodState, RootKind, Severity
from volumehost.inspection.tree import EntryKind
from volumehost.node.journal.format import LOST, MOUNTING, UNCERTAIN, UNMOUNTING, text_of

#: Lines of evidence that one finding shows at most.
LINES_SHOWN = 12


def findings_of_pods(context: Context, pods: Iterable[PodReport]) -> Iterator[Finding]:
    """All of them."""
    for pod in pods:
        if pod.state.abandoned:
            yield _abandoned(context, pod)
        elif pod.state is PodState.UNKNOWN:
            yield _unknown(context, pod)
        yield from _unfinished(context, pod)
    yield from _subpaths(context)
    yield from _unexpected(context)


def _abandoned(context: Context, pod: PodReport) -> Finding:
    evidence = []
    if pod.named_by:
        evidence.append(
            f"the {pod.named_by} call it {pod.label}"
            if pod.named_by.endswith("s")
            else f"the {pod.named_by} calls it {pod.label}"
        )
    evidence += shortened(what_is_left(context, pod))
    kind = GONE_POD if pod.state is PodState.GONE else ORPHANED_POD
    return Finding(kind, Severity.WARNING, pod.uid, pod.uid, tuple(evidence) or ("its directories are empty",))


def what_is_left(context: Context, pod: PodReport) -> Iterator[str]:
    """What lies in and below the pod's directory, a line for each thing that matters."""
    entry = context.entries.get(pod.uid)
    if entry is not None:
        for mount in context.survey.index.below(entry.path):
            yield f"mounted: {mount.path} ({mount.fs_type} from {mount.source})"
        for volume in entry.volumes:
            if volume.content and not context.survey.index.at(volume.mount_path):
                yield f"files in {volume.mount_path}: {', '.join(volume.content)}"
        yield from map(str, entry.unexpected)
    for volume_report in pod.volumes:
        if volume_report.state == "recorded":
            yield f"the journal has volume {volume_report.name}: {volume_report.witnesses.journal}"


def _unknown(context: Context, pod: PodReport) -> Finding:
    advice = "give the pods with --pods" if context.survey.kind is RootKind.KUBELET else ""
    return Finding(UNKNOWN_POD, Severity.INFO, pod.uid, pod.uid, (context.why_unknown(pod.uid),), advice=advice)


def _unfinished(context: Context, pod: PodReport) -> Iterator[Finding]:
    """What was begun by somebody who is gone; the next manager goes on with it."""
    if context.survey.at_work or context.survey.kind is RootKind.KUBELET:
        return
    if pod.state is PodState.ENDING:
        yield Finding(
            UNFINISHED,
            Severity.INFO,
            pod.uid,
            pod.uid,
            ("its workload has ended, and its volumes are not all gone",),
            advice=command_on("unmount", pod),
        )
    for record in context.records_by_pod.get(pod.uid, ()):
        state, volume = record.get("state"), text_of(record, "inner")
        if state in (MOUNTING, UNMOUNTING, UNCERTAIN, LOST) and pod.state is PodState.KNOWN:
            word = "lost with an earlier boot" if state == LOST else f"left {state}"
            error = text_of(record, "err")
            yield Finding(
                UNFINISHED,
                Severity.INFO,
                f"{pod.uid}/{volume}",
                pod.uid,
                (f"volume {volume} of pod {pod.label} was {word}{f': {error}' if error else ''}",),
                advice=f"{command_on('mount', pod)} goes on",
            )


def _subpaths(context: Context) -> Iterator[Finding]:
    """Subpaths of volumes that are gone, of pods that are known; those of others go with their pods."""
    for entry in context.entries.values():
        if context.state_of(entry.uid) is not PodState.KNOWN:
            continue
        mounted = {volume.name for volume in entry.volumes if context.mounts_of(volume) or volume.content}
        for subpath in entry.subpaths:
            if subpath.volume in mounted or any(volume.name == subpath.volume for volume in entry.volumes):
                continue
            evidence = [f"there is no volume {subpath.volume} of the pod any more"]
            if subpath.entry.kind is EntryKind.MOUNT:
                evidence.append("something is mounted there")
            evidence += [f"it holds {name}" for name in subpath.content]
            yield Finding(SUBPATH_LEFTOVER, Severity.WARNING, subpath.path, entry.uid, tuple(evidence))


def _unexpected(context: Context) -> Iterator[Finding]:
    for pod in context.survey.pods:
        if pod.entry.kind is not EntryKind.DIRECTORY:
            yield _stray(Stray(pod.path, pod.entry.kind), "")
        elif not context.state_of(pod.uid).abandoned:
            for stray in pod.unexpected:
                yield _stray(stray, pod.uid)
    for path, kind in context.survey.odd_bases:
        advice = "it is not followed: mount the directory here instead" if kind is EntryKind.LINK else "look what it is"
        yield Finding(UNEXPECTED_ENTRY, Severity.ERROR, path, "", (f"it is a {kind}, not a directory",), advice=advice)
    for path in context.survey.bases:
        for mount in context.survey.index.at(path):
            what = f"it is a mount: {mount.fs_type} from {mount.source}"
            yield Finding(UNEXPECTED_ENTRY, Severity.INFO, path, "", (what,))


def _stray(stray: Stray, uid: str) -> Finding:
    return Finding(UNEXPECTED_ENTRY, Severity.WARNING, stray.path, uid, (str(stray),), advice="look what it is")


def shortened(lines: Iterable[str]) -> list[str]:
    """At most so many lines as one finding shows; the last one counts the rest."""
    found = list(lines)
    if len(found) <= LINES_SHOWN:
        return found
    return [*found[:LINES_SHOWN], f"and {len(found) - LINES_SHOWN} more"]
