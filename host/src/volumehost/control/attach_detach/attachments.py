"""Attachments: what is attached to which node, or may be (the actual state of world, ADC-20 to -24)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from volumehost.control.attach_detach.wishes import Pair

if TYPE_CHECKING:
    from volumehost.spec import Spec

ATTACHING: Final = "attaching"
DETACHING: Final = "detaching"


@dataclass(frozen=True, slots=True)
class Attachment:
    """One volume at one node; times are those of the owner's clock, in seconds.

    :param spec: None where only its name is known: then it can be detached, not attached (ADC-05).
    :param confirmed: whether it is known to be attached; otherwise it may be (BR-47).
    :param reported: whether the node's status is to list it. Not while it is being detached (ADC-33).
    :param under_way: what was begun and has not ended, and ``since`` when.
    :param unwanted_since: since when nobody wants it, None while somebody does.
    :param looked_at: when it was last seen to be attached.
    """

    spec: Spec | None = None
    device_path: str = ""
    confirmed: bool = False
    reported: bool = False
    under_way: Literal["", "attaching", "detaching"] = ""
    since: float = 0.0
    unwanted_since: float | None = None
    looked_at: float = 0.0


class Attachments:
    """Safe for threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._by_node: dict[str, dict[str, Attachment]] = {}

    def get(self, pair: Pair) -> Attachment | None:
        """What is known of the pair, None when nothing is attached."""
        with self._lock:
            return self._by_node.get(pair.node, {}).get(pair.volume)

    def put(self, pair: Pair, attachment: Attachment) -> None:
        """This is so now."""
        with self._lock:
            self._by_node.setdefault(pair.node, {})[pair.volume] = attachment

    def add(self, pair: Pair, attachment: Attachment) -> None:
        """This is so, unless something is known of the pair already."""
        with self._lock:
            self._by_node.setdefault(pair.node, {}).setdefault(pair.volume, attachment)

    def change(self, pair: Pair, **fields: object) -> Attachment | None:
        """Change some fields; the new state, None when it is gone."""
        with self._lock:
            former = self._by_node.get(pair.node, {}).get(pair.volume)
            if former is None:
                return None
            now = replace(former, **fields)  # type: ignore[arg-type]
            self._by_node[pair.node][pair.volume] = now
            return now

    def remove(self, pair: Pair) -> None:
        """It is detached."""
        with self._lock:
            volumes = self._by_node.get(pair.node, {})
            volumes.pop(pair.volume, None)
            if not volumes:
                self._by_node.pop(pair.node, None)

    def begin(self, pair: Pair, spec: Spec, *, alone: bool) -> tuple[list[str], list[str]]:
        """Note that it may be attached from now on, unless it has to be attached ``alone`` and another node has it.

        :returns: the nodes that have it, and those to which it is being attached; all empty when it may begin.
        """
        with self._lock:
            if alone:
                others = {
                    node: volumes[pair.volume]
                    for node, volumes in self._by_node.items()
                    if pair.volume in volumes and node != pair.node
                }
                have = sorted(node for node, each in others.items() if each.confirmed)
                try_to = sorted(node for node, each in others.items() if each.under_way == ATTACHING)
                if have or try_to:
                    return have, try_to
            former = self._by_node.get(pair.node, {}).get(pair.volume, Attachment())
            since = former.since if former.under_way == ATTACHING else self._clock()
            self._by_node.setdefault(pair.node, {})[pair.volume] = replace(
                former,
                spec=spec,
                confirmed=False,
                reported=False,
                under_way=ATTACHING,
                since=since,
                unwanted_since=None,
            )
            return [], []

    def unwanted_for(self, pair: Pair) -> float:
        """For how many seconds nobody has wanted it (ADC-24); from the first call on."""
        with self._lock:
            former = self._by_node.get(pair.node, {}).get(pair.volume)
            if former is None:
                return 0.0
            now = self._clock()
            if former.unwanted_since is None:
                self._by_node[pair.node][pair.volume] = replace(former, unwanted_since=now)
                return 0.0
            return now - former.unwanted_since

    def of_node(self, node: str) -> dict[str, Attachment]:
        """All of a node, by volume."""
        with self._lock:
            return dict(self._by_node.get(node, {}))

    def pairs(self) -> list[Pair]:
        """Every pair of which something is known."""
        with self._lock:
            return [Pair(volume, node) for node, volumes in self._by_node.items() for volume in volumes]
