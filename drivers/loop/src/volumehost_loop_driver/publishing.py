"""The node's side of a volume for one pod: shown at a target path, and taken away."""

from __future__ import annotations

import os
from contextlib import suppress

from msgspec.structs import replace

from volumehost.errors import MountTimeoutError
from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
)
from volumehost_loop_driver.filesystems import Filesystems
from volumehost_loop_driver.records import Capability, Publication, StagedVolume, VolumeRecord
from volumehost_loop_driver.staging import READER_ONLY, Staging
from volumehost_loop_driver.state import WAIT_SECONDS, DriverState, shown
from volumehost_loop_driver.targets import make_target, remove_target
from volumehost_loop_driver.volumes import remove_volume

#: The one mode that lets a node show a volume at several targets (CSI-WIRE-17).
_MANY_TARGETS = "SINGLE_NODE_MULTI_WRITER"


class Publishing:
    """Publishes and unpublishes volumes. ``timeout``: seconds to wait for another call on the same one."""

    def __init__(self, state: DriverState, filesystems: Filesystems, staging: Staging) -> None:
        self._state = state
        self._filesystems = filesystems
        self._staging = staging

    def publish(
        self,
        id: str,
        staging_path: str,
        target: str,
        capability: Capability,
        *,
        read_only: bool = False,
        timeout: float = WAIT_SECONDS,
    ) -> None:
        """Show the staged volume at the target, which is made.

        :raises NotFoundError: there is no such volume.
        :raises AlreadyExistsError: it is there, for something else.
        :raises FailedPreconditionError: it is not staged there, or its access mode allows no second target.
        """
        state = self._state
        action = f"publish the volume {shown(id)} at {target}"
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volume(id)
            staged = self._staged(record, staging_path, capability, action)
            publication = Publication(capability, read_only or staged.read_only or capability.mode == READER_ONLY)
            there = is_there(state, staged, target, publication, action)
            if not there:
                self._check_alone(staged, target, capability, action)
            if capability.mount_group is not None and not capability.block and not staged.read_only:
                self._filesystems.give_to_group(staging_path, capability.mount_group)
            if not there:
                self._show(staged, target, publication, action)

    def _show(self, staged: StagedVolume, target: str, publication: Publication, action: str) -> None:
        """Make the target and mount on it; nothing is left of it when that fails."""
        state = self._state
        block = publication.capability.block
        make_target(target, state.mounter, directory=not block, action=action)
        source = staged.device if block else staged.staging_path
        try:
            if block and publication.read_only and not staged.read_only:
                source = state.devices.attach_view(staged.key, staged.device)
                publication = replace(publication, device=source)
            staged = replace(staged, publications={**staged.publications, target: publication})
            # What is about to come is remembered first: what a crash leaves is then known.
            state.node.put(staged)
            state.observe("publish:remembered")
            state.mounter.mount(source, target, "", ["bind", "ro"] if publication.read_only else ["bind"])
        except MountTimeoutError:
            raise  # it may still come about, and is remembered
        except BaseException:
            with suppress(OSError):
                (os.unlink if block else os.rmdir)(target)
            if target in staged.publications:
                self._forget(staged, target)
            raise
        state.observe("publish:mounted")

    def _staged(self, record: VolumeRecord, staging_path: str, capability: Capability, action: str) -> StagedVolume:
        staged = self._state.node.get(record.id)
        if staged is None or staged.staging_path != staging_path or not self._staging.is_staged(record, staged):
            raise FailedPreconditionError(
                f"it is not staged at {staging_path or 'any path'}",
                action=action,
                subject=record.id,
                hint="stage it first",
            )
        if staged.capability.block != capability.block:
            raise FailedPreconditionError(
                f"it is staged as a {'raw block device' if staged.capability.block else 'filesystem'}",
                action=action,
                subject=record.id,
                hint="unstage it first",
            )
        return staged

    def _check_alone(self, staged: StagedVolume, target: str, capability: Capability, action: str) -> None:
        if capability.mode == _MANY_TARGETS:
            return
        others = [other for other in self._state.published_targets(staged, staged.device) if other != target]
        if others:
            raise FailedPreconditionError(
                f"it is published at {others[0]}, and {capability.mode} allows one path",
                action=action,
                subject=staged.id,
                hint=f"unpublish it there, or use {_MANY_TARGETS}",
            )

    def unpublish(self, id: str, target: str, timeout: float = WAIT_SECONDS) -> None:
        """Take the volume from the target, which is removed; an ephemeral volume is deleted with it.

        Success when nothing of the volume is there.

        :raises NotFoundError: there is no such volume, and something is mounted at the target.
        :raises RemovalError: there are files in the target that were written while nothing was mounted there.
        """
        state = self._state
        action = f"unpublish the volume {shown(id)} from {target}"
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volumes.get(id)
            if record is None and (left := state.node.get(id)) is not None:
                self._leave(left, target, action)
                return
            if record is None:
                if os.path.lexists(target) and state.mounter.is_mount_point(target):
                    raise NotFoundError("there is no such volume", action=action, subject=id)
                return
            staged = state.node.get(id)
            device = state.device(record)
            if record.ephemeral and staged is not None and device is not None and target not in staged.publications:
                return  # it is elsewhere, and lives
            if not self._may_unmount(staged, device, target):
                raise FailedPreconditionError(
                    "something else is mounted there", action=action, subject=target, hint="unmount it"
                )
            remove_target(target, state.mounter)
            state.observe("unpublish:unmounted")
            if record.ephemeral:
                remove_volume(state, record)
            elif staged is not None and target in staged.publications:
                self._forget(staged, target)

    def _leave(self, staged: StagedVolume, target: str, action: str) -> None:
        """Take a volume away whose record cannot be read, by what is remembered here; its image is left alone."""
        state = self._state
        if not self._may_unmount(staged, state.device_of(staged.key), target):
            raise FailedPreconditionError(
                "something else is mounted there", action=action, subject=target, hint="unmount it"
            )
        remove_target(target, state.mounter)
        if target not in staged.publications:
            return
        if staged.staging_path:
            self._forget(staged, target)
        else:  # an ephemeral volume has one target, and no other stage
            state.devices.detach(staged.key)
            state.node.remove(staged)

    def _may_unmount(self, staged: StagedVolume | None, device: str | None, target: str) -> bool:
        """Whether what is at the target is the volume, or nothing is mounted there."""
        state = self._state
        if not os.path.lexists(target) or os.path.islink(target) or not state.mounter.is_mount_point(target):
            return True
        if staged is not None and target in staged.publications:
            return True
        return device is not None and (state.is_mounted(target, device) or state.shows_device(target, device))

    def _forget(self, staged: StagedVolume, target: str) -> None:
        gone = staged.publications[target]
        left = {path: item for path, item in staged.publications.items() if path != target}
        if gone.device and not any(item.device for item in left.values()):
            self._state.devices.detach_view(staged.key)
        self._state.node.put(replace(staged, publications=left))


def is_there(state: DriverState, staged: StagedVolume, target: str, publication: Publication, action: str) -> bool:
    """Whether just this is published already.

    :raises AlreadyExistsError: it is published there in another way (CSI-WIRE-17).
    """
    existing = staged.publications.get(target)
    if existing is None or not state.is_published(target, existing, staged.device):
        return False
    if not existing.capability.same_use(publication.capability) or existing.read_only != publication.read_only:
        raise AlreadyExistsError(
            f"it is published there {'read-only' if existing.read_only else 'writable'} as {existing.capability.mode}",
            action=action,
            subject=target,
            hint="unpublish it first",
        )
    return True
