"""Makes a plan of what an inspection found: what is done about each finding, and what is refused, with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.inspection import kinds
from volumehost.inspection.context import Context
from volumehost.inspection.kinds import KINDS
from volumehost.inspection.repairing.obstacles import Obstacles, users_of_device
from volumehost.inspection.repairing.of_devices import device_repair
from volumehost.inspection.repairing.of_pods import obstacles_of_pod, pod_repair
from volumehost.inspection.repairing.plan import Action, Plan, Reason, Refusal, Repair, Step
from volumehost.inspection.report import DeviceReport, Finding, Inspection, Severity
from volumehost.inspection.tree import EntryKind

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint

_GIVE_PODS = "give the pods with --pods, or wait until they are mounted"

#: Kinds that are dealt with as a part of their pod when that is abandoned.
_PARTS_OF_PODS = frozenset(
    {kinds.HALF_REMOVED, kinds.CORRUPTED_MOUNT, kinds.DAMAGED_RECORD, kinds.STACKED_MOUNTS, kinds.TEMPORARY_FILE}
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be repaired: kinds of findings, and pods by name or uid; all where nothing is chosen."""

    kinds: frozenset[str] = frozenset()
    pods: tuple[str, ...] = ()

    def takes(self, finding: Finding, label: str) -> bool:
        """Whether the finding is chosen."""
        if self.kinds and finding.kind not in self.kinds:
            return False
        return not self.pods or (bool(finding.pod_uid) and self.takes_pod(finding.pod_uid, label))

    def takes_pod(self, uid: str, label: str) -> bool:
        """Whether the pod is chosen."""
        return not self.pods or any(name in (uid, label, label.rpartition("/")[2]) for name in self.pods)


def make_plan(
    context: Context, inspection: Inspection, *, plugins: Collection[str] = (), choice: Choice | None = None
) -> Plan:
    """The plan for what the inspection found.

    :param plugins: names of the plugins that are there to be used.
    """
    planner = _Planner(context, inspection, plugins, choice if choice is not None else Choice())
    planner.work()
    return Plan(tuple(planner.repairs), tuple(planner.refusals))


class _Planner:
    """Goes through the findings: pods first, then what they leave behind, then all else."""

    def __init__(self, context: Context, inspection: Inspection, plugins: Collection[str], choice: Choice) -> None:
        self.repairs: list[Repair] = []
        self.refusals: list[Refusal] = []
        self._context = context
        self._inspection = inspection
        self._plugins = plugins
        self._pods = {pod.uid: pod for pod in inspection.pods}
        self._labels = {pod.uid: pod.label for pod in inspection.pods}
        self._findings = [
            each for each in inspection.findings if choice.takes(each, self._labels.get(each.pod_uid, ""))
        ]
        self._obstacles = Obstacles(context, self._affected())
        self._done: set[str] = set()
        self._by_kind: dict[str, Callable[[Finding], None]] = {
            kinds.LEAKED_MOUNT: self._leaked_mount,
            kinds.LEAKED_LOOP_DEVICE: self._loop,
            kinds.SUBPATH_LEFTOVER: self._subpath,
            kinds.STALE_RECORD: self._stale_record,
            kinds.TEMPORARY_FILE: self._file,
            kinds.STALE_SOCKET: self._file,
            kinds.HALF_REMOVED: self._half_removed,
        }

    def _affected(self) -> list[MountPoint]:
        """Every mount that may have to go."""
        context, index = self._context, self._context.survey.index
        places = [pod.path for pod in context.survey.pods if context.state_of(pod.uid).abandoned]
        places += [
            each.subject
            for each in self._findings
            if each.kind in (kinds.LEAKED_MOUNT, kinds.LEAKED_DEVICE_MOUNT, kinds.SUBPATH_LEFTOVER)
        ]
        places += [device.path for device in self._inspection.devices]
        return [mount for place in dict.fromkeys(places) for mount in index.below(place)]

    def work(self) -> None:
        """Fill ``repairs`` and ``refusals``."""
        abandoned = [each for each in self._findings if each.kind in (kinds.ORPHANED_POD, kinds.GONE_POD)]
        for finding in abandoned:
            self._pod(finding)
        freed = {repair.pod_uid for repair in self.repairs}
        leaked = {each.subject: each for each in self._findings if each.kind == kinds.LEAKED_DEVICE_MOUNT}
        for device in self._inspection.devices:
            released = bool(device.used_by) and freed.issuperset(device.used_by) and bool(device.mounts)
            if released or device.path in leaked:
                self._device(device, leaked.get(device.path))
        for finding in self._findings:
            if self._is_open(finding):
                self._by_kind.get(finding.kind, self._leave)(finding)

    def _is_open(self, finding: Finding) -> bool:
        """Whether nothing above has dealt with it."""
        if finding.kind in (kinds.ORPHANED_POD, kinds.GONE_POD, kinds.LEAKED_DEVICE_MOUNT):
            return False
        pod = self._pods.get(finding.pod_uid)
        return not (pod is not None and pod.state.abandoned and finding.kind in _PARTS_OF_PODS)

    # --- pods and devices -------------------------------------------------------------------------------------------

    def _pod(self, finding: Finding) -> None:
        pod = self._pods.get(finding.pod_uid)
        if pod is None:
            return
        reasons = list(obstacles_of_pod(self._context, pod, self._obstacles))
        if reasons:
            self._refuse(finding, reasons)
        else:
            self._add(finding.kind, pod.uid, pod_repair(self._context, pod, self._plugins), pod.uid)

    def _device(self, device: DeviceReport, finding: Finding | None) -> None:
        """A device that no pod has, or none will have when the pods before it are gone."""
        wanted = self._context.may_be_wanted
        reasons = [Reason(f"it may be wanted: {wanted}", _GIVE_PODS)] if wanted else []
        mounts = self._context.survey.index.below(device.path)
        reasons += [reason for mount in mounts for reason in self._obstacles.of_mount(mount)]
        if finding is None:
            finding = Finding(kinds.LEAKED_DEVICE_MOUNT, Severity.WARNING, device.path)
        if reasons:
            self._refuse(finding, reasons)
        else:
            self._add(finding.kind, device.path, device_repair(self._context, device, self._plugins))

    # --- single things ----------------------------------------------------------------------------------------------

    def _leaked_mount(self, finding: Finding) -> None:
        if finding.severity is Severity.INFO:
            return  # whoever mounts the pod the next time takes it over
        if finding.pod_uid:
            advice = finding.advice or f"if nobody needs it: umount {finding.subject}"
            self._refuse(finding, [Reason("its pod is known, and may want it", advice), *_told(finding)])
            return
        mounts = self._context.survey.index.below(finding.subject)
        reasons = [reason for mount in mounts for reason in self._obstacles.of_mount(mount)]
        reasons += [reason for mount in mounts for reason in self._obstacles.of_memory(mount)]
        if reasons:
            self._refuse(finding, reasons)
        else:
            steps = [Step(Action.UNMOUNT, mount.path) for mount in reversed(mounts) if mount.path not in self._done]
            self._done |= {mount.path for mount in mounts}
            self._add(finding.kind, finding.subject, steps)

    def _loop(self, finding: Finding) -> None:
        users = users_of_device(finding.subject)
        if users:
            self._refuse(finding, users)
            return
        loop = next(each for each in self._context.survey.loops if each.device == finding.subject)
        step = Step(Action.DETACH, loop.device, place=loop.backing_file)
        self._add(finding.kind, loop.device, [step])

    def _subpath(self, finding: Finding) -> None:
        mounts = self._context.survey.index.below(finding.subject)
        entry = next(each for pod in self._context.survey.pods for each in pod.subpaths if each.path == finding.subject)
        reasons = [reason for mount in mounts for reason in self._obstacles.of_mount(mount)]
        is_data = entry.entry.kind is EntryKind.FILE and entry.entry.size > 0
        if is_data or entry.content:
            reasons.append(Reason(f"{finding.subject} holds data", "move away what matters, and remove the rest"))
        if reasons:
            self._refuse(finding, reasons)
            return
        steps = [Step(Action.UNMOUNT, mount.path) for mount in reversed(mounts)]
        steps.append(Step(Action.REMOVE_SUBPATH, finding.subject, pod_uid=finding.pod_uid))
        self._add(finding.kind, finding.subject, steps, finding.pod_uid)

    def _half_removed(self, finding: Finding) -> None:
        if finding.pod_uid:
            self._refuse(finding, [Reason("its pod is known, and may want it", finding.advice)])
            return
        device = self._device_in(finding.subject)
        if device is not None:
            self._add(finding.kind, finding.subject, device_repair(self._context, device, self._plugins))
        else:
            self._add(finding.kind, finding.subject, [Step(Action.REMOVE_DEVICE, finding.subject)])

    def _device_in(self, directory: str) -> DeviceReport | None:
        """The volume whose record is left there, if its plugin is there to ask the driver to unstage it.

        A driver may have it staged although nothing is mounted: it died at it, or was not answered.
        """
        for device in self._inspection.devices:
            entry = self._context.devices_by_mount.get(device.path)
            if entry is not None and entry.directory == directory and device.handle and device.plugin in self._plugins:
                return device
        return None

    def _stale_record(self, finding: Finding) -> None:
        if any((finding.subject, "") in step.records for repair in self.repairs for step in repair.steps):
            return
        step = Step(Action.END_RECORDS, finding.subject, records=((finding.subject, ""),))
        self._add(finding.kind, finding.subject, [step])

    def _file(self, finding: Finding) -> None:
        self._add(finding.kind, finding.subject, [Step(Action.REMOVE_FILE, finding.subject)])

    def _leave(self, finding: Finding) -> None:
        """What only people can put right; what is merely worth knowing is no refusal."""
        if finding.severity is not Severity.INFO:
            self._refuse(finding, [Reason(KINDS[finding.kind].meaning, finding.advice), *_told(finding)])

    # --- results ----------------------------------------------------------------------------------------------------

    def _add(self, kind: str, subject: str, steps: Iterable[Step], uid: str = "") -> None:
        found = tuple(steps)
        if found:
            self.repairs.append(Repair(kind, subject, found, uid, self._labels.get(uid, "")))

    def _refuse(self, finding: Finding, reasons: Sequence[Reason]) -> None:
        texts = tuple(reason.text for reason in reasons)
        advice = next((reason.advice for reason in reasons if reason.advice), "")
        label = self._labels.get(finding.pod_uid, "")
        self.refusals.append(Refusal(finding.kind, finding.subject, texts, advice, finding.pod_uid, label))


def _told(finding: Finding) -> Iterator[Reason]:
    return (Reason(text, finding.advice) for text in finding.evidence)
