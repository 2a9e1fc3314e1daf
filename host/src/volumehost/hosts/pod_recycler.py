"""Empties a released volume with a pod of the cluster, the recycler pod (RECYCLE-04 to -07)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from volumehost.errors import (
    AlreadyExistsError,
    ApiError,
    GoneError,
    ObjectNotFoundError,
    OperationError,
    TransientOperationError,
)
from volumehost.sdk.recycler import validate_recycler_pod_template

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Event, Pod
    from volumehost.host_services import RecycleEventRecorder

logger = logging.getLogger(__name__)

#: How much longer than its active deadline the pod is waited for, in seconds: it has to be scheduled and started.
GRACE_SECONDS: Final = 300.0
#: How often events about the pod are looked for while it does not change, in seconds.
_LOOK_SECONDS: Final = 5.0


class PodRecycler:
    """Runs recycler pods.

    :param api: where the pods are made; best one that is not cached.
    """

    def __init__(
        self, api: ApiClient, clock: Callable[[], float] = time.monotonic, *, look_seconds: float = _LOOK_SECONDS
    ) -> None:
        self._api = api
        self._clock = clock
        self._look_seconds = look_seconds

    def recycle(self, pv_name: str, pod: Pod, recorder: RecycleEventRecorder) -> None:
        """Run the pod to its end; its events go to the recorder.

        :raises SpecError: the pod has no volume.
        :raises TransientOperationError: a pod of an earlier try is there; it is deleted.
        :raises OperationError: the pod failed, was deleted, took too long, or could not be made or deleted.
        """
        validate_recycler_pod_template(pod)
        action = f"recycling the volume {pv_name}"
        pod.metadata.name, pod.metadata.generate_name = f"recycler-for-{pv_name}", ""
        pod.metadata.namespace = pod.metadata.namespace or "default"
        made = self._create(pod, action)
        try:
            self._wait(made, action, recorder)
        except BaseException as error:
            self._delete(made, action, ended_with=error)
            raise
        self._delete(made, action)

    def _create(self, pod: Pod, action: str) -> Pod:
        try:
            return self._api.create(pod)
        except AlreadyExistsError as error:
            self._delete(pod, action, ended_with=error)
            raise TransientOperationError("old recycler pod found, will retry later", action=action) from error
        except ApiError as error:
            reason = f"unexpected error creating recycler pod: {error.reason}"
            raise OperationError(reason, action=action, hint=error.hint) from error

    def _wait(self, pod: Pod, action: str, recorder: RecycleEventRecorder) -> None:
        told: set[str] = set()
        deadline = self._clock() + (pod.spec.active_deadline_seconds or 0) + GRACE_SECONDS
        for state in self._states(pod, deadline):
            self._forward(pod, told, recorder)
            if state is None or state.metadata.uid != pod.metadata.uid:
                raise OperationError("failed to recycle volume: recycler pod was deleted", action=action)
            if state.status.phase == "Succeeded":
                return
            if state.status.phase == "Failed":
                reason = state.status.message or "pod failed, pod.Status.Message unknown"
                raise OperationError(f"failed to recycle volume: {reason}", action=action)
        raise OperationError(
            "failed to recycle volume: the recycler pod did not come to its end in time",
            action=action,
            subject=f"{pod.metadata.namespace}/{pod.metadata.name}",
            hint="its events tell whether it was scheduled and what it waits for",
        )

    def _states(self, pod: Pod, deadline: float) -> Iterator[Pod | None]:
        """The pod as it is, after each change and every few seconds; None when it is gone."""
        from volumehost.api.objects import Pod

        namespace, version = pod.metadata.namespace, pod.metadata.resource_version
        current: Pod | None = pod
        yield current
        while (left := deadline - self._clock()) > 0:
            try:
                for event in self._api.watch(Pod, namespace, version, timeout=min(left, self._look_seconds)):
                    version = event.object.metadata.resource_version
                    if event.type != "BOOKMARK" and event.object.metadata.uid == pod.metadata.uid:
                        current = None if event.type == "DELETED" else event.object
                        yield current
            except GoneError:
                version = self._api.list(Pod, namespace).resource_version
            try:
                yield self._api.get(Pod, pod.metadata.name, namespace)
            except ObjectNotFoundError:
                yield None

    def _forward(self, pod: Pod, told: set[str], recorder: RecycleEventRecorder) -> None:
        """Hand on the events about the pod that are new; that there are none to be had keeps nothing up."""
        from volumehost.api.objects import Event

        try:
            events: list[Event] = self._api.list(Event, pod.metadata.namespace).items
        except ApiError as error:
            logger.debug("events about recycler pod %s are not known: %s", pod.metadata.name, error)
            return
        for event in events:
            if event.involved_object.uid == pod.metadata.uid and event.metadata.uid not in told:
                told.add(event.metadata.uid)
                recorder(event.type, event.message)

    def _delete(self, pod: Pod, action: str, ended_with: BaseException | None = None) -> None:
        """The pod is not needed any more (RECYCLE-07)."""
        from volumehost.api.objects import Pod

        try:
            self._api.delete(Pod, pod.metadata.name, pod.metadata.namespace)
        except ObjectNotFoundError:
            return
        except ApiError as error:
            if ended_with is None:
                reason = f"failed to delete recycler pod: {error.reason}"
                raise OperationError(reason, action=action, hint=error.hint) from error
            logger.warning("the recycler pod %s could not be deleted: %s", pod.metadata.name, error)
