"""Everything that the driver knows and has, opened at its start and put in order after whatever ended it before."""

from __future__ import annotations

import fcntl
import logging
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from volumehost.errors import RootDirectoryLockedError
from volumehost.host_services import MountInterface
from volumehost.mount.mounter import LinuxMounter
from volumehost_csi_kit.server import VolumeLocks
from volumehost_loop_driver import freezing
from volumehost_loop_driver.devices import Devices, flush
from volumehost_loop_driver.errors import DriverError, NotFoundError
from volumehost_loop_driver.images import Images
from volumehost_loop_driver.node_state import NodeState, read_boot_id
from volumehost_loop_driver.record_store import RecordStore
from volumehost_loop_driver.records import GroupRecord, Publication, SnapshotRecord, StagedVolume, VolumeRecord
from volumehost_loop_driver.sizes import Capacity
from volumehost_loop_driver.steps import StepObserver, unobserved

logger = logging.getLogger(__name__)

_LOCK_SECONDS: Final = 10.0
#: Seconds that a call waits for another on the same thing, when its caller set no deadline of its own.
WAIT_SECONDS: Final = 60.0


class DriverState:
    """The stores, images, devices and locks of one data directory, and the questions that all operations ask.

    :param capacity: bytes that may be promised in all, None for what the disk has.
    :param boot_id: of this boot; for tests.
    :raises RootDirectoryLockedError: another process works on the data directory.
    :raises OSError: it cannot be used.
    """

    def __init__(
        self,
        data_dir: str,
        node_id: str,
        *,
        capacity: int | None = None,
        mounter: MountInterface | None = None,
        observe: StepObserver = unobserved,
        boot_id: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.mounter: MountInterface = mounter if mounter is not None else LinuxMounter()
        self.observe = observe
        self.locks = VolumeLocks()
        os.makedirs(data_dir, 0o700, exist_ok=True)
        data_dir = os.path.realpath(data_dir)
        self._lock_fd = _lock(os.path.join(data_dir, "lock"))
        try:
            self._open(data_dir, capacity, boot_id if boot_id is not None else read_boot_id())
        except BaseException:
            self.close()
            raise

    def _open(self, data_dir: str, capacity: int | None, boot_id: str) -> None:
        self.volumes = RecordStore(os.path.join(data_dir, "volumes"), VolumeRecord)
        self.snapshots = RecordStore(os.path.join(data_dir, "snapshots"), SnapshotRecord)
        self.groups = RecordStore(os.path.join(data_dir, "groups"), GroupRecord)
        self.images = Images(self.volumes.directory)
        self.snapshot_images = Images(self.snapshots.directory)
        self.devices = Devices(self.volumes.directory)
        self.capacity = Capacity(data_dir, capacity, self.volumes, self.snapshots)
        self.node = NodeState(_made(os.path.join(data_dir, "node")), boot_id)
        self._recover()

    def close(self) -> None:
        """Let another process work on the data directory; mounts and devices stay."""
        os.close(self._lock_fd)

    def _recover(self) -> None:
        known = self.volumes.keys()
        self.images.remove_unknown(known)
        for snapshot in self.snapshots.page("", 0)[0]:
            if snapshot.group_id and self.groups.get(snapshot.group_id) is None and not self.groups.unreadable:
                logger.warning("%s is of a group snapshot that was cut short: removing it", snapshot.id)
                self.snapshots.remove(snapshot)
        self.snapshot_images.remove_unknown(self.snapshots.keys())
        self.devices.find_attached(known)
        for staged in self.node.all():
            if staged.frozen:
                self._thaw(staged)
            if self.volumes.get(staged.id) is None and staged.key not in self.volumes.unreadable:
                self.node.remove(staged)

    def _thaw(self, staged: StagedVolume) -> None:
        path = mounted_at(staged)
        logger.warning("a snapshot was cut short: thawing the filesystem at %s", path)
        try:
            freezing.thaw(path)
        except OSError:
            logger.exception("thawing %s failed, whoever writes there may hang", path)
        self.node.put(replace(staged, frozen=False))

    def new_key(self) -> str:
        """A stem for the files of a new record, which no other record has or will have."""
        return uuid.uuid4().hex

    def volume(self, id: str) -> VolumeRecord:
        """The volume's record.

        :raises NotFoundError: there is none.
        """
        record = self.volumes.get(id)
        if record is None:
            raise NotFoundError("there is no such volume", action=f"look for the volume {shown(id)}", subject=id)
        return record

    def settled(self, record: VolumeRecord) -> VolumeRecord:
        """The record of a volume whose image is in order: an operation on it that was cut short is made good.

        :raises DriverError: the image is missing or has become shorter.
        """
        action = f"use the image of the volume {record.id}"
        try:
            self.images.settle(record.key, record.size, thick=record.thick)
        except FileNotFoundError as error:
            raise DriverError(
                f"its image {self.images.path(record.key)} is missing", action=action, subject=record.id
            ) from error
        status = self.images.status(record.key)
        size = status.size if status is not None else 0
        if size < record.size:
            raise DriverError(
                f"its image is {size} bytes long, it should be {record.size}: the rest of its data is lost",
                action=action,
                subject=record.id,
                hint="restore it from a snapshot",
            )
        if size > record.size:
            # An expansion that was cut short after the image had grown.
            record = replace(record, size=size)
            self.volumes.put(record)
        return record

    def device(self, record: VolumeRecord) -> str | None:
        """The loop device that shows the volume now."""
        return self.device_of(record.key)

    def device_of(self, key: str) -> str | None:
        """The loop device that shows the image of this key now."""
        return self.devices.device(key, self.images.path(key))

    def is_mounted(self, path: str, device: str) -> bool:
        """Whether the filesystem on the device is mounted exactly there."""
        try:
            return os.stat(path).st_dev == os.stat(device).st_rdev and self.mounter.is_mount_point(path)
        except FileNotFoundError:
            return False

    def shows_device(self, path: str, device: str) -> bool:
        """Whether the path is this block device, bound there."""
        try:
            found, wanted = os.stat(path, follow_symlinks=False), os.stat(device)
        except FileNotFoundError:
            return False
        return wanted.st_rdev != 0 and found.st_rdev == wanted.st_rdev

    def is_published(self, target: str, publication: Publication, device: str) -> bool:
        """Whether the target shows the volume now."""
        if publication.capability.block:
            return self.shows_device(target, publication.device or device)
        return self.is_mounted(target, device)

    def published_targets(self, staged: StagedVolume, device: str) -> list[str]:
        """The targets that show the volume now."""
        return [target for target, item in staged.publications.items() if self.is_published(target, item, device)]

    @contextmanager
    def held_still(self, record: VolumeRecord) -> Iterator[str]:
        """The image of a volume, for a copy of one instant: a mounted filesystem is frozen, a raw device written out.

        The caller holds the volume's lock.

        :raises DriverError: the image is not in order.
        :raises MountError: it cannot be frozen.
        """
        record = self.settled(record)
        image = self.images.path(record.key)
        staged, device = self.node.get(record.id), self.device(record)
        if staged is None or device is None:
            yield image
            return
        path = mounted_at(staged)
        if staged.capability.block or staged.read_only or not self.is_mounted(path, device):
            flush(device)
            yield image
            return
        self.node.put(replace(staged, frozen=True))
        try:
            with freezing.frozen(path):
                self.observe("freeze:frozen")
                yield image
        finally:
            self.node.put(replace(staged, frozen=False))


def mounted_at(staged: StagedVolume) -> str:
    """Where the filesystem itself is mounted: an ephemeral volume has no staging path, but one target."""
    return staged.staging_path or next(iter(staged.publications), "")


def shown(text: str) -> str:
    """A handle or name from outside, fit for an error text."""
    return repr(text) if len(text) <= 128 else f"{text[:125]!r}..."


def _made(directory: str) -> str:
    os.makedirs(directory, 0o700, exist_ok=True)
    return directory


def _lock(path: str) -> int:
    """Hold the data directory; a predecessor that is just ending is waited for."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(0.05)
                continue
            os.close(fd)
            raise RootDirectoryLockedError(
                "another loop driver works on it",
                action=f"open the data directory {os.path.dirname(path)}",
                subject=os.path.dirname(path),
                hint="end it, or give this one another --data-dir",
            ) from None
        return fd
