"""Follows the ConfigMaps and Secrets that volumes of mounted pods are made of, in the store of this host.

Whoever changes one finds the change in the pods at once, and a pod that waits for one goes on when it is there. In a
cluster nobody may watch them: there the refresh that comes from time to time finds what changed (POP-16).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from volumehost.errors import ApiError
from volumehost.node.populating.api_changes import ApiChanges

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, Pod, Volume
    from volumehost.node.execution.timers import Timers

logger = logging.getLogger(__name__)

#: Seconds after the first such pod was mounted until the objects are watched: who mounts one pod and leaves does not
#: pay for that.
WATCH_SECONDS = 5.0

#: Kind, namespace and name.
_Object = tuple[str, str, str]


class ContentFollowing:
    """Safe for threads.

    :param later: calls a function on a thread that may take its time.
    :param at_once: watch with the first pod, not a while after it.
    """

    def __init__(
        self,
        api: Callable[[], ApiClient | None],
        timers: Timers,
        later: Callable[[Callable[[], None]], None],
        *,
        at_once: bool,
    ) -> None:
        #: Refreshes volumes of a pod, by their names in it.
        self.changed: Callable[[str, Iterable[str]], None] = lambda uid, volumes: None  # noqa: ARG005 - nobody listens yet
        self._api = api
        self._timers = timers
        self._later = later
        self._at_once = at_once
        self._changes = ApiChanges(api, self._object_changed, _kinds)
        self._lock = threading.Lock()
        #: For each object the pods that are made of it, and which volumes of theirs; for each pod its objects.
        self._pods: dict[_Object, dict[str, set[str]]] = {}
        self._objects: dict[str, set[_Object]] = {}
        self._arranged = False
        #: What has not changed after this version is what an agent's pods get anyway.
        self._since = 0

    def follow(self, pod: Pod) -> None:
        """Refresh the pod's volumes when what they are made of changes."""
        named = [(each, volume.name) for volume in pod.spec.volumes for each in _objects_of(volume, pod)]
        if not named:
            return
        uid = pod.metadata.uid
        with self._lock:
            for each, volume in named:
                self._pods.setdefault(each, {}).setdefault(uid, set()).add(volume)
                self._objects.setdefault(uid, set()).add(each)
            first, self._arranged = not self._arranged, True
        if first:
            self._arrange()

    def forget(self, pod_uid: str) -> None:
        """The pod is gone."""
        with self._lock:
            for each in self._objects.pop(pod_uid, ()):
                del self._pods[each][pod_uid]
                if not self._pods[each]:
                    del self._pods[each]

    def stop(self) -> None:
        """Tell nothing any more."""
        self._changes.stop()

    def _arrange(self) -> None:
        from volumehost.api.objects import ConfigMap
        from volumehost.api.store import EmbeddedStore

        api = self._api()
        if not isinstance(api, EmbeddedStore):
            return
        if not self._at_once:
            self._timers.call_later(WATCH_SECONDS, lambda: self._later(self._changes.begin))
            return
        try:
            self._since = int(api.list(ConfigMap).resource_version)
        except ApiError as error:
            logger.debug("all that there is counts as changed once: %s", error)
        self._changes.begin()

    def _object_changed(self, obj: KubeObject) -> None:
        if int(obj.metadata.resource_version) <= self._since:
            return
        with self._lock:
            pods = self._pods.get((obj.kind, obj.metadata.namespace, obj.metadata.name), {})
            found = {uid: frozenset(volumes) for uid, volumes in pods.items()}
        for uid, volumes in found.items():
            self._later(lambda uid=uid, volumes=volumes: self.changed(uid, volumes))  # type: ignore[misc]


def _kinds() -> tuple[type[KubeObject], ...]:
    from volumehost.api.objects import ConfigMap, Secret

    return ConfigMap, Secret


def _objects_of(volume: Volume, pod: Pod) -> Iterator[_Object]:
    namespace = pod.metadata.namespace
    if volume.config_map is not None:
        yield "ConfigMap", namespace, volume.config_map.name
    if volume.secret is not None:
        yield "Secret", namespace, volume.secret.secret_name
    for source in volume.projected.sources if volume.projected is not None else ():
        if source.config_map is not None:
            yield "ConfigMap", namespace, source.config_map.name
        if source.secret is not None:
            yield "Secret", namespace, source.secret.name
