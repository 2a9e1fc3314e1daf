"""Mirror pods: static pods as objects of the store, so that commands and managers without the agent know of them.

Best effort: a static pod is mounted without the store too (BR-54). The object has the uid of the pod itself.

In a cluster there are none: they are the kubelet's to make, and an agent needs no right to make or delete pods.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from volumehost.api.mirrors import MIRROR_ANNOTATION, is_mirror
from volumehost.errors import AlreadyExistsError, ApiError, VolumeHostError
from volumehost.node.populating.pod_objects import FINALIZER, delete_pod, find_pod, release_pod

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)

#: How often the objects are compared with the pods, in seconds; when something failed, as often as somebody asks.
REFRESH_SECONDS: Final = 60.0


class MirrorPods:
    """Shows and hides the static pods of one node. Safe for threads; never raises.

    :param shows: False where there are to be none.
    """

    def __init__(self, manager: VolumeManager, *, shows: bool = True) -> None:
        self._manager = manager
        self._shows = shows
        self._api = manager.api
        self._node_name = manager.host.get_node_name()
        self._due = 0.0
        self._problem = ""

    def show(self, pod: Pod) -> None:
        """Make the object where it is missing."""
        if not self._shows:
            return
        try:
            self._show(pod)
        except VolumeHostError as error:
            self._tell(error)

    def hide(self, pod: Pod) -> None:
        """Delete the object; it goes when nothing of the pod is mounted any more."""
        if not self._shows:
            return
        try:
            found = find_pod(self._api, pod.metadata.name, pod.metadata.namespace)
            if found is not None and found.metadata.uid == pod.metadata.uid:
                delete_pod(self._api, found)
        except VolumeHostError as error:
            self._tell(error)

    def refresh(self, pods: Iterable[Pod]) -> None:
        """Show what is missing, and delete what shows no pod any more, once in a while. These are all."""
        if not self._shows or time.monotonic() < self._due:
            return
        from volumehost.api.objects import Pod

        self._due = time.monotonic() + REFRESH_SECONDS
        try:
            wanted = {pod.metadata.uid: pod for pod in pods}
            shown = [
                pod for pod in self._api.list(Pod).items if is_mirror(pod) and pod.spec.node_name == self._node_name
            ]
            for mirror in shown:
                if mirror.metadata.uid not in wanted and mirror.metadata.deletion_timestamp is None:
                    delete_pod(self._api, mirror)
                    self._manager.end_pod(mirror.metadata.uid, mirror.metadata.namespace, mirror.metadata.name)
            there = {mirror.metadata.uid for mirror in shown if mirror.metadata.deletion_timestamp is None}
            for uid, pod in wanted.items():
                if uid not in there:
                    self._show(pod)
            self._problem = ""
        except VolumeHostError as error:
            self._tell(error)

    def _show(self, pod: Pod) -> None:
        metadata = pod.metadata
        found = find_pod(self._api, metadata.name, metadata.namespace)
        if found is not None and not is_mirror(found):
            raise AlreadyExistsError(
                "a pod of that name is in the store already",
                action=f"showing the static pod {metadata.namespace}/{metadata.name}",
                subject=metadata.name,
            )
        if found is not None and (found.metadata.uid != metadata.uid or found.metadata.deletion_timestamp is not None):
            # That of a former content of the file, or one that somebody deleted: the pod is there all the same.
            delete_pod(self._api, found)
            if found.metadata.uid == metadata.uid:
                release_pod(self._api, metadata.name, metadata.namespace, metadata.uid)
            found = find_pod(self._api, metadata.name, metadata.namespace)
        if found is None:
            self._create(pod)
        elif found.metadata.uid != metadata.uid:
            self._due = time.monotonic()  # its volumes are being unmounted: it goes soon

    def _create(self, pod: Pod) -> None:
        try:
            self._api.create(_mirror(pod))
        except AlreadyExistsError:
            found = find_pod(self._api, pod.metadata.name, pod.metadata.namespace)
            if found is not None and found.metadata.uid != pod.metadata.uid:  # else another thread was at it
                raise

    def refresh_soon(self) -> None:
        """Compare the objects with the pods the next time that somebody asks: one of them was touched."""
        self._due = 0.0

    def _tell(self, error: VolumeHostError) -> None:
        self._due = time.monotonic() + (1.0 if isinstance(error, ApiError) else REFRESH_SECONDS)
        log = logger.debug if str(error) == self._problem else logger.warning
        self._problem = str(error)
        log("static pods are not all shown in the store: %s", error)


def _mirror(pod: Pod) -> Pod:
    """The object that shows the pod, with our finalizer: deleted it stays until nothing is mounted."""
    from volumehost.api.convert import to_object, to_wire
    from volumehost.api.objects import Pod

    made = to_object(Pod, to_wire(pod))
    metadata = made.metadata
    metadata.annotations = {**metadata.annotations, MIRROR_ANNOTATION: metadata.uid}
    metadata.finalizers = [FINALIZER]
    metadata.resource_version = ""
    return made
