"""A filesystem whose server never answers, for tests of what a hung or dead mount does to others.

Whatever asks it anything waits until it dies (or until the asking process is killed). It needs root and ``/dev/fuse``.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table

#: Its type in the mount table.
FS_TYPE = "fuse.hung"


class HungFilesystem:
    """One such filesystem; made by :func:`hung_filesystem`."""

    def __init__(self, path: str, descriptor: int) -> None:
        #: Where it is mounted.
        self.path = path
        self._descriptor = descriptor

    def die(self) -> None:
        """Its server dies: who waits for it gets ``ENOTCONN``, and so does everybody who asks from now on (BR-64).

        The mount stays, as it does when the daemon of a FUSE filesystem is killed.
        """
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


@contextmanager
def hung_filesystem(path: str | os.PathLike[str]) -> Iterator[HungFilesystem]:
    """Mount a filesystem at the directory that never answers anything (BR-52); it is dead and unmounted at the end.

    ::

        with hung_filesystem(path) as hung:
            ...          # os.stat(path) does not come back
            hung.die()   # os.stat(path) raises ENOTCONN

    The kernel's calls that wait for it can be killed, so that a process with such threads still ends.

    :raises OSError: it cannot be mounted: no ``/dev/fuse``, no privilege.
    """
    place = os.path.realpath(path)
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    hung = HungFilesystem(place, descriptor)
    try:
        options = f"fd={descriptor},rootmode={stat.S_IFDIR:o},user_id=0,group_id=0,allow_other"
        syscalls.mount("hung", place, FS_TYPE, syscalls.MS_NOSUID | syscalls.MS_NODEV, options)
        yield hung
    finally:
        hung.die()
        for mount in read_mount_table():
            if mount.path == place and mount.fs_type == FS_TYPE:  # the test may have unmounted it
                with contextlib.suppress(OSError):
                    syscalls.umount2(place, syscalls.MNT_DETACH | syscalls.UMOUNT_NOFOLLOW)
