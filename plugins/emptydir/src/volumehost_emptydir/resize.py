"""Changes the size of an emptyDir that is mounted, without losing content (PLUG-29)."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from volumehost.errors import (
    FailedPreconditionError,
    InfeasibleError,
    MountError,
    OperationNotSupportedError,
)
from volumehost_emptydir.place import VolumePlace, look
from volumehost_emptydir.size import DEFAULT_MEDIUM, MEMORY, bounded_size
from volumehost_emptydir.swap import NO_SWAP

if TYPE_CHECKING:
    from volumehost.api.objects import EmptyDirVolumeSource, Pod
    from volumehost.host_services import MountInterface
    from volumehost.volume_host import VolumeHost

logger = logging.getLogger(__name__)


def resize(place: VolumePlace, source: EmptyDirVolumeSource, pod: Pod, new_size: int | None, host: VolumeHost) -> None:
    """Give a volume in memory ``new_size`` bytes; None leaves the pod's and the node's limits alone to count.

    As at set-up, a size above the pod's memory limit or the node's memory is cut to that. On the default medium there
    is nothing to change: no quota holds the pod to its limit, the metrics report when it is exceeded.

    :raises InfeasibleError: the size is not positive, or smaller than what the volume holds.
    :raises FailedPreconditionError: the volume is not mounted.
    :raises OperationNotSupportedError: the volume lies on huge pages, whose filesystem cannot change its size.
    """
    action = f"resizing the emptyDir {place.name} of pod {pod.metadata.name}"
    if source.medium == DEFAULT_MEDIUM:
        logger.info("%s: on disk no limit is enforced, so there is nothing to change", action)
        return
    if source.medium != MEMORY:
        raise OperationNotSupportedError(
            "a volume on huge pages cannot change its size", action=action, subject=place.name
        )
    if new_size is not None and new_size <= 0:
        raise InfeasibleError(f"{new_size} bytes is not a size", action=action, subject=place.name)
    mounter = host.get_mounter()
    found = look(place.data_dir, mounter)
    if not found.mounted or found.medium != MEMORY:
        raise FailedPreconditionError(
            "the volume is not mounted", action=action, subject=place.name, hint="it gets its size when it is mounted"
        )
    size = bounded_size(new_size or 0, pod, host.get_node_allocatable())
    _refuse_below_use(place, size, action)
    _remount(place.data_dir, size, mounter, action)


def _refuse_below_use(place: VolumePlace, size: int, action: str) -> None:
    filesystem = os.statvfs(place.data_dir)
    used = (filesystem.f_blocks - filesystem.f_bfree) * filesystem.f_frsize
    if size < used:
        raise InfeasibleError(
            f"the volume holds {used} bytes, {size} are less",
            action=action,
            subject=place.name,
            hint="remove files from the volume first",
        )


def _remount(path: str, size: int, mounter: MountInterface, action: str) -> None:
    """The kernel wants every option that is to stay: whether to swap cannot be changed, flags would be dropped."""
    resolved = os.path.realpath(path)
    table = [mount for mount in mounter.list_mounts() if mount.path == resolved]
    options = ["remount", f"size={size}"]
    if table:
        options[1:1] = [option for option in table[-1].options if option != "rw"]
        if NO_SWAP in table[-1].super_options:
            options.append(NO_SWAP)
    try:
        mounter.mount("tmpfs", path, "tmpfs", options, systemd=False)
    except MountError as error:
        raise MountError(
            f"the kernel refused {size} bytes: {error.reason}",
            action=action,
            subject=path,
            hint="the volume may have been filled further meanwhile; try again",
            errno=error.errno,
        ) from error
