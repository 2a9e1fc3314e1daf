"""What the attach/detach controller goes by of a node: its health, its taints, and which volumes it uses (ADC-30)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from volumehost.api.objects import Node

#: On a node: a controller attaches for it; the value does not matter (ADC-02).
MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
#: A taint: the node is out of service for good, nothing of it runs or writes any more.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node. ``attached`` are the volumes that its status lists as attached, with their device paths."""

    uid: str = ""
    managed: bool = False
    healthy: bool = False
    out_of_service: bool = False
    in_use: frozenset[str] = frozenset()
    attached: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, node: Node) -> NodeFacts:
        """Those of an object."""
        return cls(
            uid=node.metadata.uid,
            managed=MANAGED in node.metadata.annotations,
            healthy=any(each.type == "Ready" and each.status == "True" for each in node.status.conditions),
            out_of_service=any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints),
            in_use=frozenset(node.status.volumes_in_use),
            attached=tuple((each.name, each.device_path) for each in node.status.volumes_attached),
        )


class KnownNodes:
    """What was last seen of each node, also of those that are gone. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._facts: dict[str, NodeFacts] = {}

    def see(self, node: Node) -> tuple[NodeFacts | None, NodeFacts]:
        """Take the node's state over: what was known before, and what is now."""
        now = NodeFacts.of(node)
        with self._lock:
            before = self._facts.get(node.metadata.name)
            self._facts[node.metadata.name] = now
            return before, now

    def get(self, name: str) -> NodeFacts | None:
        """What was last seen of the node, None when it never was."""
        with self._lock:
            return self._facts.get(name)

    def forget(self, name: str) -> None:
        """The node is gone, and nothing is attached to it."""
        with self._lock:
            self._facts.pop(name, None)

    def all(self) -> Mapping[str, NodeFacts]:
        """Of every node."""
        with self._lock:
            return dict(self._facts)
