"""Inspects a root directory, this host's or a kubelet's: the entry of this room for the command line and programs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

from volumehost.inspection.context import Context
from volumehost.inspection.device_reports import device_reports
from volumehost.inspection.findings.of_mounts import findings_of_mounts
from volumehost.inspection.findings.of_pods import findings_of_pods
from volumehost.inspection.findings.of_records import findings_of_records
from volumehost.inspection.findings.of_volumes import findings_of_volumes
from volumehost.inspection.kinds import (
    GONE_POD,
    LEAKED_DEVICE_MOUNT,
    LEAKED_LOOP_DEVICE,
    LEAKED_MOUNT,
    ORPHANED_POD,
)
from volumehost.inspection.pod_sources import KUBELET_POD_LOGS, read_pod_list, read_pod_logs
from volumehost.inspection.pods import KnownPods
from volumehost.inspection.probes import ANSWER_SECONDS
from volumehost.inspection.report import Finding, Inspection, RootKind, Severity
from volumehost.inspection.root import find_root
from volumehost.inspection.survey import Survey, take_survey
from volumehost.inspection.volume_reports import pod_reports

#: Where a kubelet is by default, and where the manifests of its static pods are then.
_KUBELET_ROOT = "/var/lib/kubelet"
_KUBELET_MANIFESTS = "/etc/kubernetes/manifests"

#: Findings of which it matters whether a process somewhere uses what they are about.
_USES_MATTER = frozenset({ORPHANED_POD, GONE_POD, LEAKED_MOUNT, LEAKED_DEVICE_MOUNT, LEAKED_LOOP_DEVICE})

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where pods are known from, besides the root directory itself.

    :param pods: a file with what ``kubectl get pods --all-namespaces -o json`` prints, ``-`` for standard input.
    :param static_pods: directory of static manifests; by default a kubelet's, in its usual place.
    :param pod_logs: directory of pod logs, for names; by default a kubelet's.
    """

    pods: str | None = None
    static_pods: str | None = None
    pod_logs: str | None = None


def inspect_root(
    root_dir: str, sources: Sources | None = None, *, answer_seconds: float = ANSWER_SECONDS
) -> Inspection:
    """What lies under the root directory. Changes nothing, takes no lock, and waits for nobody.

    While somebody works on it, what only one of two looks shows is left out: it was on its way.

    :param answer_seconds: how long a mount may take to answer.
    :raises ObjectNotFoundError: there is no such directory.
    :raises RootDirectoryError: it is not a root directory, or cannot be opened.
    :raises ManifestError: the list of pods cannot be read.
    :raises MountError: the mount table cannot be read.
    """
    look = Looks(root_dir, sources if sources is not None else Sources(), answer_seconds)
    return look.inspect()


class Looks:
    """Looks at one root directory as often as asked; what was given from outside is read once."""

    def __init__(self, root_dir: str, sources: Sources, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.root, self.kind = find_root(root_dir)
        usual = self.kind is RootKind.KUBELET and self.root == _KUBELET_ROOT
        directory = sources.static_pods or (_KUBELET_MANIFESTS if usual else "")
        self._static_pods = (directory, bool(sources.static_pods)) if directory else None
        self._answer_seconds = answer_seconds
        self._given = KnownPods()
        pod_logs = sources.pod_logs or (KUBELET_POD_LOGS if usual else None)
        if sources.pods is not None:
            read_pod_list(self._given, sources.pods)
        if pod_logs is not None:
            read_pod_logs(self._given, pod_logs)

    def survey(self) -> Survey:
        """One look."""
        return take_survey(
            self.root,
            self.kind,
            known=self._known,
            static_pods=self._static_pods,
            answer_seconds=self._answer_seconds,
        )

    def _known(self) -> KnownPods:
        return copy.deepcopy(self._given)

    def inspect(self, *, then: Callable[[Survey], None] = lambda _survey: None) -> Inspection:
        """One look judged, or two where somebody is at work; ``then`` gets the last survey."""
        survey = self.survey()
        found = judge(survey)
        if survey.at_work and found.findings:
            survey = self.survey()
            again = judge(survey)
            before = {finding.key for finding in found.findings}
            found = replace(again, findings=tuple(each for each in again.findings if each.key in before))
        then(survey)
        return found


def judge(survey: Survey) -> Inspection:
    """What a survey means."""
    context = Context(survey)
    pods = pod_reports(context)
    devices = device_reports(context, pods)
    findings: list[Finding] = [
        *findings_of_pods(context, pods),
        *findings_of_volumes(context, pods, devices),
        *findings_of_mounts(context, pods, devices),
        *findings_of_records(context, pods, devices),
    ]
    notes = list(survey.known.notes)
    if not survey.others.complete and any(finding.kind in _USES_MATTER for finding in findings):
        notes.append("not all mount namespaces of other processes could be looked at")
    if survey.at_work:
        notes.append(f"{survey.at_work} works on it now")
    return Inspection(
        root_dir=survey.root,
        kind=survey.kind,
        boot_id=survey.boot_id,
        at_work=survey.at_work,
        sources=tuple(survey.known.sources),
        pods=tuple(pods),
        devices=tuple(devices),
        findings=tuple(sorted(findings, key=lambda each: (_ORDER[each.severity], each.kind, each.subject))),
        notes=tuple(notes),
    )
