"""Unmounts everything in order when an agent that drains is told to end: pods' volumes, devices, attachments."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.node.manager import VolumeManager

logger = logging.getLogger(__name__)


def drain(manager: VolumeManager, timeout: float) -> None:
    """Unmount every mount of every pod, then the volumes from the node. The pods stay, and so do their directories.

    :raises WaitTimeoutError: something is still mounted; ``details`` says what and why.
    """
    logger.info("unmounting everything, for at most %g s", timeout)
    manager.drain(timeout=timeout)
