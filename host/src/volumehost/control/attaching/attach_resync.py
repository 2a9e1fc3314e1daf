"""Compares attachments with what the driver itself lists as published (CSI-EXA-16)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.objects import VolumeAttachment
    from volumehost.storage_driver import DriverCapabilities, StorageDriver

logger = logging.getLogger(__name__)

#: How often an attachment is compared, in seconds.
RESYNC_SECONDS = 60.0
#: For how long one listing serves all attachments of its driver, in seconds.
_FRESH_SECONDS = 5.0

#: Volume handle to the nodes that it is published to.
_Listing = Mapping[str, frozenset[str]]


class PublishedNodes:
    """Remembers when each attachment was compared, and the last listing of each driver. Safe for threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}
        self._listings: dict[str, tuple[float, _Listing]] = {}

    def is_due(self, attachment: VolumeAttachment) -> bool:
        """Whether an attached volume is to be compared now: a minute after it was first seen so, then every minute."""
        with self._lock:
            due = self._due.get(attachment.metadata.uid)
            return due is not None and self._clock() >= due

    def next_look(self, attachment: VolumeAttachment) -> float:
        """Seconds until it is to be compared."""
        now, uid = self._clock(), attachment.metadata.uid
        with self._lock:
            if len(self._due) > 10_000:
                self._due = {each: due for each, due in self._due.items() if due > now}
            if self._due.get(uid, 0.0) <= now:
                self._due[uid] = now + RESYNC_SECONDS
            return self._due[uid] - now

    def agrees(self, driver: StorageDriver, names: Callable[[], tuple[str, str]]) -> bool:
        """Whether the driver lists a volume as published to a node; True where that cannot be known.

        :param names: the volume handle and the node as the driver calls them.
        """
        if not _lists_nodes(driver.capabilities()):
            return True
        handle, node = names()
        if node in self._listing(driver).get(handle, frozenset()):
            return True
        logger.warning("published again, as the driver does not list it so: driver=%s volume=%s", driver.name, handle)
        return False

    def is_surely_detached(self, driver: StorageDriver, handle: str, node: str) -> bool:
        """Whether the driver's own listing, asked for now, says that the volume is gone or not on that node (BR-48).

        A NOT_FOUND by itself does not mean "detached": the specification has it for a volume or node that the driver
        cannot find and does not know to be detached.
        """
        capabilities = driver.capabilities()
        if not capabilities.controls("LIST_VOLUMES"):
            return False
        listing = _read(driver)
        if handle not in listing:
            return True
        return _lists_nodes(capabilities) and node not in listing[handle]

    def _listing(self, driver: StorageDriver) -> _Listing:
        with self._lock:
            known = self._listings.get(driver.name)
        if known is not None and self._clock() - known[0] < _FRESH_SECONDS:
            return known[1]
        began = self._clock()
        listing = _read(driver)
        with self._lock:
            self._listings[driver.name] = (began, listing)
        return listing


def published_nodes(driver: StorageDriver, handle: str) -> frozenset[str] | None:
    """The nodes, by the driver's names, that it lists the volume as published to, asked for now; None if it cannot."""
    return _read(driver).get(handle, frozenset()) if _lists_nodes(driver.capabilities()) else None


def _lists_nodes(capabilities: DriverCapabilities) -> bool:
    return capabilities.controls("LIST_VOLUMES") and capabilities.controls("LIST_VOLUMES_PUBLISHED_NODES")


def _read(driver: StorageDriver) -> _Listing:
    return {volume.handle: frozenset(volume.published_node_ids) for volume in driver.list_volumes()}
