"""From pods to wanted volumes (POP rules), and the judge of what is certainly not wanted.

The volume manager tells it of pods; the reconciler asks it. "Not resolvable now", "plugin unknown" and "not all pods
known yet" never mean "not wanted".
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.node.execution.pending import OperationKey, PendingOperations
from volumehost.node.populating.kept_volumes import refuse_replacements
from volumehost.node.populating.pods import used_volumes, workload_has_ended
from volumehost.node.populating.resolver import Resolver
from volumehost.node.state.desired import same_spec
from volumehost.node.state.states import ResizeHold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from volumehost.api.objects import Pod
    from volumehost.node.operations.common import Services
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.kept_pods import KeptPod
    from volumehost.node.state.records import MountedVolume


@dataclass(slots=True)
class PodRecord:
    """One pod that this manager was told to mount.

    ``processed``: every used volume is entered in the desired state, so that what is not there is not wanted.
    ``errors``: outer volume name to why it could not be entered.
    """

    kept: KeptPod
    processed: bool = False
    errors: dict[str, Exception] = field(default_factory=dict)

    @property
    def pod(self) -> Pod:
        """The pod, borrowed."""
        return self.kept.pod

    @property
    def uid(self) -> str:
        """Its UID, which is to be had without reading the pod."""
        return self.kept.uid


class Populator:
    """Keeps the desired state up to date with the pods that it is told of. Safe for threads."""

    def __init__(self, services: Services, pending: PendingOperations, *, adopt: bool = False) -> None:
        """:param adopt: tear down too what only a directory tells of and no pod wants (RECON-51)."""
        self._services = services
        self._resolver = Resolver(services.plugins, services.host, services.clock)
        self._pending = pending
        self._adopt = adopt
        self._lock = threading.Lock()
        self._pods: dict[str, PodRecord] = {}
        self._ended: set[str] = set()
        self._known: set[str] = set()
        self._complete = False
        #: While everything is taken off the node: which mounts go, whoever wants them.
        self._goes: Callable[[MountedVolume], bool] | None = None

    # --- pods ---------------------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> PodRecord:
        """Enter what the pod wants; the rest is tried when one volume fails (POP-12). Call it again to retry.

        A changed spec makes failed operations start afresh (BR-53).
        """
        while True:
            overtaken, record = self._enter(pod, self._pods.get(pod.metadata.uid))
            if not overtaken:
                return record

    def refresh(self, uid: str) -> PodRecord | None:
        """Look anew at what the pod wants, as it was told last; None when nothing is known of it any more."""
        while (known := self._pods.get(uid)) is not None:
            overtaken, record = self._enter(known.pod, known)
            if not overtaken:
                return record if self._pods.get(uid) is record else None
        return None

    def _enter(self, pod: Pod, former: PodRecord | None) -> tuple[bool, PodRecord]:
        """Enter what the pod wants, provided that the former record still is what is known of it.

        :returns: whether others have entered it meanwhile, so that what was found here may be older than theirs and
            has to be looked up again; and the new record.
        """
        uid = pod.metadata.uid
        used = used_volumes(pod)
        record = PodRecord(self._services.desired.pods.keep(pod))
        wanted: set[str] = set()
        resolved = self._resolver.resolve(pod, used)
        replacements = refuse_replacements(self._services, uid, resolved)
        for name, use in resolved.items():
            if isinstance(use, Exception):
                record.errors[name] = use
                continue
            refusal = replacements.get(name) or self._selinux_refusal(use)
            if refusal is not None:
                record.errors[name] = refusal
                continue
            before = self._services.desired.add(use)
            if before is not None and not same_spec(before.spec, use.spec):
                self._pending.reset(OperationKey(use.volume, uid))
            if use.size:  # what its claim did not allow may be allowed now
                self._services.actual.hold_resize(use.volume, ResizeHold.NONE)
            wanted.add(use.volume)
        record.processed = not record.errors
        with self._lock:
            current = self._pods.get(uid)
            has_ended = uid in self._ended
            entered = not has_ended and current is former
            if entered:
                self._pods[uid] = record
        if not entered and current is None:  # it ended meanwhile
            self._services.desired.remove_pod(uid)
        elif entered and record.processed:
            for name in self._services.desired.volumes_of_pod(uid):
                if name not in wanted:
                    self._services.desired.remove(name, uid)
        return not entered and not has_ended, record

    def _selinux_refusal(self, use: VolumeUse) -> Exception | None:
        """Whether pods that have the volume already keep this one from it (SEL-04); counts those that may (SEL-06)."""
        judge, desired = self._resolver.selinux, self._services.desired
        if judge is None or use.selinux is None:
            return None
        found = (desired.get(use.volume, uid) for uid in desired.pods_of_volume(use.volume) if uid != use.pod_uid)
        refusal = judge.check_others(use, [other for other in found if other is not None])
        if refusal is None:
            judge.admitted(use)
        return refusal

    def end(self, pod_uid: str) -> None:
        """The pod's workload is over, by a positive word (BR-51): its volumes are no longer wanted."""
        with self._lock:
            self._ended.add(pod_uid)
            self._pods.pop(pod_uid, None)
        self._services.desired.remove_pod(pod_uid)

    def forget(self, pod_uid: str) -> None:
        """Nothing of the pod is left."""
        with self._lock:
            self._ended.discard(pod_uid)
            self._known.discard(pod_uid)
        if self._resolver.selinux is not None:
            self._resolver.selinux.forget(pod_uid)

    def set_known(self, pods: Iterable[Pod], kept: Iterable[str] = ()) -> None:
        """All sources have told their pods: these are all there are.

        :param kept: UIDs of others that must not count as gone.
        """
        known: set[str] = set(kept)
        ended: set[str] = set()
        for pod in pods:
            (ended if workload_has_ended(pod) else known).add(pod.metadata.uid)
        with self._lock:
            self._known = known
            self._ended |= ended
            self._complete = True

    def drain(self, goes: Callable[[MountedVolume], bool]) -> None:
        """From now on nothing is mounted, and everything that ``goes`` tells of is unwanted; there is no way back."""
        self._goes = goes

    # --- queries ------------------------------------------------------------------------------------------------

    @property
    def drains(self) -> bool:
        """Whether everything is being taken off the node."""
        return self._goes is not None

    @property
    def complete(self) -> bool:
        """Whether all pods are known, so that what belongs to none of them may be unmounted (POP-02)."""
        return self._complete

    def record(self, pod_uid: str) -> PodRecord | None:
        """What this manager was told of the pod."""
        return self._pods.get(pod_uid)

    def uses_of(self, pod: Pod) -> dict[str, VolumeUse | Exception]:
        """What each used volume of the pod leads to, or why that is not known.

        For a pod that this manager was not told to mount it is looked up now, and nothing is entered.
        """
        record = self.record(pod.metadata.uid)
        if record is None:
            return self._resolver.resolve(pod, used_volumes(pod))
        uses = self._services.desired.uses_of_pod(pod.metadata.uid)
        return {**record.errors, **{name: use for use in uses for name in use.outer_names}}

    def records(self) -> list[PodRecord]:
        """All pods that this manager was told to mount."""
        with self._lock:
            return list(self._pods.values())

    def selinux_counts(self) -> Mapping[tuple[str, str, str, str], int]:
        """How often SELinux labels were in the way, or applied: see ``SELinuxJudge.counts`` (SEL-06)."""
        return self._resolver.selinux.counts() if self._resolver.selinux is not None else {}

    def has_ended(self, pod_uid: str) -> bool:
        """Whether the pod's workload is over."""
        return pod_uid in self._ended

    def knows(self, pod_uid: str) -> bool:
        """Whether this manager was ever told of the pod and has not forgotten it."""
        with self._lock:
            return pod_uid in self._pods or pod_uid in self._known or pod_uid in self._ended

    def may_mount(self, pod_uid: str) -> bool:
        """Only pods that this manager was told to mount; others are left as they are."""
        return pod_uid in self._pods and self._goes is None

    def is_unwanted(self, volume: str, pod_uid: str) -> bool:
        """Whether it is certain that the pod does not want the volume."""
        if self._goes is not None:
            mount = self._services.actual.get_mount(volume, pod_uid)
            return mount is not None and (pod_uid in self._ended or self._goes(mount))
        with self._lock:
            if pod_uid in self._ended:
                return True
            record = self._pods.get(pod_uid)
            unknown = self._complete and pod_uid not in self._known
        if record is not None:
            use = self._services.desired.get(volume, pod_uid)
            if use is not None:
                return self._needs_another_label(use)
            return record.processed and not self.has_another_name(volume, pod_uid)
        if not unknown or self._adopt:
            return unknown
        # Nothing but a directory speaks for it: it may be another program's, or the records may have been lost.
        mount = self._services.actual.get_mount(volume, pod_uid)
        return mount is not None and not mount.from_directory

    def has_another_name(self, volume: str, pod_uid: str) -> bool:
        """Whether a directory that could not be rebuilt is that of a volume which the pod wants (RECON-40)."""
        mount = self._services.actual.get_mount(volume, pod_uid)
        return (
            mount is not None
            and mount.from_directory
            and any(
                (use.inner_name, use.plugin.name) == (mount.inner_name, mount.plugin_name)
                for use in self._services.desired.uses_of_pod(pod_uid)
            )
        )

    def is_device_unwanted(self, volume: str) -> bool:
        """Whether it is certain that no pod wants the volume; of what only the disk tells, who adopts it says so."""
        if self._goes is not None:
            return True
        if not self._complete:
            return False
        if self._services.desired.has_volume(volume):
            return self._is_to_be_relabelled(volume)
        return self._adopt or not self._services.actual.is_from_directory(volume)

    def _needs_another_label(self, use: VolumeUse) -> bool:
        """Whether it has to be unmounted first, since it is mounted with another SELinux label (DSW-08, RECON-52)."""
        return use.selinux is not None and self._services.actual.has_other_label(use.volume, use.mount_label)

    def _is_to_be_relabelled(self, volume: str) -> bool:
        if self._resolver.selinux is None:
            return False
        desired = self._services.desired
        uses = [use for uid in desired.pods_of_volume(volume) if (use := desired.get(volume, uid)) is not None]
        return bool(uses) and all(self._needs_another_label(use) for use in uses)
