"""Begins to mount a pod's volumes and waits for them; the volume manager's half for pods that come."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError, VolumesFailedError, WaitTimeoutError
from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner, in_seconds
from volumehost.node.execution.lanes import lane_of_pod
from volumehost.node.execution.pending import OperationKey
from volumehost.node.journal.format import texts_of
from volumehost.node.populating.attach_limit import LIMIT_EXCEEDED, is_exhausted, limit_message
from volumehost.node.populating.claims import ClaimPendingError
from volumehost.node.restart.mount_facts import mounted_paths
from volumehost.node.state.states import Need

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.node.assembly import NodeParts
    from volumehost.node.populating.populator import PodRecord
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.status.records import PodStatus, VolumeStatus

logger = logging.getLogger(__name__)

#: Seconds until volumes that could not be resolved are tried again: the first time, and at most.
RESOLVE_SECONDS = 0.5
RESOLVE_MAXIMUM_SECONDS = 30.0

#: How long until a volume on which something runs is looked at again, to be refreshed then, in seconds.
REFRESH_SECONDS = 0.5

#: How long a plugin may take to tell of the node's limit, in seconds.
ASK_SECONDS = 2.0


class PodMounting:
    """Mounts pods with the parts of a manager."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._actual = parts.services.actual
        self._claims = parts.claims
        self._runner = DeadlineRunner()

    def begin(self, pod: Pod, *, at_once: bool = False) -> None:
        """Enter what the pod wants and start what is missing; content that plugins refresh is refreshed (POP-16).

        :param at_once: what failed and waits for its next attempt is tried now (BR-53).
        :raises FailedPreconditionError: the pod is being unmounted.
        """
        if self.begin_all((pod,), at_once=at_once):
            raise self._unmounting(pod)

    def begin_all(self, pods: Iterable[Pod], *, at_once: bool = False) -> list[Pod]:
        """The same for many pods, which takes less time than one after the other; returns those being unmounted.

        What they all want is started together: with one write to the journal, and by one thread as long as that is
        quick.
        """
        parts, unmounting = self._parts, []
        with parts.services.desired.pods.all_as_objects():
            for pod in pods:
                if parts.populator.has_ended(pod.metadata.uid):
                    unmounting.append(pod)
                else:
                    self._enter(pod, at_once=at_once)
            parts.reconciler.run()
        return unmounting

    def _enter(self, pod: Pod, *, at_once: bool) -> None:
        parts = self._parts
        record = parts.populator.add(pod)
        if at_once:
            for volume in parts.services.desired.volumes_of_pod(pod.metadata.uid):
                parts.pending.reset(OperationKey(volume, pod.metadata.uid))
            self._claims.try_now(record)
        self._begin(record)

    def _begin(self, record: PodRecord) -> None:
        parts, uid = self._parts, record.uid
        self._look_after(record, RESOLVE_SECONDS)
        for volume in parts.services.desired.refreshed_of_pod(uid):
            self._actual.mark_remount_required(volume, uid)
        self.notice_lost_mounts(uid)
        parts.reconciler.look_at_uses(uid)

    def followed(self) -> list[str]:
        """UIDs of the pods with volumes that plugins refresh, or that lead to claims and drivers."""
        desired = self._parts.services.desired
        return [record.uid for record in self._parts.populator.records() if desired.follows(record.uid)]

    def sync(self, uids: Iterable[str] | None = None) -> None:
        """What the kubelet does at each pod sync: refresh what plugins refresh, and follow claims and drivers (POP-16).

        :param uids: of the pods; by default all that :meth:`followed` tells of. Others are not looked at.
        """
        for uid in self.followed() if uids is None else uids:
            fresh = self._parts.populator.refresh(uid)
            if fresh is not None:
                self._begin(fresh)
                self._parts.reconciler.run()

    def refresh(self, uid: str, volumes: Iterable[str]) -> None:
        """What these volumes of the pod are made of has changed: refresh them, or try again what lacked it (BR-53).

        :param volumes: their names in the pod.
        """
        names, pending = frozenset(volumes), self._parts.pending
        uses = self._parts.services.desired.uses_of_pod(uid)
        keys = [OperationKey(use.volume, uid) for use in uses if not names.isdisjoint(use.outer_names)]
        entries = [pending.find(key) for key in keys]
        if any(entry is not None and entry.running for entry in entries):
            # What runs may have read what was there before, and would be taken for the refresh.
            self._parts.later(REFRESH_SECONDS, lambda: self.refresh(uid, names))
            return
        for key in keys:
            pending.reset(key)
        self.sync((uid,))

    def wait_all(self, uids: Sequence[str], timeout: float) -> list[str]:
        """Wait until every used volume of these pods is mounted; returns the UIDs of those that were not in time."""
        clock = self._parts.services.clock
        deadline, late = clock() + timeout, []
        for uid in reversed(uids):  # the last one is ready last, so that there are few to wait for
            ready = functools.partial(self.is_ready, uid)
            if not ready() and not self._parts.waits.wait((uid,), ready, max(0.0, deadline - clock())):
                late.append(uid)
        self._parts.services.journal.flush()
        return late[::-1]

    def wait(self, pod: Pod, timeout: float, attempts: int | None) -> PodStatus:
        """Wait until every used volume is mounted; see ``VolumeManager.wait_for_pod``."""
        from volumehost.node.explaining.explain import explain_live

        uid = pod.metadata.uid
        settled = self._parts.waits.wait(
            (uid,), lambda: self.is_ready(uid) or self._is_hopeless(uid, attempts), timeout
        )
        ready = self.is_ready(uid)
        record = self._parts.populator.record(uid)
        if not ready and record is not None:
            self._record_problems(record)  # controllers may have said more since it was resolved
        self._parts.services.journal.flush()  # what the caller is told now is on record, should the process be killed
        status = self._parts.status.of_pod(pod)
        if ready:
            return status
        if record is None:
            raise self._unmounting(pod)
        told = explain_live(self._parts, pod)
        missing = [volume for volume in told.volumes if volume.sequence]
        details = told.details()
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        text = f"unmounted volumes=[{' '.join(sorted(volume.volume for volume in missing))}]"
        exhausted = self._exhausted(uid)
        if exhausted:
            details += [f"{LIMIT_EXCEEDED}: {line}" for line in exhausted]
            self._tell_exhausted(pod, exhausted)
        if settled:
            raise VolumesFailedError(text, details=details, action=f"mounting pod {name}", subject=name)
        raise WaitTimeoutError(
            f"{text} after {in_seconds(timeout)}",
            details=details,
            action=f"waiting for the volumes of pod {name}",
            subject=name,
            hint="they are tried again the next time",
        )

    def _exhausted(self, uid: str) -> list[str]:
        """Of the volumes that wait, those for which the node has no attachment left (VM-07, CSI-PLUG-25)."""
        found = []
        for use in self._parts.services.desired.uses_of_pod(uid):
            need = self._actual.check(use.volume, uid, attachable=use.attachable)
            if need is Need.ATTACH and self._is_exhausted(use):
                found.append(limit_message(use))
        return found

    def _is_exhausted(self, use: VolumeUse) -> bool:
        what = f"the limit of {use.plugin.name}"
        try:
            return self._runner.run(is_exhausted, use, timeout=ASK_SECONDS, what=what)
        except DeadlineExceededError:
            return False

    def _tell_exhausted(self, pod: Pod, lines: list[str]) -> None:
        recorder = self._parts.services.recorder()
        if recorder is not None:
            recorder.event(pod, "Warning", LIMIT_EXCEEDED, "; ".join(lines))

    def is_ready(self, uid: str) -> bool:
        """Whether every volume that the pod uses is mounted, and refreshed if it wanted that and it did not fail."""
        record = self._parts.populator.record(uid)
        if record is None or record.errors:
            return False
        volumes = self._parts.services.desired.volumes_of_pod(uid)
        return all(self._is_usable(name, uid) for name in self._actual.lacking(volumes, uid))

    def _is_usable(self, volume: str, uid: str) -> bool:
        """A refresh that failed is tried again, and status tells of it; what is mounted stays usable meanwhile."""
        need = self._actual.state_of(volume, uid)
        if need is not Need.REMOUNT:
            return need is Need.NOTHING
        entry = self._parts.pending.find(OperationKey(volume, uid))
        return entry is not None and not entry.running and entry.backoff.attempts > 0

    def notice_lost_mounts(self, uid: str) -> None:
        """What was a mount point and no longer is, or is dead, has to be set up again (BR-58, BR-64)."""
        mounts = [mount for mount in self._actual.mounts_of_pod(uid) if mount.is_mount]
        if not mounts:
            return
        from volumehost.node.operations.set_up_operation import has_lost_mount

        for mount in mounts:
            if has_lost_mount(self._parts.services, mount.mount_point or mount.path):
                logger.warning("volume %s of pod %s is no longer mounted at %s", mount.volume, uid, mount.path)
                self._actual.mark_uncertain(mount.volume, uid)

    def notice_what_is_gone(self) -> None:
        """Of all pods, what was a mount point and no longer is one: it is set up again.

        One look at the mount table for all of them. What is dead and still in it shows when somebody uses it.
        """
        table = mounted_paths(self._parts.services)
        for record in self._parts.populator.records():
            uid = record.uid
            mounts = self._actual.mounts_of_pod(uid)
            if any(mount.is_mount and (mount.mount_point or mount.path) not in table for mount in mounts):
                self.notice_lost_mounts(uid)
                self._parts.reconciler.look_at_uses(uid)
        self._parts.reconciler.run()

    def _is_hopeless(self, uid: str, attempts: int | None) -> bool:
        """Whether all that is not mounted either cannot be tried or has failed often enough."""
        record = self._parts.populator.record(uid)
        if record is None:
            return True  # it was unmounted meanwhile
        if attempts is None and not record.errors:
            return False
        status = self._parts.status.of_pod(record.pod)
        waiting = [volume for volume in status.volumes if not volume.ready and volume.state != "unused"]
        return bool(waiting) and all(self._has_failed(volume, record, attempts) for volume in waiting)

    def _has_failed(self, volume: VolumeStatus, record: PodRecord, attempts: int | None) -> bool:
        """What is only in progress has not failed; what nobody can do anything about has, at once."""
        error = record.errors.get(volume.volume)
        if isinstance(error, ClaimPendingError) and self._claims.is_looked_after:
            return attempts is not None and self._claims.final_failures(error) >= attempts
        return error is not None or volume.attempts >= (attempts or 1)

    def _unmounting(self, pod: Pod) -> FailedPreconditionError:
        return FailedPreconditionError(
            "it is being unmounted",
            action=f"mounting pod {pod.metadata.namespace}/{pod.metadata.name}",
            subject=pod.metadata.name,
            hint="wait until it is gone, then mount it again",
        )

    def _look_after(self, record: PodRecord, delay: float) -> None:
        """Volumes that cannot be resolved yet are tried again: when their claims change, or else ever more rarely."""
        self._record_problems(record)
        self._claims.follow(record)
        self._parts.contents.follow(record.pod)
        if record.errors:
            self._tell_unable(record)
            self._parts.later(delay, lambda: self._resolve_again(record, delay), lane=lane_of_pod(record.pod))

    def _tell_unable(self, record: PodRecord) -> None:
        """A claim that is being looked after is in progress, and has events of its own (VM-08)."""
        from volumehost.node.populating.pod_events import tell_unable

        in_progress = ClaimPendingError if self._claims.is_looked_after else ()
        problems = {name: str(error) for name, error in record.errors.items() if not isinstance(error, in_progress)}
        tell_unable(self._parts.services, record, problems)

    def _record_problems(self, record: PodRecord) -> None:
        """Why volumes cannot be resolved, for those who ask when this manager is gone (BR-83).

        And which volumes it shares with the node: what is attached for it is released with it, also after a restart.
        """
        uid, services = record.uid, self._parts.services
        problems = {name: self._claims.problem(error) for name, error in record.errors.items()}
        shared = services.desired.on_node_of_pod(uid)
        known = services.journal.entry("", uid) or {}
        former = texts_of(known, "volumes")
        if problems != known.get("problems", {}):
            advice = {name: self._claims.advice(error) for name, error in record.errors.items()}
            services.note({"p": uid, "problems": problems, "problem_advice": advice})
        if not shared <= set(former):  # what it had once is never struck out: the pod may be ending just now
            services.note({"p": uid, "volumes": sorted({*former, *shared})})

    def _resolve_again(self, record: PodRecord, delay: float) -> None:
        if self._parts.populator.record(record.uid) is record:  # not refreshed or ended meanwhile
            self.resolve(record, min(2 * delay, RESOLVE_MAXIMUM_SECONDS))

    def resolve(self, record: PodRecord, delay: float = RESOLVE_SECONDS) -> None:
        """Look anew at what the pod's volumes lead to, since it may have changed."""
        parts, uid = self._parts, record.uid
        fresh = parts.populator.refresh(uid)
        if fresh is None:
            return
        self._look_after(fresh, delay)
        parts.reconciler.look_at_uses(uid)
        parts.reconciler.run()
        parts.waits.notify(uid)
