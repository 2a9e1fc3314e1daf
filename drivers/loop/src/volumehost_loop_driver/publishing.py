"""The node's side of a volume for one pod: shown at a target path, and taken away; inline ephemeral volumes as well."""

from __future__ import annotations

import os

from msgspec.structs import replace

from volumehost.mount.cleanup import cleanup_mount_point
from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from volumehost_loop_driver.filesystems import Filesystems
from volumehost_loop_driver.records import Capability, Publication, StagedVolume, VolumeRecord
from volumehost_loop_driver.sizes import MINIMUM_SIZES, choose_size
from volumehost_loop_driver.staging import READER_ONLY, Staging
from volumehost_loop_driver.state import WAIT_SECONDS, DriverState, shown
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
            if self._is_there(staged, target, publication, action):
                return
            self._check_alone(staged, target, capability, action)
            self._make_target(target, directory=not capability.block, action=action)
            source = staging_path
            if capability.block:
                source = staged.device
                if publication.read_only and not staged.read_only:
                    source = state.devices.attach_view(record.key, staged.device)
                    publication = replace(publication, device=source)
            # What is about to come is remembered first: what a crash leaves is then known.
            state.node.put(replace(staged, publications={**staged.publications, target: publication}))
            state.observe("publish:remembered")
            options = ["bind", "ro"] if publication.read_only else ["bind"]
            state.mounter.mount(source, target, "", options)
            state.observe("publish:mounted")
            if not capability.block and not staged.read_only and capability.mount_group is not None:
                self._filesystems.give_to_group(staging_path, capability.mount_group)

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

    def _is_there(self, staged: StagedVolume, target: str, publication: Publication, action: str) -> bool:
        """Whether just this is published already."""
        existing = staged.publications.get(target)
        if existing is None or not self._staging.is_published(target, existing, staged.device):
            return False
        # The group is the pod's: it is applied again, not compared.
        same = replace(existing.capability, mount_group=None) == replace(publication.capability, mount_group=None)
        if not same or existing.read_only != publication.read_only:
            raise AlreadyExistsError(
                f"it is published there {'read-only' if existing.read_only else 'writable'} as "
                f"{existing.capability.mode}",
                action=action,
                subject=target,
                hint="unpublish it first",
            )
        return True

    def _check_alone(self, staged: StagedVolume, target: str, capability: Capability, action: str) -> None:
        if capability.mode == _MANY_TARGETS:
            return
        for other, publication in staged.publications.items():
            if other != target and self._staging.is_published(other, publication, staged.device):
                raise FailedPreconditionError(
                    f"it is published at {other}, and {capability.mode} allows one path",
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
            if record is None:
                if os.path.lexists(target) and state.mounter.is_mount_point(target):
                    raise NotFoundError("there is no such volume", action=action, subject=id)
                return
            staged = state.node.get(id)
            if self._may_unmount(record, staged, target):
                cleanup_mount_point(target, state.mounter)
            else:
                raise FailedPreconditionError(
                    "something else is mounted there", action=action, subject=target, hint="unmount it"
                )
            state.observe("unpublish:unmounted")
            if record.ephemeral:
                remove_volume(state, record)
            elif staged is not None and target in staged.publications:
                self._forget(staged, target)

    def _may_unmount(self, record: VolumeRecord, staged: StagedVolume | None, target: str) -> bool:
        """Whether what is at the target is the volume, or nothing is mounted there."""
        state = self._state
        if not os.path.lexists(target) or os.path.islink(target) or not state.mounter.is_mount_point(target):
            return True
        if staged is not None and target in staged.publications:
            return True
        device = state.device(record)
        return device is not None and (state.is_mounted(target, device) or state.shows_device(target, device))

    def _forget(self, staged: StagedVolume, target: str) -> None:
        gone = staged.publications[target]
        left = {path: item for path, item in staged.publications.items() if path != target}
        if gone.device and not any(item.device for item in left.values()):
            self._state.devices.detach_view(staged.key)
        self._state.node.put(replace(staged, publications=left))

    def _make_target(self, target: str, *, directory: bool, action: str) -> None:
        """Make the place to mount on; what an earlier call left serves, what somebody else put there does not."""
        try:
            if directory:
                os.mkdir(target, 0o750)
            else:
                os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            if os.path.islink(target) or not (os.path.isdir(target) if directory else os.path.isfile(target)):
                raise FailedPreconditionError(
                    f"the target is not {'a directory' if directory else 'a file'}",
                    action=action,
                    subject=target,
                    hint="remove it",
                ) from None
            if self._state.mounter.is_mount_point(target):
                raise FailedPreconditionError(
                    "something else is mounted at the target", action=action, subject=target, hint="unmount it"
                ) from None
            if os.listdir(target) if directory else os.path.getsize(target):
                raise FailedPreconditionError(
                    "the target is not empty, and what is in it would be hidden",
                    action=action,
                    subject=target,
                    hint="move it away",
                ) from None
        except FileNotFoundError as error:
            raise FailedPreconditionError(
                "the directory of the target does not exist", action=action, subject=target, hint="create it"
            ) from error

    # --- inline ephemeral volumes ---------------------------------------------------------------------------

    def publish_ephemeral(
        self,
        id: str,
        target: str,
        capability: Capability,
        size: int,
        *,
        read_only: bool = False,
        timeout: float = WAIT_SECONDS,
    ) -> None:
        """Make a volume that lives as long as the target shows it, and mount it there (CSI-EPH-01, -04).

        :param id: chosen by the caller, the same for each repetition.
        :param size: in bytes, 0 for the default.
        :raises AlreadyExistsError: there is another volume of this id.
        """
        state = self._state
        action = f"publish the ephemeral volume {shown(id)} at {target}"
        if capability.block:
            raise InvalidArgumentError("an ephemeral volume is a filesystem", action=action, subject=id)
        fs_type = capability.fs_type or "ext4"
        wanted = choose_size(size, 0, minimum=MINIMUM_SIZES[fs_type])
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volumes.get(id)
            made_now = record is None
            if record is None:
                record = self._make_ephemeral(id, wanted, fs_type, action)
            elif not record.ephemeral:
                raise AlreadyExistsError("it is there, and is not ephemeral", action=action, subject=id)
            staged = state.node.get(id)
            if staged is not None and self._staging.is_staged(record, staged):
                if self._is_there(staged, target, Publication(capability, read_only), action):
                    return
                raise FailedPreconditionError(
                    f"it is published at {', '.join(staged.publications)}", action=action, subject=id
                )
            try:
                self._make_target(target, directory=True, action=action)
                self._staging.bring_up(record, target, capability, read_only=read_only, may_format=True)
            except BaseException:
                if made_now:
                    # The caller may take the failure as final: nothing of it is left.
                    remove_volume(state, record)
                raise

    def _make_ephemeral(self, id: str, size: int, fs_type: str, action: str) -> VolumeRecord:
        state = self._state
        key = state.new_key()
        with state.capacity.reserve(size, action):
            state.images.create(key, size, thick=False)
            record = VolumeRecord(id=id, key=key, name=f"ephemeral {key}", size=size, fs_type=fs_type, ephemeral=True)
            try:
                state.volumes.put(record)
            except BaseException:
                state.images.remove(key)
                raise
        state.observe("ephemeral:record")
        return record
