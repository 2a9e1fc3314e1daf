"""The pods of this node that are in the API: they want their volumes here, until the word that they have ended."""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING, Any, Final

from volumehost.api.mirrors import is_mirror
from volumehost.errors import GoneError, ObjectNotFoundError, VolumeHostError
from volumehost.node.populating.pod_objects import FINALIZER, keep_pod
from volumehost.node.populating.pods import workload_has_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.agent.pod_sources import PodSources
    from volumehost.api.objects import Pod
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)

#: Seconds until a watch that failed is begun again: the first time, and at most.
RETRY_SECONDS: Final = 0.5
RETRY_MAXIMUM_SECONDS: Final = 30.0


class StoredPods:
    """A PodSource that watches the API.

    A pod that is deleted stays mounted until the word that its workload has ended (BR-51); one whose object is gone
    altogether, which our finalizer does not let happen before, has ended.
    """

    name = "store"

    def __init__(self, manager: VolumeManager, mirror_touched: Callable[[], None] | None = None) -> None:
        """:param mirror_touched: called when the object of a static pod is deleted, by whoever tells of such pods.

        When nobody does, those that the store shows stay as they are.
        """
        self._manager = manager
        self._mirror_touched = mirror_touched
        self._api = manager.api
        self._node_name = manager.host.get_node_name()
        #: UID to the pod as it was told last.
        self._pods: dict[str, Pod] = {}
        self._problem = ""
        self._stop = threading.Event()
        self._again = threading.Event()

    def start(self, sources: PodSources) -> None:
        """Watch from now on."""
        threading.Thread(target=self._run, args=(sources,), name="volumehost-stored-pods", daemon=True).start()

    def stop(self) -> None:
        """End soon."""
        self._stop.set()
        self._again.set()

    def look_again(self) -> None:
        """List the pods anew."""
        self._again.set()

    def problems(self) -> list[str]:
        """Why the pods cannot be read."""
        return [self._problem] if self._problem else []

    def problem_of(self, pod: Pod) -> str:
        """Why the pod may have changed without anybody here knowing, "" when it cannot have."""
        if is_mirror(pod):
            return "it is a static pod, and this agent looks at no manifests (--static-pods): it stays as it is"
        if self._is_elsewhere(pod):
            return f"it is for node {pod.spec.node_name}: what is mounted for it here stays, and is not mounted again"
        return f"the store cannot be read: {self._problem}" if self._problem else ""

    def keeps(self, pod: Pod) -> str:
        """Nothing: whoever asks has the word."""
        del pod
        return ""

    def ended(self, pod: Pod) -> None:
        """Nothing: the manager itself lets go of the object."""

    def prepare(self, pod: Pod) -> Pod | None:
        """Put our finalizer on the pod, so that it is not forgotten while something is mounted for it."""
        metadata = pod.metadata
        if FINALIZER in metadata.finalizers or metadata.deletion_timestamp is not None:
            return pod
        try:
            kept = keep_pod(self._api, metadata.name, metadata.namespace)
        except ObjectNotFoundError:
            return None
        return kept if kept.metadata.uid == metadata.uid else None

    # --- on the thread ----------------------------------------------------------------------------------------------

    def _run(self, sources: PodSources) -> None:
        delay = RETRY_SECONDS
        while not self._stop.is_set():
            self._again.clear()
            try:
                self._list(sources)
                delay = RETRY_SECONDS
                self._problem = ""
            except GoneError:
                logger.debug("the watch of pods fell behind: they are listed anew")
            except VolumeHostError as error:
                if self._stop.is_set():
                    return
                log = logger.debug if str(error) == self._problem else logger.warning
                self._problem = str(error)
                log("pods cannot be read from the store, tried again in %.1f s: %s", delay, error)
                self._again.wait(delay * random.uniform(1.0, 1.2))  # noqa: S311 - spreads retries, guards nothing
                delay = min(2 * delay, RETRY_MAXIMUM_SECONDS)

    def _list(self, sources: PodSources) -> None:
        """Tell all pods, then their changes until there are none any more."""
        from volumehost.api.objects import Pod

        listed = self._api.list(Pod)
        self._problem = ""
        there = {pod.metadata.uid for pod in listed.items}
        for pod in listed.items:
            self._seen(sources, pod)
        for uid in [uid for uid in self._pods if uid not in there]:
            self._gone(sources, uid)
        self._tell(sources)
        for event in self._api.watch(Pod, resource_version=listed.resource_version, stop=self._again.is_set):
            if event.type == "DELETED":
                self._gone(sources, event.object.metadata.uid)
                if self._mirror_touched is not None and is_mirror(event.object):
                    self._mirror_touched()
            elif event.type != "BOOKMARK":
                self._seen(sources, event.object)

    def _tell(self, sources: PodSources) -> None:
        """All pods have been told."""
        sources.told(self)

    def _seen(self, sources: PodSources, pod: Pod) -> None:
        uid = pod.metadata.uid
        mirror, elsewhere = is_mirror(pod), self._is_elsewhere(pod)
        if elsewhere and not self._manager.may_be_in_use(uid):
            return
        if mirror and self._mirror_touched is not None:
            if pod.metadata.deletion_timestamp is not None:
                self._mirror_touched()
            return
        former, self._pods[uid] = self._pods.get(uid), pod
        if former is not None and _of_interest(former) == _of_interest(pod):
            return
        deleted = pod.metadata.deletion_timestamp is not None
        if workload_has_ended(pod) or (deleted and not self._manager.may_be_in_use(uid)):
            sources.end(self, pod)
        elif mirror or elsewhere:
            sources.keep(self, pod)
        else:
            sources.want(self, pod)

    def _is_elsewhere(self, pod: Pod) -> bool:
        """Whether it is for another node: then only what somebody has mounted for it here all the same is ours."""
        return pod.spec.node_name not in ("", self._node_name)

    def _gone(self, sources: PodSources, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            sources.end(self, pod)


def _of_interest(pod: Pod) -> tuple[Any, ...]:
    """What a change of which is worth a look at the pod: content of volumes comes from labels and annotations too."""
    metadata = pod.metadata
    deleted = metadata.deletion_timestamp is not None
    return workload_has_ended(pod), deleted, pod.spec, metadata.labels, metadata.annotations, pod.status.phase
