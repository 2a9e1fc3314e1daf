"""Inline ephemeral volumes: made when they are published, deleted when they are unpublished (CSI-EPH rules)."""

from __future__ import annotations

import os
from contextlib import suppress

from volumehost.mount.format import DEFAULT_FS_TYPE
from volumehost_loop_driver.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError
from volumehost_loop_driver.publishing import is_there
from volumehost_loop_driver.records import Capability, Publication, VolumeRecord
from volumehost_loop_driver.sizes import MINIMUM_SIZES, choose_size
from volumehost_loop_driver.staging import Staging
from volumehost_loop_driver.state import WAIT_SECONDS, DriverState, shown
from volumehost_loop_driver.targets import make_target
from volumehost_loop_driver.volumes import remove_volume


class EphemeralVolumes:
    """Publishes ephemeral volumes; ``Publishing.unpublish`` takes them away."""

    def __init__(self, state: DriverState, staging: Staging) -> None:
        self._state = state
        self._staging = staging

    def publish(
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
        fs_type = capability.fs_type or DEFAULT_FS_TYPE
        wanted = choose_size(size, 0, minimum=MINIMUM_SIZES[fs_type])
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volumes.get(id)
            made_now = record is None
            if record is None and state.node.get(id) is not None:
                reason = "it is there, and its record cannot be read"
                raise FailedPreconditionError(reason, action=action, subject=id, hint="unpublish it first")
            if record is None:
                record = self._make(id, wanted, fs_type, action)
            elif not record.ephemeral:
                raise AlreadyExistsError("it is there, and is not ephemeral", action=action, subject=id)
            staged = state.node.get(id)
            if staged is not None and self._staging.is_staged(record, staged):
                if is_there(state, staged, target, Publication(capability, read_only), action):
                    return
                raise FailedPreconditionError(
                    f"it is published at {', '.join(staged.publications)}", action=action, subject=id
                )
            device = state.device(record)
            if staged is None and device is not None and state.is_mounted(target, device):
                self._staging.remember(record, target, capability, read_only=read_only)  # by an earlier process
                return
            try:
                make_target(target, state.mounter, directory=True, action=action)
                self._staging.bring_up(record, target, capability, read_only=read_only, may_format=True)
            except BaseException:
                with suppress(OSError):
                    os.rmdir(target)
                if made_now:
                    # The caller may take the failure as final: nothing of it is left.
                    remove_volume(state, record)
                raise

    def _make(self, id: str, size: int, fs_type: str, action: str) -> VolumeRecord:
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
