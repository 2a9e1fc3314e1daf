"""A device that is taken off the node before it is mounted again, since what is there is not what is wanted.

Nothing of the volume may be mounted any more: a reboot, or an unmount behind our back (BR-58). Whoever serves it may
still count it as staged, say so when it is asked to stage it, and pods would be bound to a bare directory. Or it is
staged still as a pod had asked for that has gone, in a way that the next pod cannot use.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from volumehost.errors import VolumeHostError
from volumehost.node.journal.format import LOST, UNMOUNTED
from volumehost.node.operations.own_places import check_place_in_pod, check_place_of_device
from volumehost.node.state.states import DeviceState

if TYPE_CHECKING:
    from volumehost.node.operations.common import Services, Steps
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import AttachedVolume

logger = logging.getLogger(__name__)


def undo_lost_device(services: Services, use: VolumeUse, steps: Steps) -> bool:
    """Take the volume from every pod and off the node by its plugin, when all of that has gone; whether that was so.

    To be called while nothing else works on the volume.
    """
    volume = services.actual.get_volume(use.volume) if use.device_mountable else None
    if volume is None or volume.device_state is not DeviceState.UNCERTAIN:
        return False
    if not volume.device_mount_path:  # where it would be is not known, so neither is whether it has gone
        return False
    if not _has_gone(services, volume):
        return False
    steps.enter("undo-lost-device")
    try:
        check_place_of_device(services.host.layout, volume.device_mount_path)
        for mount in volume.pods.values():
            check_place_in_pod(
                services.host.layout, mount.pod_uid, mount.plugin_name, mount.inner_name, block=mount.is_block
            )
            use.plugin.new_unmounter(mount.inner_name, mount.pod_uid).tear_down()
        use.plugin.new_device_unmounter().unmount_device(volume.device_mount_path)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; what follows decides
        logger.warning("what is left of volume %s was not undone: %s", use.volume, error)
    else:
        services.actual.set_device(use.volume, DeviceState.NOT_MOUNTED)
        services.note({"v": use.volume, "dev": UNMOUNTED})
    return True


def is_shared_as_it_is(services: Services, use: VolumeUse) -> bool:
    """Whether a device that is mounted otherwise serves this pod all the same: pods have it from before a restart.

    Pods with different fsGroups share a device as the first of them had it mounted. Without the restart nobody would
    have asked for it again.
    """
    volume = services.actual.get_volume(use.volume)
    return (
        volume is not None
        and volume.device_state is DeviceState.UNCERTAIN
        and volume.device_owed
        and _may_be_used(volume, use.pod_uid)
    )


def undo_other_device(services: Services, use: VolumeUse, path: str, steps: Steps) -> bool:
    """Unmount the device that is mounted otherwise than this pod needs, and that no pod has; whether it was.

    So it is when the pod before had another fsGroup, and its device could not be unmounted before this one came, or
    before the process ended. Then it can be mounted. To be called while nothing else works on the volume.
    """
    volume = services.actual.get_volume(use.volume)
    if volume is None or volume.device_state is not DeviceState.UNCERTAIN or _may_be_used(volume, use.pod_uid):
        return False
    from volumehost.node.operations.device_operations import mounts_elsewhere

    steps.enter("undo-other-device")
    services.actual.mark_device_unmounting(use.volume, path)
    try:
        if mounts_elsewhere(path, list(use.plugin.get_device_mount_refs(path))):
            return False
        if volume.pods:
            use.plugin.new_unmounter(use.inner_name, use.pod_uid).tear_down()
        use.plugin.new_device_unmounter().unmount_device(path)
    except Exception as problem:  # noqa: BLE001 - a plugin may raise anything; that it cannot be mounted is told
        logger.warning("volume %s, mounted in another way, was not unmounted: %s", use.volume, problem)
        return False
    return True


def _may_be_used(volume: AttachedVolume, pod_uid: str) -> bool:
    """Whether a pod may have the volume. Not the one of that UID if its set-up was only begun: by a process that was
    killed before it could tell anybody that it was done.
    """
    others = {uid: mount for uid, mount in volume.pods.items() if uid != pod_uid}
    own = volume.pods.get(pod_uid)
    return bool(others) or (own is not None and (bool(own.path) or own.is_mount is not None))


def _has_gone(services: Services, volume: AttachedVolume) -> bool:
    """Whether it may have been mounted before this process began, and neither its device nor any pod's part of it is.

    What a former process was about when it was ended counts too: how that went nobody has written down.
    """
    mounts = volume.pods.values()
    known = services.journal.entry(volume.name) or {}
    was_mounted = (
        known.get("dev") == LOST
        or volume.from_directory
        or any(mount.is_mount or mount.reconstructed or mount.from_directory for mount in mounts)
    )
    if not was_mounted or any(mount.is_mount is False for mount in mounts):  # a driver that does not mount, perhaps
        return False
    paths = [volume.device_mount_path, *filter(None, (mount.mount_point or mount.path for mount in mounts))]
    return all(_is_bare(services, path) for path in paths)


def _is_bare(services: Services, path: str) -> bool:
    """Whether it is certain that nothing is mounted there."""
    try:
        return not services.host.get_mounter().is_mount_point(path)
    except FileNotFoundError:
        return True
    except (OSError, VolumeHostError):
        return False
