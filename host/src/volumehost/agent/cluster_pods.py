"""The pods of this node that are in a cluster: they want their volumes here, until it is certain that they have ended.

Nothing is certain while the view of the cluster may be old (BR-51). A pod has ended when

- its phase is Succeeded or Failed and none of its containers is told to run,
- it is deleted and its status tells of each of its containers that it has ended,
- it has the annotation ``volumehost.io/workload-ended: "true"``, by whoever runs its containers, or
- its object is gone: seen to be deleted, or absent from a complete list.

Its volumes are then taken away by what is recorded here, with or without the object. So it gets no finalizer of ours:
one would keep whoever deletes pods by force (eviction, the garbage collector, a node that is lost) from doing so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from volumehost.agent.stored_pods import StoredPods
from volumehost.api.mirrors import is_mirror

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.agent.pod_sources import PodSources
    from volumehost.api.objects import Pod
    from volumehost.node.manager import VolumeManager

#: How often it is looked whether the Node object is there, in seconds, before all pods count as told.
NODE_SECONDS: Final = 1.0


class ClusterPods(StoredPods):
    """A PodSource that watches the API server.

    :param stale: why the pods may be old, "" when they are not.
    """

    name = "API server"

    def __init__(
        self,
        manager: VolumeManager,
        mirror_touched: Callable[[], None] | None = None,
        *,
        stale: Callable[[], str] = lambda: "",
    ) -> None:
        super().__init__(manager, mirror_touched)
        self._stale = stale
        self._told = False

    def problems(self) -> list[str]:
        """Why pods cannot be read, or may have changed without anybody here knowing."""
        problem = self._problem or self._stale()
        return [f"pods cannot be read, what is mounted stays: {problem}"] if problem else []

    def problem_of(self, pod: Pod) -> str:
        """Likewise for one pod."""
        if is_mirror(pod):
            return super().problem_of(pod)
        problem = self._problem or self._stale()
        return f"its object may have changed, what is mounted stays: {problem}" if problem else ""

    def keeps(self, pod: Pod) -> str:
        """A command on a node is no word on a pod of the cluster."""
        metadata = pod.metadata
        return (
            "it is a pod of the cluster: it ends when its containers have, when its object is deleted, or when the "
            f"annotation volumehost.io/workload-ended=true is put on pod {metadata.namespace}/{metadata.name}"
        )

    def prepare(self, pod: Pod) -> Pod | None:
        """The pod as it is."""
        return pod

    def _tell(self, sources: PodSources) -> None:
        """All pods are told, provided that this is the node's cluster: what belongs to none of them is unmounted."""
        attachments = self._manager.parts.services.attachments
        if self._told or self._stop.is_set():
            return
        if attachments is not None and not attachments.node_uid:
            self._manager.parts.later(NODE_SECONDS, lambda: self._tell(sources))
            return
        self._told = True
        sources.told(self)
