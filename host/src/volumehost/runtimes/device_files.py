"""What the kernel says about a device file of the host. Called by ``oci`` and ``bwrap``."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from volumehost.errors import FailedPreconditionError
from volumehost.mount.places import shared_places

if TYPE_CHECKING:
    from volumehost.node.workloads.containers import ContainerDevice


def is_device(path: str) -> bool:
    """Whether a character or block device lies there, links followed; a path that does not answer is an error.

    :raises OSError: the path cannot be reached.
    :raises DeadlineExceededError: it does not answer.
    """
    mode = shared_places().look(path).stat.mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def block_device(device: ContainerDevice) -> os.stat_result:
    """Number, mode and owner of a raw block volume's device.

    :raises FailedPreconditionError: it is not there any more.
    """
    path = device.host_path
    try:
        found = shared_places().ask(path)
    except OSError as error:
        reason = f"{path}: {error.strerror or error}"
    else:
        if stat.S_ISBLK(found.st_mode):
            return found
        reason = f"{path} is no block device"
    raise FailedPreconditionError(reason, action=f"exporting block volume {device.volume}", subject=device.volume)


def is_read_only(device: ContainerDevice) -> bool:
    """Whether the kernel lets nobody write to the block device."""
    number = block_device(device).st_rdev
    try:
        with open(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/ro", encoding="ascii") as file:
            return file.read().strip() == "1"
    except OSError:
        return False
