"""Writes ``status.volumesAttached`` of nodes: by it a node knows what it may mount (ADC-33, ADC-45, ADC-50)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from volumehost.control.attach_detach.nodes import MANAGED
from volumehost.control.writes import get_or_none, update_status
from volumehost.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Node
    from volumehost.control.attach_detach.attachments import Attachments


class NodeStatuses:
    """Brings the status of one node at a time to what is attached. Safe for threads.

    :param live: an API that answers with what is so now, not with what a cache knows.
    """

    def __init__(self, api: ApiClient, live: ApiClient, attachments: Attachments) -> None:
        self._api = api
        self._live = live
        self._attachments = attachments
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def sync(self, name: str) -> Node | None:
        """Have the node's status list what is attached to it and reported; the node as it was written, None when there
        was nothing to write, or no node.

        Several that come at once cost one write: each writes all that there is.

        :raises ApiError: it cannot be written.
        """
        from volumehost.api.objects import AttachedVolume, Node

        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            node = get_or_none(self._api, Node, name)
            if node is None or MANAGED not in node.metadata.annotations or not self._differs(node):
                return None

            def change(fresh: Node) -> None:
                fresh.status.volumes_attached = [
                    AttachedVolume(name=volume, device_path=path) for volume, path in self._wanted(name)
                ]

            try:
                return update_status(self._api, node, change)
            except ObjectNotFoundError:
                return None

    def is_in_use(self, name: str, volume: str, written: Node | None) -> bool:
        """Whether the node says, now, that it uses the volume; a node that is gone uses nothing (DETACH-02).

        :param written: the node as the server had it when the volume was taken from its status; None to ask now.
        :raises ApiError: it cannot be asked.
        """
        from volumehost.api.objects import Node

        node = written if written is not None else get_or_none(self._live, Node, name)
        return node is not None and volume in node.status.volumes_in_use

    def _differs(self, node: Node) -> bool:
        listed = sorted((each.name, each.device_path) for each in node.status.volumes_attached)
        return listed != self._wanted(node.metadata.name)

    def _wanted(self, name: str) -> list[tuple[str, str]]:
        return sorted(
            (volume, each.device_path)
            for volume, each in self._attachments.of_node(name).items()
            if each.confirmed and each.reported
        )
