"""Ends pods because somebody asks for it, and waits until nothing of them is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.errors import (
    FailedPreconditionError,
    ObjectNotFoundError,
    VolumeHostError,
    VolumesFailedError,
    WaitTimeoutError,
)
from volumehost.node.populating.pod_objects import delete_pod

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.node.assembly import NodeParts
    from volumehost.node.unmounting import PodUnmounting


class PodEnding:
    """The volume manager's half for those who ask and wait. Safe for threads."""

    def __init__(self, parts: NodeParts, api: ApiClient, unmounting: PodUnmounting, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._api = api
        self._unmounting = unmounting
        self._clock = clock
        #: Why the pod of that uid does not end because somebody asks for it, and what would end it; "" when it does.
        self.kept_by: Callable[[str], str] = lambda _uid: ""

    def one(self, name: str, namespace: str, timeout: float) -> None:
        """See ``VolumeManager.unmount_pod``."""
        unmounting, label = self._unmounting, f"{namespace}/{name}"
        pod, uids = unmounting.uids_of(name, namespace)
        if not uids and self._parts.second_look.take():  # a directory that nobody has told of
            pod, uids = unmounting.uids_of(name, namespace)
        if not uids:
            raise ObjectNotFoundError(
                "there is no such pod",
                action=f"unmounting pod {label}",
                subject=label,
                hint="volumehost status lists what is mounted",
            )
        for uid in uids:
            self.check(uid, label)
        for uid in uids:
            unmounting.end(uid, namespace, name)
        known = delete_pod(self._api, pod) if pod is not None and not self._parts.in_cluster else None
        self._parts.reconciler.run()
        deadline = self._clock() + timeout
        for uid in uids:
            self._wait(uid, namespace, name, deadline, known)

    def all(self, timeout: float) -> list[str]:
        """See ``VolumeManager.unmount_all``."""
        deadline = self._clock() + timeout
        in_api = self._pods_in_api()
        pods = self._unmounting.mounted_pods(in_api)
        done, problems, in_time = [], [], True
        for uid in list(pods):
            namespace, name = pods[uid]
            kept = self.kept_by(uid)
            if kept:
                problems.append(f"pod {namespace}/{name} stays mounted: {kept}")
                del pods[uid]
            else:
                self._unmounting.end(uid, namespace, name)
        for pod in in_api:
            if pod.metadata.uid in pods and not self._parts.in_cluster:
                delete_pod(self._api, pod)
        self._parts.reconciler.run()
        count = len(pods) + len(problems)
        for uid, (namespace, name) in pods.items():
            try:
                self._wait(uid, namespace, name, deadline)
            except VolumeHostError as error:  # one pod's trouble must not keep the others (BR-18)
                problems.append(str(error))
                in_time = in_time and not isinstance(error, WaitTimeoutError)
            else:
                done.append(f"{namespace}/{name}" if name else uid)
        if problems:
            raise (VolumesFailedError if in_time else WaitTimeoutError)(
                f"{len(problems)} of {count} pods could not be unmounted",
                details=problems,
                action="unmounting all pods",
            )
        return done

    def check(self, uid: str, label: str) -> None:
        """Refuse to end a pod that something else keeps.

        :raises FailedPreconditionError: it does.
        """
        kept = self.kept_by(uid)
        if kept:
            raise FailedPreconditionError(kept, action=f"unmounting pod {label}", subject=label)

    def _wait(self, uid: str, namespace: str, name: str, deadline: float, known: Pod | None = None) -> None:
        label = f"{namespace}/{name}" if name else uid
        self._unmounting.wait(uid, label, max(0.0, deadline - self._clock()))
        claims = self._unmounting.finish(uid, namespace, name, known=known)
        self._unmounting.was_told(uid)
        self._unmounting.wait_reclaimed(claims, label, max(0.0, deadline - self._clock()))

    def _pods_in_api(self) -> list[Pod]:
        from volumehost.api.objects import Pod

        return self._api.list(Pod).items
