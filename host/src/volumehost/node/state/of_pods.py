"""What a volume has for each pod that uses it, kept small: nearly all volumes have one pod, and there are thousands.

``None``, the one item, or a dictionary of several by pod UID. Desired and actual state keep their records so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, TypeVar


class OfPod(Protocol):
    """Something of one pod."""

    @property
    def pod_uid(self) -> str:
        """The pod's UID."""
        ...


Item = TypeVar("Item", bound=OfPod)


def get(held: Item | dict[str, Item] | None, pod_uid: str) -> Item | None:
    """That of the pod."""
    if held is None:
        return None
    if isinstance(held, dict):
        return held.get(pod_uid)
    return held if held.pod_uid == pod_uid else None


def put(held: Item | dict[str, Item] | None, item: Item) -> Item | dict[str, Item]:
    """With the item, in the place of what the same pod had."""
    if isinstance(held, dict):
        held[item.pod_uid] = item
        return held
    if held is None or held.pod_uid == item.pod_uid:
        return item
    return {held.pod_uid: held, item.pod_uid: item}


def without(held: Item | dict[str, Item] | None, pod_uid: str) -> Item | dict[str, Item] | None:
    """Without that of the pod."""
    if isinstance(held, dict):
        held.pop(pod_uid, None)
        return held or None
    return held if held is not None and held.pod_uid != pod_uid else None


def items(held: Item | dict[str, Item] | None) -> Collection[Item]:
    """Those of all pods, in the order in which they came."""
    if isinstance(held, dict):
        return held.values()
    return (held,) if held is not None else ()
