"""What a command or an embedding program asks of whoever works on the root directory: itself, or a running agent.

:class:`volumehost.node.manager.VolumeManager` and :class:`volumehost.agent.client.AgentManager` are both one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, Pod
    from volumehost.node.explaining.explanation import PodExplanation
    from volumehost.node.status.records import PodStatus
    from volumehost.node.workloads.containers import ContainerMounts


class FailedAttempts(Protocol):
    """How often whoever looks after an object failed to get on with it."""

    @property
    def attempts(self) -> int:
        """How often in a row."""
        ...

    @property
    def error(self) -> BaseException | None:
        """The last error."""
        ...


class Controllers(Protocol):
    """What can be asked of the controllers; see :class:`volumehost.control.plane.ControlPlane`."""

    def settled(self) -> bool:
        """Whether all that was written before this call was looked at, and nothing runs or is due now."""
        ...

    def explain(self, obj: KubeObject) -> list[str]:
        """What is being done for the object or keeps it, one line each."""
        ...

    def failure(self, obj: KubeObject) -> FailedAttempts | None:
        """What is known of whoever failed most often to get on with the object; None when nobody did."""
        ...

    def wait_until(self, predicate: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait until the predicate holds, at most ``timeout`` seconds.

        :raises WaitTimeoutError: it does not in time.
        """
        ...


class PodManager(Protocol):
    """Takes pods and mounts their volumes; the methods of VolumeManager that work through an agent too."""

    @property
    def api(self) -> ApiClient:
        """The API."""
        ...

    @property
    def root_dir(self) -> str:
        """The root directory, links resolved."""
        ...

    @property
    def control(self) -> Controllers:
        """The controllers, at work from now on.

        :raises FailedPreconditionError: there are none here.
        """
        ...

    @property
    def stays_at_work(self) -> bool:
        """Whether it goes on when the caller has left: an agent does."""
        ...

    def sync_pod(self, pod: Pod) -> None:
        """Begin to mount the volumes of a pod that is in the API, or refresh those that want that; returns at once.

        What failed before is tried now, however long its backoff is.
        """
        ...

    def wait_for_pod(self, pod: Pod, *, timeout: float, attempts: int | None = None) -> PodStatus:
        """Wait until every used volume of the pod is mounted."""
        ...

    def unmount_pod(self, name: str, namespace: str, *, timeout: float) -> None:
        """Delete the pod and unmount its volumes: the word that its workload has ended."""
        ...

    def unmount_all(self, *, timeout: float) -> list[str]:
        """Unmount every pod that has volumes here; returns ``namespace/name`` of each."""
        ...

    def status(self) -> list[PodStatus]:
        """Every pod in the API and every pod that something is mounted for."""
        ...

    def notes(self) -> list[str]:
        """What should be known beside the status of pods."""
        ...

    def pod_status(self, pod: Pod) -> PodStatus:
        """One pod, as it is in the API."""
        ...

    def container_mounts(self, pod: Pod | PodStatus) -> list[ContainerMounts]:
        """For each container of a mounted pod, what to mount where."""
        ...

    def explain(self, pod: Pod) -> PodExplanation:
        """Why volumes of the pod are not ready, and what to do."""
        ...
