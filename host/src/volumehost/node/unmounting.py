"""Ends pods: records the word that a workload is over, waits for its volumes, removes what is left of it.

The volume manager's half for pods that go. A manager that starts completes what a former one began here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from volumehost.errors import VolumeHostError, WaitTimeoutError
from volumehost.mount.deadline import in_seconds
from volumehost.node.journal.format import LOST, texts_of
from volumehost.node.populating.going_claims import is_reclaimed, is_used_by_others, let_claims_go
from volumehost.node.populating.pod_objects import FINALIZER, find_pod, release_pod

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolumeClaim, Pod
    from volumehost.node.assembly import NodeParts
    from volumehost.node.state.records import MountedVolume

logger = logging.getLogger(__name__)

#: Seconds until what is left of a pod is looked at again, when it could not be removed: the first time, and at most.
FINISH_SECONDS = 1.0
FINISH_MAXIMUM_SECONDS = 60.0


class PodUnmounting:
    """Ends pods with the parts of a manager."""

    def __init__(self, parts: NodeParts, api: ApiClient) -> None:
        self._parts = parts
        self._api = api
        self._actual = parts.services.actual
        self._journal = parts.services.journal
        self._note = parts.services.note
        #: Namespace and name of pods whose end a former manager began, until somebody has been told that they are gone.
        self._begun_before: dict[str, tuple[str, str]] = {}

    def end(self, uid: str, namespace: str, name: str) -> None:
        """Record that the workload has ended, then act on it.

        The record becomes durable together with the first intent to unmount, so that it survives a crash.
        """
        record: dict[str, Any] = {"p": uid, "ended": True, "ns": namespace, "pod": name}
        volumes = self._shared_volumes(uid)
        if volumes:
            record["volumes"] = volumes
        self._note(record)
        self._parts.populator.end(uid)
        self._parts.reconciler.look_at_pod(uid)
        for volume in volumes:  # one that is only attached, or only staged, is not among the pod's mounts
            self._parts.reconciler.look_at_volume(volume)
        self._parts.waits.notify(uid)

    def begin(self, uid: str, namespace: str, name: str) -> None:
        """End the pod without waiting: it is finished when its last volume is gone. May be repeated."""
        if not self._parts.populator.has_ended(uid) or self._journal.entry("", uid) is None:
            self.end(uid, namespace, name)
            self._finish_later(uid)
            self._parts.reconciler.run()

    def wait(self, uid: str, label: str, seconds: float) -> None:
        """Wait until nothing of the pod is mounted any more, and what it alone used is off the node.

        :raises WaitTimeoutError: something still is; ``details`` says what and why.
        """
        from volumehost.node.explaining.explain import explain_live

        volumes = self._volumes(uid)  # all it will ever have had: it has ended
        if self._parts.waits.wait((uid, *volumes), lambda: self._is_gone(uid, volumes), seconds):
            return
        self._finish_later(uid)
        left = self._parts.status.of_leftover(uid)
        lines = explain_live(self._parts, left).details()
        names = sorted(volume.volume for volume in left.volumes) or self._held(uid)
        raise WaitTimeoutError(
            f"mounted volumes=[{' '.join(names)}] after {in_seconds(seconds)}",
            details=lines,
            action=f"waiting until the volumes of pod {label} are unmounted",
            subject=label,
            hint="they are tried again the next time",
        )

    def may_be_in_use(self, uid: str) -> bool:
        """Whether something of the pod is mounted, may be, or is just being mounted.

        What a reboot took does not count: no process of the pod outlived that.
        """
        mounts = self._actual.mounts_of_pod(uid)
        records = ((self._journal.entry(mount.volume, uid) or {}) for mount in mounts)
        return any(record.get("state") != LOST for record in records) or self._parts.pending.works_for(uid)

    def is_gone(self, uid: str) -> bool:
        """Whether nothing of the pod is mounted or may be, or is just being mounted, and its volumes are released."""
        return self._is_gone(uid, self._volumes(uid))

    def _is_gone(self, uid: str, volumes: list[str]) -> bool:
        return (
            not self._actual.has_mounts(uid)
            and not self._parts.pending.works_for(uid)
            and not any(self._is_held(name) for name in volumes)
        )

    def _held(self, uid: str) -> list[str]:
        """Volumes that the pod used, that no pod uses now, and that are not off the node yet (BR-48)."""
        return [name for name in self._volumes(uid) if self._is_held(name)]

    def _is_held(self, name: str) -> bool:
        return self._actual.is_left_over(name) and self._parts.populator.is_device_unwanted(name)

    def _volumes(self, uid: str) -> list[str]:
        """The volumes that the ended pod shared with others, or could have."""
        return texts_of(self._journal.entry("", uid) or {}, "volumes")

    def _shared_volumes(self, uid: str) -> list[str]:
        wanted = self._parts.services.desired.on_node_of_pod(uid)
        there = {
            mount.volume for mount in self._actual.mounts_of_pod(uid) if mount.is_block or not mount.is_named_by_pod
        }
        return sorted(wanted | there | set(self._volumes(uid)))

    def finish(self, uid: str, namespace: str, name: str, *, known: Pod | None = None) -> list[PersistentVolumeClaim]:
        """Nothing of the pod is mounted: remove its directory, then its object, then the records of it.

        :returns: the claims that go with it.
        :raises StillMountedError: something is mounted below its directory that is none of its volumes.
        :raises RemovalError: files are left in a volume's directory (BR-70).
        """
        from volumehost.node.restart.orphans import remove_pod_directory

        try:
            remove_pod_directory(self._parts.host.layout, uid)
        except VolumeHostError as error:
            self._note({"p": uid, "problem": str(error)})
            self._journal.flush()
            raise
        claims: list[PersistentVolumeClaim] = []
        if name and not self._parts.in_cluster:
            pod = known if known is not None else find_pod(self._api, name, namespace)
            same = pod is not None and pod.metadata.uid == uid
            if pod is not None and same and self._parts.services.control.enabled and _is_deleted(pod, known):
                claims = let_claims_go(self._api, pod)
            release_pod(self._api, name, namespace, uid, known=known)
            claims = [claim for claim in claims if not is_used_by_others(self._api, claim)]
        self._note(*({"v": volume, "p": uid, "gone": True} for volume, _ in self._journal.keys_of_pod(uid)))
        self._journal.flush()
        self._parts.populator.forget(uid)
        self._parts.claims.forget(uid)
        self._parts.contents.forget(uid)
        if claims:
            self._parts.services.control.begin()
        return claims

    def wait_reclaimed(self, claims: list[PersistentVolumeClaim], label: str, seconds: float) -> None:
        """Wait until the claims that went with their pod are gone, and the volumes that were made for them.

        :raises WaitTimeoutError: they are not; the pod is.
        """
        plane = self._parts.services.control.plane
        if not claims or plane is None:
            return
        left = [claim for claim in claims if not is_reclaimed(self._api, claim)]
        plane.wait_until(
            lambda: all(is_reclaimed(self._api, claim) for claim in left),
            seconds,
            f"the volumes of claims that go with pod {label}, which is gone, to be deleted",
        )

    def finish_what_was_begun(self) -> None:
        """Complete pods whose end a former manager recorded: those whose volumes are gone now, the others later."""
        for (volume, uid), record in self._journal.entries().items():
            if not volume and record.get("ended"):
                self._begun_before[uid] = str(record.get("ns", "")), str(record.get("pod", ""))
                self._finish_later(uid)

    def _finish_later(self, uid: str) -> None:
        """Finish the pod when its last volume is gone, though nobody waits for that any more."""
        record = self._journal.entry("", uid) or {}
        namespace, name = str(record.get("ns", "")), str(record.get("pod", ""))
        unfinished = self._parts.status.unfinished

        def finish(delay: float) -> None:
            if self._journal.entry("", uid) is None:
                unfinished.pop(uid, None)
                return  # somebody who waited did it
            try:
                self.finish(uid, namespace, name)
            except (OSError, VolumeHostError) as error:
                log = logger.debug if unfinished.get(uid) == str(error) else logger.warning
                unfinished[uid] = str(error)
                log("pod %s/%s is not gone yet: %s", namespace, name, error)
                self._parts.later(delay, lambda: finish(min(2 * delay, FINISH_MAXIMUM_SECONDS)))
            else:
                unfinished.pop(uid, None)

        subjects = (uid, *self._volumes(uid))
        self._parts.waits.once(
            subjects, lambda: self.is_gone(uid), lambda: self._parts.later(0, lambda: finish(FINISH_SECONDS))
        )

    # --- which pods -------------------------------------------------------------------------------------------------

    def uids_of(self, name: str, namespace: str) -> tuple[Pod | None, list[str]]:
        """The pod in the API and its uid; without one, the UIDs of all of that name (or uid) that are mounted here.

        Those too whose end a former manager began: they go by themselves, maybe before somebody asks for it again.
        """
        begun_before = dict(self._begun_before)  # before the others are looked at, which may go meanwhile
        pod = find_pod(self._api, name, namespace)
        if pod is not None:
            return pod, [pod.metadata.uid]
        found = [
            uid
            for uid in self._actual.pods()
            if uid == name or any(_names(mount) == (namespace, name) for mount in self._actual.mounts_of_pod(uid))
        ]
        gone = (uid for uid, label in begun_before.items() if uid == name or label == (namespace, name))
        return None, list(dict.fromkeys([*found, *gone]))

    def was_told(self, uid: str) -> None:
        """Somebody who asked knows that the pod is gone."""
        self._begun_before.pop(uid, None)

    def mounted_pods(self, pods_in_api: list[Pod]) -> dict[str, tuple[str, str]]:
        """UID to (namespace, name) of every pod that has volumes here, or was to have some."""
        found = {}
        for uid in self._actual.pods():
            named = [_names(mount) for mount in self._actual.mounts_of_pod(uid) if mount.pod_name]
            found[uid] = named[0] if named else ("", "")
        for pod in pods_in_api:
            if FINALIZER in pod.metadata.finalizers or pod.metadata.uid in found:
                found[pod.metadata.uid] = (pod.metadata.namespace, pod.metadata.name)
        return found


def _is_deleted(pod: Pod, known: Pod | None) -> bool:
    """Whether the object goes too; that of a pod which has only ended stays, and so do its claims."""
    return known is not None or pod.metadata.deletion_timestamp is not None


def _names(mount: MountedVolume) -> tuple[str, str]:
    return mount.pod_namespace, mount.pod_name
