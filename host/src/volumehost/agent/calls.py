"""The calls of the agent's control socket, each a method that takes plain values and returns plain values.

The socket's server (:mod:`volumehost.agent.service`) calls them; :mod:`volumehost.agent.client` is the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.agent.wire import error_to_wire
from volumehost.api.objects import Pod
from volumehost.errors import (
    ApiError,
    FailedPreconditionError,
    InvalidObjectError,
    ObjectNotFoundError,
    VolumeHostError,
)
from volumehost.node.populating.pod_objects import FINALIZER, delete_pod, find_pod, mark_workload_ended

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject
    from volumehost.node.manager import VolumeManager

Arguments = Mapping[str, Any]
Call = Callable[[Arguments], Any]

#: Longest time that one call waits, in seconds: a caller that has gone keeps a thread for no longer than that.
LONGEST_WAIT = 30.0


class ControlCalls:
    """What the socket offers of one manager. Safe for threads, as the manager is."""

    def __init__(self, manager: VolumeManager) -> None:
        self._manager = manager
        self.by_name: dict[str, Call] = {
            "sync_pod": self.sync_pod,
            "wait_for_pod": self.wait_for_pod,
            "pod_status": self.pod_status,
            "status": self.status,
            "notes": self.notes,
            "unmount_pod": self.unmount_pod,
            "unmount_all": self.unmount_all,
            "container_mounts": self.container_mounts,
            "explain": self.explain,
            "object_progress": self.object_progress,
            "settled": self.settled,
            "wait_for_progress": self.wait_for_progress,
        }

    # --- pods -------------------------------------------------------------------------------------------------------

    def sync_pod(self, arguments: Arguments) -> None:
        """Look at the pod at once."""
        pod = self._pod(arguments)
        self._check_is_ours(pod)
        self._manager.sync_pod(pod)

    def wait_for_pod(self, arguments: Arguments) -> Any:
        """Wait for the pod for a while; the status, or the error of the wait."""
        return self._manager.wait_for_pod(
            self._pod(arguments), timeout=_timeout(arguments), attempts=arguments.get("attempts")
        ).to_dict()

    def pod_status(self, arguments: Arguments) -> Any:
        """The pod's status."""
        return self._manager.pod_status(self._pod(arguments)).to_dict()

    def status(self, _arguments: Arguments) -> Any:
        """The status of all pods."""
        return [status.to_dict() for status in self._manager.status()]

    def notes(self, _arguments: Arguments) -> Any:
        """What should be known beside that."""
        return self._manager.notes()

    def unmount_pod(self, arguments: Arguments) -> None:
        """End the pod, and wait for a while until it is gone."""
        name, namespace, timeout = _text(arguments, "name"), _text(arguments, "namespace"), _timeout(arguments)
        pod = find_pod(self._manager.api, name, namespace)
        if pod is not None:
            self._manager.ending.check(pod.metadata.uid, f"{namespace}/{name}")
            if not self._manager.parts.in_cluster:
                mark_workload_ended(self._manager.api, pod)
        try:
            self._manager.unmount_pod(name, namespace, timeout=timeout)
        except ObjectNotFoundError:
            if pod is None:
                raise  # otherwise the agent has acted upon the word by itself

    def unmount_all(self, arguments: Arguments) -> Any:
        """End all pods, and wait for a while until they are gone."""
        ended = []
        for pod in [] if self._manager.parts.in_cluster else self._manager.api.list(Pod).items:
            if FINALIZER in pod.metadata.finalizers and not self._manager.ending.kept_by(pod.metadata.uid):
                mark_workload_ended(self._manager.api, pod)
                delete_pod(self._manager.api, pod)  # now: the agent may let go of it at once
                ended.append(f"{pod.metadata.namespace}/{pod.metadata.name}")
        return list(dict.fromkeys([*ended, *self._manager.unmount_all(timeout=_timeout(arguments))]))

    def container_mounts(self, arguments: Arguments) -> Any:
        """What the pod's containers are given."""
        return [mounts.to_dict() for mounts in self._manager.container_mounts(self._pod(arguments))]

    def explain(self, arguments: Arguments) -> Any:
        """Why the pod is not ready."""
        return self._manager.explain(self._pod(arguments)).to_dict()

    # --- objects ----------------------------------------------------------------------------------------------------

    def object_progress(self, arguments: Arguments) -> Any:
        """What the controllers are at with an object: lines, and the failure of whoever failed most often."""
        obj = _object(arguments)
        plane = self._manager.control
        failure = plane.failure(obj)
        return {
            "lines": plane.explain(obj),
            "attempts": failure.attempts if failure is not None else 0,
            "error": error_to_wire(failure.error) if failure is not None and failure.error is not None else None,
        }

    def settled(self, _arguments: Arguments) -> bool:
        """Whether the controllers have nothing to do now."""
        return self._manager.control.settled()

    def wait_for_progress(self, arguments: Arguments) -> int:
        """Wait until the controllers have seen or done something since ``count``; the count to go on from."""
        return self._manager.control.wait_for_progress(int(arguments.get("count", 0)), _timeout(arguments))

    def _check_is_ours(self, pod: Pod) -> None:
        """Refuse what is not bound to this node, where that is the cluster's to say."""
        manager = self._manager
        if not manager.parts.in_cluster or pod.spec.node_name == manager.host.get_node_name():
            return
        label = f"{pod.metadata.namespace}/{pod.metadata.name}"
        raise FailedPreconditionError(
            f"the agent here works for a cluster's node {manager.host.get_node_name()}, and the pod is not bound to it",
            action=f"mounting pod {label}",
            subject=label,
            hint="create the pod in the cluster: the agent mounts what is bound to its node by itself",
        )

    def _pod(self, arguments: Arguments) -> Pod:
        """The pod as the API has it now, when that is the same pod; else as the caller knows it."""
        from volumehost.api.convert import to_object

        given = to_object(Pod, arguments.get("pod"))
        try:
            found = self._manager.api.get(Pod, given.metadata.name, given.metadata.namespace)
        except ApiError:
            return given
        return found if found.metadata.uid == given.metadata.uid else given


def _object(arguments: Arguments) -> KubeObject:
    """As much of an object as names it."""
    from volumehost.api.kinds import find_kind
    from volumehost.api.objects import ObjectMeta

    kind = find_kind(_text(arguments, "kind"))
    name, namespace, uid = (str(arguments.get(key, "")) for key in ("name", "namespace", "uid"))
    return kind.struct(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


def _text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise InvalidObjectError(subject="the call's arguments", problems=[(f"$.{name}", "expected a text")])
    return value


def _timeout(arguments: Arguments) -> float:
    value = arguments.get("timeout", 0.0)
    if not isinstance(value, int | float):
        raise InvalidObjectError(subject="the call's arguments", problems=[("$.timeout", "expected seconds")])
    return min(max(0.0, float(value)), LONGEST_WAIT)


def unknown_call(name: str, calls: ControlCalls) -> VolumeHostError:
    """The error for a call that this agent does not have: it may be older or newer than the command."""
    return VolumeHostError(
        f"it has no call {name!r}",
        action="asking the agent",
        subject=name,
        hint=f"it has {', '.join(sorted(calls.by_name))}; the agent and the command may be of different versions",
    )
