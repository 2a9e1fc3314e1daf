"""The loop devices of our images: attached once for each volume, found again after a restart, never another's.

Every device that we attach carries a label with the volume's key. What has no such label is somebody else's, even when
it is attached to one of our images, and is left alone.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from typing import Final

from volumehost.errors import MountError
from volumehost.mount import loop
from volumehost_loop_driver.records import Settings

logger = logging.getLogger(__name__)

_LABEL: Final = "loop.csi.volumehost "
_VIEW: Final = " read-only"
_BLKRASET: Final = 0x1262
_SECTORS_PER_KIB: Final = 2


class Devices:
    """Loop devices by the key of the volume whose image they show.

    :param directory: where the images are: devices left on images that were deleted are told by it.
    """

    def __init__(self, directory: str) -> None:
        self._directory = os.path.realpath(directory)
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}

    def find_attached(self, known: set[str]) -> None:
        """After a start: learn what an earlier process has attached, and let go of devices whose volume is gone.

        :param known: keys of all volumes that there are.
        """
        for device in loop.list_attached():
            if not device.label.startswith(_LABEL):
                continue
            name = device.label.removeprefix(_LABEL)
            if name.removesuffix(_VIEW) in known:
                self._found[name] = device.device
            elif os.path.dirname(device.backing_file) == self._directory:
                logger.warning("%s shows %s, whose volume is gone: detaching it", device.device, device.backing_file)
                _let_go(device.device)

    def device(self, key: str, image: str) -> str | None:
        """The device that shows the image now, None when there is none; costs the same however many there are."""
        return self._attached(key, image)

    def attach(self, key: str, image: str, *, read_only: bool, direct_io: bool = False) -> str:
        """The device that shows the image; attached unless it is already.

        :raises MountError: it cannot be attached.
        """
        device = self._attached(key, image)
        if device is None:
            device = loop.attach(image, read_only=read_only, direct_io=direct_io, label=_LABEL + key)
            with self._lock:
                self._found[key] = device
        return device

    def attach_view(self, key: str, device: str) -> str:
        """A read-only device over the volume's own, for a path that must not write; one serves all such paths.

        It is put over the device, not the image, so that both read through the same cache.

        :raises MountError: it cannot be attached.
        """
        name = key + _VIEW
        view = self._attached(name, device)
        if view is None:
            view = loop.attach(device, read_only=True, label=_LABEL + name)
            with self._lock:
                self._found[name] = view
        return view

    def detach_view(self, key: str) -> None:
        """Let go of the read-only device; success when there is none."""
        self._detach(key + _VIEW)

    def detach(self, key: str) -> None:
        """Let go of all devices of the volume; success when there is none.

        :raises MountError: the kernel refuses.
        """
        self._detach(key + _VIEW)
        self._detach(key)

    def _detach(self, name: str) -> None:
        with self._lock:
            device = self._found.get(name)
        if device is None:
            return
        # The number may have been given to somebody else since, when somebody detached ours by hand.
        if loop.label_of(device) == _LABEL + name:
            _let_go(device)
        with self._lock:
            self._found.pop(name, None)

    def refresh_capacity(self, key: str) -> None:
        """Show the size that the image has become, through the read-only device, too.

        :raises MountError: the kernel refuses.
        """
        for name in (key, key + _VIEW):
            with self._lock:
                device = self._found.get(name)
            if device is not None and loop.label_of(device) == _LABEL + name:
                loop.refresh_capacity(device)

    def _attached(self, name: str, image: str) -> str | None:
        with self._lock:
            device = self._found.get(name)
        try:
            if device is None or not loop.is_attached_to(device, image):
                return None
        except OSError:
            return None
        return device


def apply_settings(device: str, settings: Settings, before: Settings) -> None:
    """Give the device what differs between ``before`` and ``settings``.

    :raises MountError: it cannot be changed; direct I/O above all, which not every filesystem has.
    """
    if settings.direct_io != before.direct_io:
        loop.set_direct_io(device, settings.direct_io)
    if settings.read_ahead_kib != before.read_ahead_kib and settings.read_ahead_kib is not None:
        _ioctl(device, _BLKRASET, settings.read_ahead_kib * _SECTORS_PER_KIB, "set the read-ahead of")


def flush(device: str) -> None:
    """Write to the image what the device's cache holds, as a raw user of the device does with fsync.

    :raises MountError: it cannot be written.
    """
    fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        raise MountError(
            error.strerror or str(error), action=f"write out {device}", subject=device, errno=error.errno
        ) from error
    finally:
        os.close(fd)


def _ioctl(device: str, request: int, argument: int, action: str) -> None:
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(fd, request, argument)
        finally:
            os.close(fd)
    except OSError as error:
        raise MountError(
            error.strerror or str(error), action=f"{action} {device}", subject=device, errno=error.errno
        ) from error


def _let_go(device: str) -> None:
    if not loop.detach(device):
        # The kernel has noted it and lets go with the last user, so that nothing is leaked.
        logger.warning("%s is still in use and goes with its last user", device)
