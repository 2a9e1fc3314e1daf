"""The controller's side of volumes: created, copied, grown, changed, given to the node, deleted.

A volume is its record (see ``record_store``): its image is made before it and removed after it, so that a process that
is killed anywhere leaves either a whole volume or an image that nobody knows, which the next start removes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from volumehost.mount.format import DEFAULT_FS_TYPE
from volumehost_loop_driver.devices import apply_settings
from volumehost_loop_driver.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from volumehost_loop_driver.records import Settings, Source, VolumeRecord
from volumehost_loop_driver.sizes import DEFAULT_SIZE, MINIMUM_SIZES, choose_size, in_units
from volumehost_loop_driver.state import WAIT_SECONDS, DriverState, mounted_at, shown

#: The filesystem that nobody named.
ANY_FILESYSTEM: Final = "any"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A volume that somebody asks for. Sizes in bytes, 0 for any.

    ``fs_type`` is empty for a raw block device, ANY_FILESYSTEM for that of its source, or else ext4.
    """

    name: str
    required: int = 0
    limit: int = 0
    fs_type: str = ""
    thick: bool = False
    settings: Settings = field(default_factory=Settings)
    source: Source = field(default_factory=Source)


@dataclass(frozen=True, slots=True)
class _Origin:
    """The image that a volume is copied from ("" for none), its size in bytes, and what is on it."""

    image: str
    size: int
    fs_type: str


class Volumes:
    """Operations on volumes; each may be repeated. ``timeout``: seconds to wait for another call on the same one."""

    def __init__(self, state: DriverState) -> None:
        self._state = state

    def create(self, wanted: Wanted, timeout: float = WAIT_SECONDS) -> VolumeRecord:
        """The volume of this name, made unless it is there.

        :raises AlreadyExistsError: it is there, but is not what is wanted.
        :raises NotFoundError: its source is not there.
        :raises OutOfRangeError: no size fits.
        :raises ResourceExhaustedError: there is not enough space.
        """
        with self._state.locks.hold(f"volume name {wanted.name}", timeout=timeout):
            existing = self._state.volumes.by_name(wanted.name)
            if existing is not None:
                _check_same(existing, wanted)
                return existing
            with self._source(wanted.source, timeout) as origin:
                return self._make(wanted, origin)

    @contextmanager
    def _source(self, source: Source, timeout: float) -> Iterator[_Origin]:
        """What is to be copied, held still, and not deleted meanwhile."""
        state = self._state
        with ExitStack() as stack:
            if source.volume_id:
                stack.enter_context(state.locks.hold(f"volume {source.volume_id}", timeout=timeout))
                volume = state.volume(source.volume_id)
                image = stack.enter_context(state.held_still(volume))
                yield _Origin(image, state.volume(volume.id).size, volume.fs_type)
            elif source.snapshot_id:
                stack.enter_context(state.locks.hold(f"snapshot {source.snapshot_id}", timeout=timeout))
                snapshot = state.snapshots.get(source.snapshot_id)
                if snapshot is None:
                    raise NotFoundError(
                        "there is no such snapshot",
                        action=f"restore the snapshot {shown(source.snapshot_id)}",
                        subject=source.snapshot_id,
                    )
                yield _Origin(state.snapshot_images.path(snapshot.key), snapshot.size, snapshot.fs_type)
            else:
                yield _Origin("", 0, "")

    def _make(self, wanted: Wanted, origin: _Origin) -> VolumeRecord:
        state = self._state
        fs_type = wanted.fs_type
        if fs_type == ANY_FILESYSTEM:
            fs_type = origin.fs_type or DEFAULT_FS_TYPE
        action = f"create the volume {shown(wanted.name)}"
        size = choose_size(
            wanted.required,
            wanted.limit,
            minimum=max(origin.size, MINIMUM_SIZES[fs_type]),
            default=origin.size or DEFAULT_SIZE,
        )
        if 0 < wanted.required < origin.size:
            raise OutOfRangeError(
                f"{in_units(wanted.required)} are less than the {in_units(origin.size)} of its source", action=action
            )
        key = state.new_key()
        with state.capacity.reserve(size, action):
            if origin.image:
                state.images.copy(origin.image, key, size, thick=wanted.thick)
            else:
                state.images.create(key, size, thick=wanted.thick)
            state.observe("create:image")
            record = VolumeRecord(
                id=f"vol-{key}",
                key=key,
                name=wanted.name,
                size=size,
                fs_type=fs_type,
                thick=wanted.thick,
                source=wanted.source,
                settings=wanted.settings,
                first_settings=wanted.settings,
            )
            try:
                self._check_settings(record, wanted.settings)
                state.volumes.put(record)
            except BaseException:
                state.images.remove(key)
                raise
        state.observe("create:record")
        return record

    def delete(self, id: str, timeout: float = WAIT_SECONDS) -> None:
        """Delete the volume and its data; success when there is none.

        :raises FailedPreconditionError: it is published or staged.
        """
        state = self._state
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volumes.get(id)
            if record is None:
                return
            if record.published_node:
                raise FailedPreconditionError(
                    f"it is published to the node {record.published_node}",
                    action=f"delete the volume {id}",
                    subject=id,
                    hint="unpublish it first",
                )
            self._check_unused(record)
            remove_volume(state, record)

    def _check_unused(self, record: VolumeRecord) -> None:
        state = self._state
        staged, device = state.node.get(record.id), state.device(record)
        if staged is None or device is None:
            return
        if (
            state.published_targets(staged, device)
            or staged.capability.block
            or state.is_mounted(staged.staging_path, device)
        ):
            raise FailedPreconditionError(
                f"it is in use at {mounted_at(staged)}",
                action=f"delete the volume {record.id}",
                subject=record.id,
                hint="unpublish and unstage it first",
            )

    def publish(self, id: str, node_id: str, *, read_only: bool, timeout: float = WAIT_SECONDS) -> VolumeRecord:
        """Give the volume to the node.

        :raises NotFoundError: there is no such volume or node.
        :raises AlreadyExistsError: the node has it already, the other way of read-only and writable.
        :raises FailedPreconditionError: another node has it.
        """
        state = self._state
        action = f"publish the volume {shown(id)} to the node {shown(node_id)}"
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volume(id)
            if record.published_node and record.published_node != node_id:
                raise FailedPreconditionError(
                    f"it is published to the node {record.published_node}, and no volume is on two",
                    action=action,
                    subject=id,
                    hint="unpublish it there first",
                )
            self._check_node(node_id, action)
            if record.published_node:
                if record.published_read_only != read_only:
                    raise AlreadyExistsError(
                        f"it is published there {'read-only' if record.published_read_only else 'writable'}",
                        action=action,
                        subject=id,
                        hint="unpublish it first",
                    )
                return record
            record = replace(record, published_node=node_id, published_read_only=read_only)
            state.volumes.put(record)
            return record

    def _check_node(self, node_id: str, action: str) -> None:
        if node_id != self._state.node_id:
            raise NotFoundError(f"there is no such node, only {self._state.node_id}", action=action, subject=node_id)

    def unpublish(self, id: str, node_id: str, timeout: float = WAIT_SECONDS) -> None:
        """Take the volume from the node ("" for any); success when it is not there, or the volume is gone.

        :raises FailedPreconditionError: the node still has it staged.
        """
        state = self._state
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volumes.get(id)
            if record is None or not record.published_node or node_id not in {"", record.published_node}:
                return
            if record.published_node == state.node_id:
                self._check_unused(record)
            state.volumes.put(replace(record, published_node="", published_read_only=False))

    def expand(self, id: str, required: int, limit: int, timeout: float = WAIT_SECONDS) -> VolumeRecord:
        """Make the volume at least as large as asked for; its device, if attached, shows the new size at once.

        :raises NotFoundError: there is no such volume.
        :raises OutOfRangeError: it is larger than the limit already, no size fits, or there is not enough space; the
            volume is as it was.
        """
        state = self._state
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.settled(state.volume(id))
            size = choose_size(required, limit, minimum=record.size)
            if size > record.size:
                with self._room_to_grow(size - record.size, f"expand the volume {id} to {in_units(size)}"):
                    state.images.grow(record.key, size, thick=record.thick)
                    state.observe("expand:image")
                    record = replace(record, size=size)
                    state.volumes.put(record)
            state.observe("expand:record")
            # Also when nothing was to do: an earlier call may have come as far as here.
            state.devices.refresh_capacity(record.key)
            return record

    @contextmanager
    def _room_to_grow(self, size: int, action: str) -> Iterator[None]:
        """As ``Capacity.reserve``, with a final error: RESOURCE_EXHAUSTED leaves open whether the volume will grow yet
        (CSI-ERR-04), so whoever asked for too much could not ask for less.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._state.capacity.reserve(size, action))
            except ResourceExhaustedError as error:
                raise OutOfRangeError(error.reason, action=error.action, hint=error.hint) from error
            yield

    def modify(self, id: str, settings: Settings, timeout: float = WAIT_SECONDS) -> VolumeRecord:
        """Change settings, at once where the volume is attached.

        :raises NotFoundError: there is no such volume.
        :raises InvalidArgumentError: the disk cannot do it.
        """
        state = self._state
        with state.locks.hold(f"volume {id}", timeout=timeout):
            record = state.volume(id)
            if settings == record.settings:
                return record
            self._check_settings(record, settings)
            device = state.device(record)
            if device is not None:
                apply_settings(device, settings, record.settings)
            record = replace(record, settings=settings)
            state.volumes.put(record)
            return record

    def _check_settings(self, record: VolumeRecord, settings: Settings) -> None:
        if settings.direct_io and not self._state.images.can_bypass_cache(record.key):
            raise InvalidArgumentError(
                "directIO: the filesystem of the data directory has no direct I/O",
                action=f"set up the volume {record.id}",
                subject=record.id,
            )

    def condition(self, record: VolumeRecord) -> str:
        """What is wrong with the volume's image, "" when nothing is."""
        status = self._state.images.status(record.key)
        if status is None:
            return f"its image {self._state.images.path(record.key)} is missing"
        if status.size < record.size:
            return f"its image is {status.size} bytes long, it should be {record.size}"
        return ""


def remove_volume(state: DriverState, record: VolumeRecord) -> None:
    """Remove what there is of a volume that nobody uses. The caller holds its lock."""
    state.devices.detach(record.key)
    staged = state.node.get(record.id)
    if staged is not None:
        state.node.remove(staged)
    state.observe("delete:detached")
    state.volumes.remove(record)
    state.observe("delete:record")
    state.images.remove(record.key)


def _check_same(existing: VolumeRecord, wanted: Wanted) -> None:
    differences = []
    if existing.size < wanted.required or 0 < wanted.limit < existing.size:
        differences.append(f"its size is {in_units(existing.size)}")
    same = bool(existing.fs_type) if wanted.fs_type == ANY_FILESYSTEM else existing.fs_type == wanted.fs_type
    if not same:
        differences.append(f"it is {existing.fs_type or 'a raw block device'}, not {wanted.fs_type or 'one'}")
    if existing.thick != wanted.thick:
        differences.append(f"its provisioning is {'thick' if existing.thick else 'thin'}")
    if existing.source != wanted.source:
        differences.append("it has another source")
    if existing.first_settings != wanted.settings:
        differences.append("it has other mutable parameters")
    if differences:
        raise AlreadyExistsError(
            f"it is there, but {', '.join(differences)}",
            action=f"create the volume {shown(wanted.name)}",
            subject=wanted.name,
            hint="choose another name, or delete it",
        )
