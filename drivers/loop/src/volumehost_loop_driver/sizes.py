"""Which size a volume gets, and how much is left to promise (CSI-WIRE-09)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from volumehost.sdk import Quantity
from volumehost_loop_driver.errors import OutOfRangeError, ResourceExhaustedError
from volumehost_loop_driver.records import GiB, MiB

#: Sizes are multiples of this, in bytes: the block of the filesystems, and of every disk.
GRANULARITY: Final = 4096
DEFAULT_SIZE: Final = GiB
#: The smallest image that mkfs makes a filesystem on, in bytes; "" is a raw block device.
MINIMUM_SIZES: Final = {"": GRANULARITY, "ext4": MiB, "xfs": 300 * MiB}
#: No file is larger, on any filesystem.
MAXIMUM_SIZE: Final = (1 << 63) - GRANULARITY


def in_units(size: int) -> str:
    """Bytes as people write them: ``64Mi``."""
    return str(Quantity.of(size))


def choose_size(required: int, limit: int, *, minimum: int, default: int = DEFAULT_SIZE) -> int:
    """The smallest size that satisfies the range, rounded up to whole blocks, in bytes.

    :param required, limit: 0 for none.
    :param minimum: what the volume needs in any case.
    :param default: taken when ``required`` is 0, less where the limit is below.
    :raises OutOfRangeError: there is no such size.
    """
    action = f"choose a size between {in_units(required)} and {in_units(limit) if limit else 'any'}"
    if required < 0 or limit < 0 or 0 < limit < required:
        raise OutOfRangeError("the range holds no size", action=action)
    wanted = required
    if not required:
        wanted = min(default, limit) // GRANULARITY * GRANULARITY if limit else default
    size = -(-max(wanted, minimum) // GRANULARITY) * GRANULARITY
    if size > MAXIMUM_SIZE:
        raise OutOfRangeError("no file can be that large", action=action)
    if limit and size > limit:
        raise OutOfRangeError(
            f"the volume needs at least {in_units(minimum)}, in steps of {GRANULARITY} bytes", action=action
        )
    return size


class HasTotal(Protocol):
    """Something that promises space."""

    @property
    def total_size(self) -> int:
        """In bytes."""
        ...


class Capacity:
    """What may still be promised: what is free on the disk, and what is left of a limit, if one was given.

    :param limit: bytes that all volumes and snapshots together may promise, None for no limit.
    """

    def __init__(self, directory: str, limit: int | None, *users: HasTotal) -> None:
        self._directory = directory
        self._limit = limit
        self._users = users
        self._lock = threading.Lock()
        self._reserved = 0

    def available(self) -> int:
        """Bytes that one more volume may have."""
        found = os.statvfs(self._directory)
        free = found.f_bavail * found.f_frsize
        return max(0, free if self._limit is None else min(free, self._left(self._limit)))

    def _left(self, limit: int) -> int:
        return limit - self._reserved - sum(user.total_size for user in self._users)

    @contextmanager
    def reserve(self, size: int, action: str, *, on_disk: bool = True) -> Iterator[None]:
        """Count ``size`` bytes as promised until the end of a ``with`` block, by when a record counts them.

        :param on_disk: whether they must be free on the disk, too.
        :raises ResourceExhaustedError: there is not that much.
        """
        with self._lock:
            if self._limit is not None and size > self._left(self._limit):
                raise ResourceExhaustedError(
                    f"{in_units(size)} are more than the {in_units(max(0, self._left(self._limit)))} that are left of "
                    f"the driver's capacity of {in_units(self._limit)}",
                    action=action,
                    hint="delete volumes or snapshots, or start the driver with a larger --capacity",
                )
            if on_disk and size > self.available():
                raise ResourceExhaustedError(
                    f"{in_units(size)} are more than the {in_units(self.available())} that are free on the disk",
                    action=action,
                    hint=f"make room on the filesystem of {self._directory}, or ask for less",
                )
            self._reserved += size
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= size
