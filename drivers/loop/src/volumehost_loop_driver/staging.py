"""The node's side of a volume as a whole: its device attached, its filesystem made, checked, mounted, grown; and back.

What is remembered says what was asked for; whether it is so is asked of the kernel, so that a call after a crash, a
reboot, or somebody's ``umount`` finds out and goes on from what is there.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress

from volumehost.errors import VolumeHostError
from volumehost_loop_driver.devices import apply_settings
from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
)
from volumehost_loop_driver.filesystems import Filesystems, Prepared, is_read_only
from volumehost_loop_driver.records import Capability, Publication, Settings, StagedVolume, VolumeRecord
from volumehost_loop_driver.sizes import in_units
from volumehost_loop_driver.state import WAIT_SECONDS, DriverState, mounted_at, shown

logger = logging.getLogger(__name__)

READER_ONLY = "SINGLE_NODE_READER_ONLY"


class Staging:
    """Stages and unstages volumes. ``timeout``: seconds to wait for another call on the same one."""

    def __init__(self, state: DriverState, filesystems: Filesystems) -> None:
        self._state = state
        self._filesystems = filesystems

    def stage(
        self, id: str, path: str, capability: Capability, *, read_only: bool = False, timeout: float = WAIT_SECONDS
    ) -> None:
        """Attach the volume's device, and mount its filesystem at the staging path.

        :raises NotFoundError: there is no such volume.
        :raises AlreadyExistsError: it is staged there, for something else.
        :raises FailedPreconditionError: it is staged elsewhere, or something else is at the path.
        """
        state = self._state
        read_only = read_only or capability.mode == READER_ONLY
        action = f"stage the volume {shown(id)} at {path}"
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volume(id)
            staged = state.node.get(id)
            if staged is not None and self.is_staged(record, staged):
                self._check_same(staged, path, capability, read_only, action)
                # The group is the pod's: it is applied again, not compared.
                if capability.mount_group is not None and not read_only:
                    self._filesystems.give_to_group(path, capability.mount_group)
                return
            self._check_free(path, action)
            if capability.block:
                self._attach(state.settled(record), path, capability, read_only=read_only)
            else:
                self.bring_up(record, path, capability, read_only=read_only, may_format=not read_only)

    def is_staged(self, record: VolumeRecord, staged: StagedVolume) -> bool:
        """Whether what is remembered is there."""
        device = self._state.device(record)
        if device is None or device != staged.device:
            return False
        return staged.capability.block or self._state.is_mounted(mounted_at(staged), device)

    @staticmethod
    def _check_same(staged: StagedVolume, path: str, capability: Capability, read_only: bool, action: str) -> None:
        if staged.staging_path != path:
            raise FailedPreconditionError(
                f"it is staged at {staged.staging_path}", action=action, subject=staged.id, hint="unstage it first"
            )
        if not staged.capability.same_use(capability) or staged.read_only != read_only:
            raise AlreadyExistsError(
                "it is staged there with another capability", action=action, subject=staged.id, hint="unstage it first"
            )

    def _check_free(self, path: str, action: str) -> None:
        try:
            mounted = self._state.mounter.is_mount_point(path)
        except FileNotFoundError:
            os.mkdir(path, 0o750)
            return
        if not os.path.isdir(path) or os.path.islink(path):
            raise FailedPreconditionError("the staging path is not a directory", action=action, subject=path)
        if mounted:
            raise FailedPreconditionError(
                "something else is mounted there", action=action, subject=path, hint="unmount it"
            )

    def bring_up(
        self, record: VolumeRecord, path: str, capability: Capability, *, read_only: bool, may_format: bool
    ) -> None:
        """Make the filesystem if there is none, attach, mount at the path; all undone when anything fails."""
        state = self._state
        record = state.settled(record)
        prepared = self._filesystems.prepare(state.images, record, capability.fs_type, may_format=may_format)
        state.observe("stage:formatted")
        device = self._attach(record, path, capability, read_only=read_only)
        try:
            self._mount(device, path, prepared, capability, read_only=read_only)
        except BaseException:
            self._take_down(record, path, device)
            raise
        state.observe("stage:mounted")

    def remember(self, record: VolumeRecord, path: str, capability: Capability, *, read_only: bool) -> None:
        """Write down anew what is set up, where that was lost."""
        self._attach(record, path, capability, read_only=read_only)

    def _attach(self, record: VolumeRecord, path: str, capability: Capability, *, read_only: bool) -> str:
        """Attach and remember. A filesystem's device is writable even for readers: its journal may want replaying."""
        state = self._state
        # An ephemeral volume has no staging path: its filesystem is mounted at the target itself.
        target = {path: Publication(capability, read_only)} if record.ephemeral else {}
        device = state.devices.attach(
            record.key,
            state.images.path(record.key),
            read_only=read_only and capability.block,
            direct_io=record.settings.direct_io,
        )
        state.observe("stage:attached")
        try:
            apply_settings(device, record.settings, Settings(direct_io=record.settings.direct_io))
            state.node.put(
                StagedVolume(
                    id=record.id,
                    key=record.key,
                    device=device,
                    capability=capability,
                    staging_path="" if record.ephemeral else path,
                    read_only=read_only,
                    publications=target,
                )
            )
        except BaseException:
            state.devices.detach(record.key)
            raise
        return device

    def _mount(self, device: str, path: str, prepared: Prepared, capability: Capability, *, read_only: bool) -> None:
        self._filesystems.mount(device, path, prepared, capability.mount_flags, read_only=read_only)
        if read_only:
            return
        if prepared.small:
            try:
                self._filesystems.grow(device, path)
            except FailedPreconditionError as error:
                # It can be used as it is; NodeExpandVolume tells its caller.
                logger.warning("the volume is staged, smaller than it should be: %s", error)
        if capability.mount_group is not None:
            self._filesystems.give_to_group(path, capability.mount_group)

    def _take_down(self, record: VolumeRecord, path: str, device: str) -> None:
        """Undo after a failure; what goes wrong here is told, but hides nothing."""
        state = self._state
        try:
            if state.is_mounted(path, device):
                state.mounter.unmount(path)
            state.devices.detach(record.key)
            staged = state.node.get(record.id)
            if staged is not None:
                state.node.remove(staged)
        except (VolumeHostError, OSError) as error:
            logger.warning("undoing the set-up of the volume %s: %s", record.id, error)

    def unstage(self, id: str, path: str, timeout: float = WAIT_SECONDS) -> None:
        """Unmount from the staging path and detach the device; success when nothing of the volume is there.

        :raises FailedPreconditionError: it is still published.
        :raises NotFoundError: there is no such volume, and something is mounted at the path.
        """
        state = self._state
        action = f"unstage the volume {shown(id)} from {path}"
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volumes.get(id)
            staged = state.node.get(id)
            if record is not None:
                key = record.key
            elif staged is not None:  # its record cannot be read; its image is left alone
                key = staged.key
            elif _is_mounted(state, path):
                raise NotFoundError("there is no such volume", action=action, subject=id)
            else:
                return
            device = state.device_of(key)
            if staged is not None and staged.staging_path != path and device is not None:
                # It is staged elsewhere: nothing of it is here.
                return
            if staged is not None and device is not None:
                self._check_unpublished(staged, device, action)
            if device is not None and state.is_mounted(path, device):
                state.mounter.unmount(path)
            state.observe("unstage:unmounted")
            state.devices.detach(key)
            state.observe("unstage:detached")
            if staged is not None:
                state.node.remove(staged)

    def _check_unpublished(self, staged: StagedVolume, device: str, action: str) -> None:
        live = [
            target for target, item in staged.publications.items() if self._state.is_published(target, item, device)
        ]
        if live:
            raise FailedPreconditionError(
                f"it is published at {', '.join(live)}", action=action, subject=staged.id, hint="unpublish it there"
            )

    def expand(self, id: str, path: str, required: int, timeout: float = WAIT_SECONDS) -> int:
        """Grow what the node shows to the volume's size; that size in bytes. Success when it is that large.

        :raises NotFoundError: there is no such volume, or it is not at the path.
        :raises FailedPreconditionError: it is not staged, or read-only.
        :raises OutOfRangeError: the volume is smaller than ``required``: the controller has not expanded it.
        """
        state = self._state
        action = f"expand the volume {shown(id)} at {path}"
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volume(id)
            staged = self._staged_at(record, path, action)
            record = state.settled(record)
            if required > record.size:
                raise OutOfRangeError(
                    f"it is {in_units(record.size)} large, less than {in_units(required)}",
                    action=action,
                    subject=id,
                    hint="expand it with the controller first",
                )
            state.devices.refresh_capacity(record.key)
            if not staged.capability.block:
                mounted = mounted_at(staged)
                if staged.read_only or is_read_only(mounted):
                    raise FailedPreconditionError(
                        "a read-only filesystem does not grow", action=action, subject=id, hint="use it read-write"
                    )
                self._filesystems.grow(staged.device, mounted)
            return record.size

    def _staged_at(self, record: VolumeRecord, path: str, action: str) -> StagedVolume:
        staged = self._state.node.get(record.id)
        if staged is None or not self.is_staged(record, staged):
            raise FailedPreconditionError("it is not staged", action=action, subject=record.id, hint="stage it first")
        if path != staged.staging_path and path not in staged.publications:
            raise NotFoundError("it is not there", action=action, subject=path)
        return staged


def _is_mounted(state: DriverState, path: str) -> bool:
    with suppress(FileNotFoundError):
        return state.mounter.is_mount_point(path)
    return False
