"""The pods of this node that are in the API: they want their volumes here, until the word that they have ended."""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING

from volumehost.errors import GoneError, ObjectNotFoundError, VolumeHostError
from volumehost.node.pod_objects import FINALIZER, keep_pod
from volumehost.node.pods import workload_has_ended

if TYPE_CHECKING:
    from volumehost.agent.pod_sources import PodSources
    from volumehost.api.objects import Pod
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)

#: Seconds until a watch that failed is begun again: the first time, and at most.
RETRY_SECONDS = 0.5
RETRY_MAXIMUM_SECONDS = 30.0


class StoredPods:
    """A PodSource that watches the API."""

    name = "the store"

    def __init__(self, manager: VolumeManager) -> None:
        self._manager = manager
        self._api = manager.api
        self._node_name = manager.host.get_node_name()
        self._pods: dict[str, Pod] = {}
        self._stop = threading.Event()

    def start(self, sources: PodSources) -> None:
        """Watch from now on."""
        threading.Thread(target=self._run, args=(sources,), name="volumehost-stored-pods", daemon=True).start()

    def stop(self) -> None:
        """End soon."""
        self._stop.set()

    def _run(self, sources: PodSources) -> None:
        delay = RETRY_SECONDS
        while not self._stop.is_set():
            try:
                self._follow(sources)
                delay = RETRY_SECONDS
            except GoneError:
                logger.debug("the watch of pods fell behind: they are listed anew")
            except VolumeHostError as error:
                if self._stop.is_set():
                    return
                logger.warning("pods cannot be read from the store, tried again in %.1f s: %s", delay, error)
                self._stop.wait(delay * random.uniform(1.0, 1.2))  # noqa: S311 - spreads retries, guards nothing
                delay = min(2 * delay, RETRY_MAXIMUM_SECONDS)

    def _follow(self, sources: PodSources) -> None:
        from volumehost.api.objects import Pod

        listed = self._api.list(Pod)
        there = {pod.metadata.uid for pod in listed.items}
        for pod in listed.items:
            self._seen(sources, pod)
        for uid in [uid for uid in self._pods if uid not in there]:
            self._gone(sources, self._pods[uid])
        sources.told(self)
        for event in self._api.watch(Pod, resource_version=listed.resource_version, stop=self._stop.is_set):
            if event.type == "DELETED":
                self._gone(sources, event.object)
            elif event.type != "BOOKMARK":
                self._seen(sources, event.object)

    def _seen(self, sources: PodSources, pod: Pod) -> None:
        if pod.spec.node_name not in ("", self._node_name):
            return
        self._pods[pod.metadata.uid] = pod
        if workload_has_ended(pod):
            sources.end(pod)
        elif pod.metadata.deletion_timestamp is not None:
            sources.keep(pod)
        else:
            if FINALIZER not in pod.metadata.finalizers:
                try:
                    pod = keep_pod(self._api, pod.metadata.name, pod.metadata.namespace)
                except ObjectNotFoundError:
                    return
            sources.want(pod)

    def _gone(self, sources: PodSources, pod: Pod) -> None:
        if self._pods.pop(pod.metadata.uid, None) is not None:
            sources.end(pod)
