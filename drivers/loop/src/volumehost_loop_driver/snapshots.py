"""Snapshots: whole images of their own, so that a snapshot and its volume can be deleted in any order.

Where the filesystem of the data directory can share blocks (xfs, btrfs) one costs no space and no time; elsewhere the
blocks in use are copied. A group of them shows one instant of all its volumes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from volumehost_loop_driver.records import GroupRecord, SnapshotRecord, VolumeRecord
from volumehost_loop_driver.state import WAIT_SECONDS, DriverState, shown


class Snapshots:
    """Operations on snapshots; each may be repeated. ``timeout``: seconds to wait for another call on the same one."""

    def __init__(self, state: DriverState) -> None:
        self._state = state

    def create(self, name: str, volume_id: str, timeout: float = WAIT_SECONDS) -> SnapshotRecord:
        """The snapshot of this name, taken unless it is there.

        :raises AlreadyExistsError: it is there, but of another volume.
        :raises NotFoundError: there is no such volume.
        :raises ResourceExhaustedError: there is not enough space.
        """
        state = self._state
        with state.locks.hold(f"snapshot name {name}", timeout=timeout):
            existing = state.snapshots.by_name(name)
            if existing is not None:
                if existing.source_volume_id != volume_id:
                    raise AlreadyExistsError(
                        f"it is there, but of the volume {existing.source_volume_id}",
                        action=f"take the snapshot {shown(name)} of the volume {shown(volume_id)}",
                        subject=name,
                        hint="choose another name",
                    )
                return existing
            with state.locks.hold(f"volume {volume_id}", timeout=timeout):
                volume = state.volume(volume_id)
                with state.held_still(volume) as image:
                    return self._take(name, volume, image, time.time_ns())

    def _take(self, name: str, volume: VolumeRecord, image: str, created_ns: int, group_id: str = "") -> SnapshotRecord:
        state = self._state
        key = state.new_key()
        # Expanding may have been cut short: what is copied is what there is.
        size = state.volume(volume.id).size
        with state.capacity.reserve(size, f"take the snapshot {shown(name)}", on_disk=False):
            state.snapshot_images.copy(image, key, size, thick=False)
            state.observe("snapshot:image")
            record = SnapshotRecord(
                id=f"snap-{key}",
                key=key,
                name=name,
                source_volume_id=volume.id,
                size=size,
                created_ns=created_ns,
                fs_type=volume.fs_type,
                group_id=group_id,
            )
            try:
                state.snapshots.put(record)
            except BaseException:
                state.snapshot_images.remove(key)
                raise
        state.observe("snapshot:record")
        return record

    def delete(self, id: str, timeout: float = WAIT_SECONDS) -> None:
        """Delete the snapshot; success when there is none.

        :raises InvalidArgumentError: it belongs to a group, which is deleted as a whole.
        """
        state = self._state
        with state.locks.hold(f"snapshot {id}", timeout=timeout):
            record = state.snapshots.get(id)
            if record is None:
                return
            if record.group_id and state.groups.get(record.group_id) is not None:
                raise InvalidArgumentError(
                    f"it belongs to the group {record.group_id}",
                    action=f"delete the snapshot {id}",
                    subject=id,
                    hint="delete the group snapshot",
                )
            self._remove(record)

    def _remove(self, record: SnapshotRecord) -> None:
        self._state.snapshots.remove(record)
        self._state.observe("delete-snapshot:record")
        self._state.snapshot_images.remove(record.key)

    # --- groups -------------------------------------------------------------------------------------------

    def create_group(self, name: str, volume_ids: Sequence[str], timeout: float = WAIT_SECONDS) -> GroupRecord:
        """The group snapshot of this name, taken of all its volumes at one instant unless it is there.

        :raises AlreadyExistsError: it is there, but of other volumes.
        :raises NotFoundError: there is no such volume.
        :raises ResourceExhaustedError: there is not enough space; none of the snapshots is left.
        """
        state = self._state
        wanted = tuple(sorted(set(volume_ids)))
        with state.locks.hold(f"group name {name}", timeout=timeout):
            existing = state.groups.by_name(name)
            if existing is not None:
                if existing.source_volume_ids != wanted:
                    raise AlreadyExistsError(
                        "it is there, but of other volumes",
                        action=f"take the group snapshot {shown(name)}",
                        subject=name,
                        hint="choose another name",
                    )
                return existing
            return self._take_group(name, wanted, timeout)

    def _take_group(self, name: str, volume_ids: tuple[str, ...], timeout: float) -> GroupRecord:
        state = self._state
        key = state.new_key()
        id = f"group-{key}"
        taken: list[SnapshotRecord] = []
        created_ns = time.time_ns()
        try:
            with ExitStack() as stack:
                images: list[tuple[VolumeRecord, str]] = []
                for volume_id in volume_ids:  # sorted, so that two groups never wait for each other
                    stack.enter_context(state.locks.hold(f"volume {volume_id}", timeout=timeout))
                    volume = state.volume(volume_id)
                    images.append((volume, stack.enter_context(state.held_still(volume))))
                for volume, image in images:
                    taken.append(self._take(f"{id} {volume.id}", volume, image, created_ns, id))
            state.observe("group:snapshots")
            group = GroupRecord(
                id=id,
                key=key,
                name=name,
                created_ns=created_ns,
                snapshot_ids=tuple(snapshot.id for snapshot in taken),
                source_volume_ids=volume_ids,
            )
            state.groups.put(group)
        except BaseException:
            for snapshot in taken:
                self._remove(snapshot)
            raise
        return group

    def delete_group(self, id: str, timeout: float = WAIT_SECONDS) -> None:
        """Delete the group and its snapshots; success when there is none."""
        state = self._state
        with state.locks.hold(f"group {id}", timeout=timeout):
            group = state.groups.get(id)
            if group is None:
                return
            # Last, so that a call that is cut short can be repeated.
            for snapshot_id in group.snapshot_ids:
                with state.locks.hold(f"snapshot {snapshot_id}", timeout=timeout):
                    snapshot = state.snapshots.get(snapshot_id)
                    if snapshot is not None:
                        self._remove(snapshot)
            state.groups.remove(group)

    def group(self, id: str) -> tuple[GroupRecord, list[SnapshotRecord]]:
        """The group and its snapshots.

        :raises NotFoundError: there is none.
        :raises FailedPreconditionError: it is being deleted.
        """
        group = self._state.groups.get(id)
        if group is None:
            raise NotFoundError("there is no such group", action=f"look for the group snapshot {shown(id)}", subject=id)
        found = [self._state.snapshots.get(snapshot_id) for snapshot_id in group.snapshot_ids]
        snapshots = [snapshot for snapshot in found if snapshot is not None]
        if len(snapshots) < len(found):
            raise FailedPreconditionError(
                "some of its snapshots are gone, deleting it was begun",
                action=f"look for the group snapshot {id}",
                subject=id,
                hint="delete it again",
            )
        return group, snapshots
