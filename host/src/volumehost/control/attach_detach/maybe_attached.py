"""Writes down on a node what may be attached to it, before a plugin is asked to attach (BR-47).

Who attaches through VolumeAttachments has it written down there. The other plugins have no such thing, and a controller
that dies within their call would leave an attachment that nobody ever ends.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from volumehost.control.writes import get_or_none, update
from volumehost.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Node

logger = logging.getLogger(__name__)

#: On a node: the unique names of the volumes that may be attached to it though its status does not list them.
MAYBE_ATTACHED = "volumehost.io/maybe-attached"


def read_marks(node: Node) -> frozenset[str]:
    """The volumes that stand on the node."""
    text = node.metadata.annotations.get(MAYBE_ATTACHED, "")
    try:
        found = json.loads(text) if text else []
        return frozenset(str(each) for each in found)
    except (ValueError, TypeError):
        logger.warning("node %s: its annotation %s is spoilt", node.metadata.name, MAYBE_ATTACHED)
        return frozenset()


def mark(api: ApiClient, node: str, volume: str) -> None:
    """Write the volume down; it is durable when this returns.

    :raises ApiError: it cannot be written: then nothing must be attached.
    """
    _write(api, node, lambda marks: marks | {volume})


def unmark(api: ApiClient, node: str, volume: str) -> None:
    """The volume is attached for certain, or detached. A node that is gone is no trouble."""
    try:
        _write(api, node, lambda marks: marks - {volume})
    except ObjectNotFoundError:
        return


def _write(api: ApiClient, name: str, change: Callable[[frozenset[str]], frozenset[str]]) -> None:
    from volumehost.api.objects import Node

    node = get_or_none(api, Node, name)
    if node is None:
        raise ObjectNotFoundError(f"there is no node {name}", action="noting what may be attached", subject=name)

    def apply(fresh: Node) -> None:
        marks = change(read_marks(fresh))
        annotations = {key: text for key, text in fresh.metadata.annotations.items() if key != MAYBE_ATTACHED}
        if marks:
            annotations[MAYBE_ATTACHED] = json.dumps(sorted(marks))
        fresh.metadata.annotations = annotations

    if change(read_marks(node)) != read_marks(node):
        update(api, node, apply)
