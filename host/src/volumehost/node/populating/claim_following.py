"""Follows the claims of mounted pods: who waits for one is looked at again when it changes, not by chance."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, ObjectNotFoundError, is_operation_finished_error
from volumehost.node.populating.api_changes import ApiChanges
from volumehost.node.populating.claims import ClaimPendingError, claims_of

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, Pod
    from volumehost.control.machinery.queue import Record
    from volumehost.node.execution.timers import Timers
    from volumehost.node.local_control import LocalControl
    from volumehost.node.populating.populator import PodRecord, Populator

#: Seconds after the first pod with a claim was mounted until its claims are looked after: who mounts one pod and
#: leaves does not pay for that.
CONTROL_SECONDS = 5.0


class ClaimFollowing:
    """Safe for threads.

    :param changed: looks at a pod anew; called on a thread that may take its time.
    """

    def __init__(
        self,
        api: Callable[[], ApiClient | None],
        control: LocalControl,
        populator: Populator,
        timers: Timers,
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        self.changed: Callable[[PodRecord], None] = lambda record: None  # noqa: ARG005 - nobody listens yet
        self._api = api
        self._control = control
        self._populator = populator
        self._timers = timers
        self._later = later
        self._changes = ApiChanges(api, self._object_changed, _kinds)
        self._lock = threading.Lock()
        self._pods: dict[tuple[str, str], set[str]] = {}
        self._arranged = False

    @property
    def is_looked_after(self) -> bool:
        """Whether a claim that is not bound will be, by the control plane of this manager."""
        return self._control.enabled

    def follow(self, record: PodRecord) -> None:
        """Look at the pod again when one of its claims changes; have what is missing made."""
        claims = claims_of(record.pod)
        if self.is_looked_after and self._lacks_driver_object(record.pod):
            self.begin()
        if not claims:
            return
        uid = record.uid
        with self._lock:
            for claim in claims:
                self._pods.setdefault(claim, set()).add(uid)
            first, self._arranged = not self._arranged, True
        if any(isinstance(error, ClaimPendingError) for error in record.errors.values()):
            self.begin()
        elif first:
            self._timers.call_later(CONTROL_SECONDS, lambda: self._later(self.begin))

    def _lacks_driver_object(self, pod: Pod) -> bool:
        """Whether a driver of an inline volume has no CSIDriver object, which such volumes need (CSI-EPH-03).

        An installed driver brings it; making it is a part of the control plane's beginning.
        """
        drivers = {volume.csi.driver for volume in pod.spec.volumes if volume.csi is not None}
        api = self._api() if drivers else None
        if api is None:
            return False
        from volumehost.api.objects import CSIDriver

        for driver in drivers:
            try:
                api.get(CSIDriver, driver)
            except ObjectNotFoundError:
                return True
            except ApiError:
                continue  # the volume's own attempt will tell
        return False

    def try_now(self, record: PodRecord) -> None:
        """What keeps the pod's claims from being bound is tried again now (BR-53)."""
        for error in record.errors.values():
            if isinstance(error, ClaimPendingError) and error.claim is not None:
                self._control.try_now(error.claim)

    def begin(self) -> None:
        """Watch, and do what a control plane does, from now on."""
        self._changes.begin()
        self._control.begin()

    def forget(self, pod_uid: str) -> None:
        """The pod is gone."""
        with self._lock:
            for claim in [claim for claim, pods in self._pods.items() if pod_uid in pods]:
                self._pods[claim].discard(pod_uid)
                if not self._pods[claim]:
                    del self._pods[claim]

    def stop(self) -> None:
        """Tell nothing any more."""
        self._changes.stop()

    def step(self, error: ClaimPendingError) -> str:
        """What is being done for the claim, or keeps it, in one line."""
        return self._control.step(error.claim) if error.claim is not None else ""

    def problem(self, error: Exception) -> str:
        """Why a volume cannot be entered, for those who ask when this manager is gone: what the controllers say last.

        Without what changes by itself, such as the seconds until the next attempt.
        """
        claim = error.claim if isinstance(error, ClaimPendingError) else None
        plane = self._control.plane if claim is not None else None
        if claim is None or plane is None:
            return str(error)
        failure = plane.failure(claim)
        if failure is not None and failure.error is not None:
            from volumehost.control.messages import message_of

            times = "once" if failure.attempts == 1 else f"{failure.attempts} times"
            return f"{error}: {message_of(failure.error)} (failed {times})"
        step = plane.step(claim)
        return f"{error}: {step}" if step else str(error)

    def advice(self, error: Exception) -> list[str]:
        """What to do about it, likewise."""
        from volumehost.node.explaining.error_words import advice_for

        failure = self._failure(error)
        return advice_for(failure.error if failure is not None else error)

    def _failure(self, error: Exception) -> Record | None:
        """What is known of whoever failed to make the claim usable that the error is about."""
        claim = error.claim if isinstance(error, ClaimPendingError) else None
        plane = self._control.plane if claim is not None else None
        return plane.failure(claim) if plane is not None and claim is not None else None

    def final_failures(self, error: ClaimPendingError) -> int:
        """How often the control plane failed to make the claim usable for a reason that waiting does not mend."""
        failure = self._failure(error)
        if failure is None or not is_operation_finished_error(failure.error):
            return 0
        return failure.attempts

    def _object_changed(self, obj: KubeObject) -> None:
        """A claim: the pods that use it. Anything else is a driver's object: all pods, their volumes may attach now."""
        from volumehost.api.objects import PersistentVolumeClaim

        with self._lock:
            if isinstance(obj, PersistentVolumeClaim):
                uids = set(self._pods.get((obj.metadata.namespace, obj.metadata.name), ()))
            else:
                uids = {uid for pods in self._pods.values() for uid in pods}
        for uid in uids:
            record = self._populator.record(uid)
            if record is not None:
                self._later(lambda record=record: self.changed(record))  # type: ignore[misc]


def _kinds() -> tuple[type[KubeObject], ...]:
    from volumehost.api.objects import CSIDriver, PersistentVolumeClaim

    return PersistentVolumeClaim, CSIDriver
