"""AgentManager: what commands ask of a running agent, with the same methods as a volume manager of their own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from volumehost.agent.calls import LONGEST_WAIT
from volumehost.agent.connection import Connection
from volumehost.agent.wire import SOCKET_NAME, error_from_wire
from volumehost.errors import ObjectNotFoundError, VolumeHostError, WaitTimeoutError
from volumehost.mount.deadline import in_seconds
from volumehost.node.turn import in_turns

if TYPE_CHECKING:
    from types import TracebackType

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject, Pod
    from volumehost.node.explaining.explanation import PodExplanation
    from volumehost.node.status.records import PodStatus
    from volumehost.node.workloads.containers import ContainerMounts

#: How long one look at the controllers' progress lasts at most, in seconds: the predicate may depend on something else.
_ASK_SECONDS = 0.5


class AgentManager:
    """The manager of a running agent. A context manager; a PodManager. Safe for threads.

    :param root_dir: the agent's root directory, links resolved.
    :param open_api: opens the API objects that the agent works on, when they are first asked for; its caller closes
        them.
    """

    def __init__(self, root_dir: str, open_api: Callable[[], ApiClient]) -> None:
        self.root_dir = root_dir
        self._open_api = open_api
        self._api: ApiClient | None = None
        self._connection = Connection(f"{root_dir}/{SOCKET_NAME}")

    def __enter__(self) -> Self:
        """Connect.

        :raises AgentGoneError: no agent listens.
        """
        self._connection.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Hang up."""
        self._connection.close()

    @property
    def api(self) -> ApiClient:
        """The store that the agent works on."""
        if self._api is None:
            self._api = self._open_api()
        return self._api

    @property
    def stays_at_work(self) -> bool:
        """An agent goes on when the caller has left."""
        return True

    @cached_property
    def control(self) -> AgentControllers:
        """The agent's controllers."""
        return AgentControllers(self._connection)

    def sync_pod(self, pod: Pod) -> None:
        """Have the agent look at the pod at once."""
        self._connection.call("sync_pod", pod=_wire(pod))

    def wait_for_pod(self, pod: Pod, *, timeout: float, attempts: int | None = None) -> PodStatus:
        """See ``VolumeManager.wait_for_pod``."""
        from volumehost.node.status.records import PodStatus

        wire = _wire(pod)
        return PodStatus.from_dict(
            in_turns(
                timeout,
                LONGEST_WAIT,
                lambda turn: self._connection.call("wait_for_pod", pod=wire, timeout=turn, attempts=attempts),
            )
        )

    def unmount_pod(self, name: str, namespace: str, *, timeout: float) -> None:
        """See ``VolumeManager.unmount_pod``."""
        again = False

        def unmount(turn: float) -> None:
            nonlocal again
            try:
                self._connection.call("unmount_pod", name=name, namespace=namespace, timeout=turn)
            except ObjectNotFoundError:
                if not again:
                    raise
            finally:
                again = True

        in_turns(timeout, LONGEST_WAIT, unmount)

    def unmount_all(self, *, timeout: float) -> list[str]:
        """See ``VolumeManager.unmount_all``."""
        done: list[str] = [
            f"{status.namespace}/{status.name}" if status.name else status.uid
            for status in self.status()
            if any(volume.state not in {"unused", "not-mounted"} for volume in status.volumes)
        ]
        done += in_turns(timeout, LONGEST_WAIT, lambda turn: self._connection.call("unmount_all", timeout=turn))
        return list(dict.fromkeys(done))

    def status(self) -> list[PodStatus]:
        """See ``VolumeManager.status``."""
        from volumehost.node.status.records import PodStatus

        return [PodStatus.from_dict(each) for each in self._connection.call("status")]

    def notes(self) -> list[str]:
        """See ``VolumeManager.notes``."""
        return [str(note) for note in self._connection.call("notes")]

    def pod_status(self, pod: Pod) -> PodStatus:
        """See ``VolumeManager.pod_status``."""
        from volumehost.node.status.records import PodStatus

        return PodStatus.from_dict(self._connection.call("pod_status", pod=_wire(pod)))

    def container_mounts(self, pod: Pod | PodStatus) -> list[ContainerMounts]:
        """See ``VolumeManager.container_mounts``."""
        from volumehost.api.objects import Pod
        from volumehost.node.workloads.containers import ContainerMounts

        if not isinstance(pod, Pod):
            pod = self.api.get(Pod, pod.name, pod.namespace)
        return [ContainerMounts.from_dict(each) for each in self._connection.call("container_mounts", pod=_wire(pod))]

    def explain(self, pod: Pod) -> PodExplanation:
        """See ``VolumeManager.explain``."""
        from volumehost.node.explaining.explanation import PodExplanation

        return PodExplanation.from_dict(self._connection.call("explain", pod=_wire(pod)))


@dataclass(frozen=True, slots=True)
class _Failure:
    """What the agent told of whoever failed."""

    attempts: int
    error: VolumeHostError | None


class AgentControllers:
    """The controllers of a running agent; see ``volumehost.control.plane.ControlPlane``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def settled(self) -> bool:
        """Whether they have nothing to do now."""
        return bool(self._connection.call("settled"))

    def explain(self, obj: KubeObject) -> list[str]:
        """What they do for the object, or what keeps it."""
        return [str(line) for line in self._progress(obj)["lines"]]

    def failure(self, obj: KubeObject) -> _Failure | None:
        """What is known of whoever failed most often to get on with the object; None when nobody did."""
        found = self._progress(obj)
        if not found["attempts"]:
            return None
        return _Failure(found["attempts"], error_from_wire(found["error"]) if found["error"] else None)

    def wait_until(self, predicate: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait until the predicate holds; it is asked after everything that the controllers saw or did.

        :raises WaitTimeoutError: it does not hold in time.
        """
        deadline = time.monotonic() + timeout
        count = int(self._connection.call("wait_for_progress", count=0, timeout=0))
        while not predicate():
            left = deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeoutError(f"not so after {in_seconds(timeout)}", action=f"waiting for {what}")
            count = int(self._connection.call("wait_for_progress", count=count, timeout=min(left, _ASK_SECONDS)))

    def _progress(self, obj: KubeObject) -> dict[str, Any]:
        metadata = obj.metadata
        found: dict[str, Any] = self._connection.call(
            "object_progress", kind=obj.kind, name=metadata.name, namespace=metadata.namespace, uid=metadata.uid
        )
        return found


def _wire(pod: Pod) -> dict[str, Any]:
    from volumehost.api.convert import to_wire

    return to_wire(pod)


def agent_is_there(root_dir: str) -> bool:
    """Whether an agent listens for this root directory."""
    connection = Connection(f"{root_dir}/{SOCKET_NAME}")
    with contextlib.suppress(VolumeHostError):
        connection.connect()
        connection.close()
        return True
    return False
