"""Wishes: which pods want which volume attached to which node (the desired state of world, ADC-10 to -13)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from volumehost.control.machinery.controller import Key

if TYPE_CHECKING:
    from volumehost.control.attach_detach.pod_volumes import Wanted


class Pair(NamedTuple):
    """A volume, by its unique name, and a node."""

    volume: str
    node: str

    @property
    def key(self) -> Key:
        """As a key of the controller of pairs."""
        return Key(self.volume, self.node)


class Wish(NamedTuple):
    """That a volume be attached to a node: how, and for which pods (their keys and uids)."""

    wanted: Wanted
    pods: Mapping[Key, str]


class Wishes:
    """Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_pod: dict[Key, tuple[str, str, Mapping[str, Wanted]]] = {}
        self._pods: dict[Pair, set[Key]] = {}
        #: Pods, with their node, of which is not known all that they want.
        self._unclear: dict[Key, str] = {}

    def put(self, pod: Key, uid: str, node: str, wanted: Mapping[str, Wanted], *, complete: bool) -> set[Pair]:
        """A pod on a node wants these volumes; what it wanted before stays wanted unless this is complete.

        :returns: the pairs for which something changed.
        """
        with self._lock:
            _, former_node, former = self._by_pod.get(pod, ("", node, {}))
            if not complete and former_node == node:
                wanted = {**former, **wanted}
            before = {Pair(volume, former_node) for volume in former}
            now = {Pair(volume, node) for volume in wanted}
            self._drop(pod, before - now)
            for pair in now:
                self._pods.setdefault(pair, set()).add(pod)
            self._by_pod[pod] = (uid, node, wanted)
            if complete:
                self._unclear.pop(pod, None)
            else:
                self._unclear[pod] = node
            return before ^ now

    def remove(self, pod: Key) -> set[Pair]:
        """The pod wants nothing any more; the pairs that it wanted."""
        with self._lock:
            self._unclear.pop(pod, None)
            _, node, wanted = self._by_pod.pop(pod, ("", "", {}))
            pairs = {Pair(volume, node) for volume in wanted}
            self._drop(pod, pairs)
            return pairs

    def get(self, pair: Pair) -> Wish | None:
        """What is wanted of the pair, None when nobody wants anything."""
        with self._lock:
            pods = self._pods.get(pair)
            if not pods:
                return None
            wanted = self._by_pod[next(iter(pods))][2][pair.volume]
            return Wish(wanted, {pod: self._by_pod[pod][0] for pod in pods})

    def unclear_node(self, pod: Key) -> str:
        """The node of a pod that may want more than is known, "" of any other pod."""
        with self._lock:
            return self._unclear.get(pod, "")

    def is_unclear(self, node: str) -> bool:
        """Whether there is a pod on the node that may want more than is known."""
        with self._lock:
            return node in self._unclear.values()

    def nodes_of(self, volume: str) -> list[str]:
        """The nodes to which the volume is to be attached."""
        with self._lock:
            return [pair.node for pair in self._pods if pair.volume == volume]

    def pods_of(self, volume: str, nodes: Iterable[str]) -> list[Key]:
        """The pods on these nodes that want the volume."""
        with self._lock:
            return sorted({pod for node in nodes for pod in self._pods.get(Pair(volume, node), ())})

    def wants(self, pod: Key) -> bool:
        """Whether the pod is known to want anything."""
        with self._lock:
            return bool(self._by_pod.get(pod, ("", "", {}))[2])

    def pods(self) -> list[Key]:
        """Every pod that is known, whether or not it wants anything."""
        with self._lock:
            return list(self._by_pod)

    def pairs(self) -> list[Pair]:
        """Every pair that is wanted."""
        with self._lock:
            return list(self._pods)

    def _drop(self, pod: Key, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            pods = self._pods.get(pair, set())
            pods.discard(pod)
            if not pods:
                self._pods.pop(pair, None)
