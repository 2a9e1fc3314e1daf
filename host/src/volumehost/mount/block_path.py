"""Maps block devices into pods: binds and links of device nodes, and the loop devices that lock them (BLOCK rules).

Called by the node's block volume operations. Every step can be repeated; taking away what is gone already succeeds.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat

from volumehost.errors import MountError, VolumeHostError
from volumehost.host_services import MountInterface
from volumehost.mount import loop
from volumehost.mount.mount_point import is_likely_not_mount_point
from volumehost.mount.removal import remove_all_one_filesystem

logger = logging.getLogger(__name__)

_DIR_MODE = 0o750


class BlockPathHandler:
    """Maps devices with one mounter.

    :param mounter: makes and ends the bind mounts.
    """

    def __init__(self, mounter: MountInterface) -> None:
        self._mounter = mounter

    # --- one mapping --------------------------------------------------------------------------------------

    def map_device(self, device_path: str, map_path: str, link_name: str, *, bind_mount: bool) -> None:
        """Show the device as ``map_path/link_name``, as a bind mount or as a link (BLOCK-01 to -03).

        :raises MountError: an argument is unusable, or something else is mapped there.
        """
        action = f"map the device {device_path} at {os.path.join(map_path, link_name)}"
        _check(device_path, "the device path is empty", action)
        _check(map_path, "the map path is empty", action)
        _check(os.path.isabs(map_path), f"the map path must be absolute: {map_path}", action)
        _check(_is_name(link_name), f"the link name must be one path component: {link_name!r}", action)
        try:
            os.makedirs(map_path, _DIR_MODE, exist_ok=True)
            path = os.path.join(map_path, link_name)
            if bind_mount:
                self._bind(device_path, path, action)
            else:
                _link(device_path, path)
        except OSError as error:
            raise _error(error, action, device_path) from error

    def _bind(self, device_path: str, path: str, action: str) -> None:
        device, mapped = _device_number(os.path.realpath(device_path)), _device_number(path)
        if device is None:
            raise MountError("it is no device", action=action, subject=device_path, hint="see what published it there")
        if mapped is not None:
            if mapped != device:
                raise MountError("another device is mapped there", action=action, subject=path, hint="unmap it first")
            return
        if os.path.lexists(path) and self._mounter.is_mount_point(path):
            raise MountError("something that is no device is mounted there", action=action, subject=path)
        # Only an empty file of our own serves as the place: a link left there would lead the bind elsewhere.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, _DIR_MODE))
        self._mounter.mount(device_path, path, "", ["bind"], systemd=False)

    def unmap_device(self, map_path: str, link_name: str, *, bind_mount: bool) -> None:
        """Take the mapping away; success when it is gone (BLOCK-04).

        :raises MountError: it is still in use, or cannot be removed.
        """
        path = os.path.join(map_path, link_name)
        action = f"unmap the device at {path}"
        _check(map_path, "the map path is empty", action)
        _check(_is_name(link_name), f"the link name must be one path component: {link_name!r}", action)
        try:
            if bind_mount:
                self._unbind(path)
            elif self.is_symlink_exist(path):
                os.unlink(path)
            elif os.path.lexists(path):
                logger.warning("%s is not a link, so it is not removed as one", path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _error(error, action, path) from error

    def _unbind(self, path: str) -> None:
        if self.is_device_bind_mount_exist(path):
            self._mounter.unmount(path)
        os.unlink(path)

    def remove_map_path(self, map_path: str) -> None:
        """Remove the directory of mappings and what is left in it, but nothing mounted (BLOCK-05)."""
        _check(map_path, "the map path is empty", "remove a map path")
        remove_all_one_filesystem(map_path)

    # --- questions ----------------------------------------------------------------------------------------

    @staticmethod
    def is_symlink_exist(path: str) -> bool:
        """Whether it is a symbolic link (BLOCK-05)."""
        return os.path.islink(path)

    @staticmethod
    def is_device_bind_mount_exist(path: str) -> bool:
        """Whether a device is bind mounted there (BLOCK-05)."""
        return _device_number(path) is not None

    @staticmethod
    def get_device_bind_mount_refs(device_path: str, directory: str) -> list[str]:
        """Entries of the directory that are this very device, one per pod (BLOCK-06).

        :raises OSError: the directory cannot be read; that it does not exist is for the caller to judge.
        """
        wanted = _device_number(os.path.realpath(device_path))
        with os.scandir(directory) as entries:
            paths = sorted(entry.path for entry in entries)
        return [path for path in paths if wanted is not None and _device_number(path) == wanted]

    # --- loop devices as locks ----------------------------------------------------------------------------

    @staticmethod
    def attach_file_device(path: str) -> str:
        """The loop device of the file or device, attached now if there is none yet (BLOCK-07).

        One that was attached here before and has lost its path, because the device's bind mount was taken away behind
        our back, is let go of: nobody would find it again, and it keeps the device busy.

        :raises MountError: it does not exist or cannot be attached.
        """
        existing = loop.find(path)
        _detach_lost(path, existing)
        return existing[0] if existing else loop.attach(path, label=mapping_label(path))

    @staticmethod
    def detach_file_device(path: str) -> None:
        """Detach every loop device of the file or device; success when there is none."""
        found = loop.find(path)
        for device in found:
            loop.detach(device)
        _detach_lost(path, found)

    @staticmethod
    def get_loop_device(path: str) -> str:
        """The loop device of the file or device; MountError ``device not found`` when there is none."""
        return loop.get_loop_device(path)

    # --- a whole volume -----------------------------------------------------------------------------------

    def map_block_volume(
        self, device_path: str, global_map_path: str, pod_map_path: str, volume_name: str, pod_uid: str
    ) -> str:
        """Map a block volume for a pod: bind, link, lock (BLOCK-08); the loop device that locks it."""
        self.map_device(device_path, global_map_path, pod_uid, bind_mount=True)
        self.map_device(device_path, pod_map_path, volume_name, bind_mount=False)
        return self.attach_file_device(os.path.join(global_map_path, pod_uid))

    def unmap_block_volume(self, global_map_path: str, pod_map_path: str, volume_name: str, pod_uid: str) -> None:
        """The reverse (BLOCK-09)."""
        self.detach_file_device(os.path.join(global_map_path, pod_uid))
        self.unmap_device(pod_map_path, volume_name, bind_mount=False)
        self.unmap_device(global_map_path, pod_uid, bind_mount=True)

    @staticmethod
    def find_global_map_path_uuid_from_pod(plugin_dir: str, map_path: str, pod_uid: str) -> str:
        """The pod's bind, below the plugin's block directory, of the device that ``map_path`` shows (BLOCK-10).

        :raises MountError: there is none.
        """
        wanted = _device_number(os.path.realpath(map_path))
        if wanted is not None:
            for directory, below, names in os.walk(plugin_dir, followlinks=False):
                # A staged volume can be mounted in here; what it holds is not ours to search.
                below[:] = [name for name in below if is_likely_not_mount_point(os.path.join(directory, name))]
                path = os.path.join(directory, pod_uid)
                if pod_uid in names and _device_number(path) == wanted:
                    return path
        raise MountError(
            f"no mapping of that device for pod {pod_uid} below {plugin_dir}",
            action=f"find the global map path of {map_path}",
            subject=map_path,
        )


def mapping_label(path: str) -> str:
    """By which a loop device is known again, whatever became of the path that it was attached at."""
    return f"volumehost-map:{hashlib.sha256(os.fsencode(path)).hexdigest()[:40]}"


def _detach_lost(path: str, others: list[str]) -> None:
    for lost in loop.list_attached():
        if lost.label == mapping_label(path) and lost.device not in others:
            loop.detach(lost.device)


def _is_name(text: str) -> bool:
    return text not in {"", ".", ".."} and "/" not in text and "\0" not in text


def _check(condition: object, reason: str, action: str) -> None:
    if not condition:
        raise MountError(reason, action=action)


def _error(error: OSError, action: str, subject: str) -> VolumeHostError:
    return MountError(error.strerror or str(error), action=action, subject=subject, errno=error.errno)


def _device_number(path: str) -> tuple[bool, int] | None:
    """(is a block device, device number), None when it is no device or missing; links are not followed."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if not (stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        return None
    return stat.S_ISBLK(found.st_mode), found.st_rdev


def _link(device_path: str, path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(device_path, path)
