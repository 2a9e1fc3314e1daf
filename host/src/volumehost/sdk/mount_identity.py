"""Which mount an open file belongs to: all that tells a bind mount from a directory of the same filesystem."""

from __future__ import annotations

from volumehost.mount import syscalls


def mount_id_of_fd(fd: int) -> int:
    """The id of the mount through which the file was opened; unique among the mounts that exist at one time."""
    flags = syscalls.AT_EMPTY_PATH | syscalls.AT_STATX_DONT_SYNC
    mount_id = syscalls.statx(fd, "", flags, syscalls.STATX_MNT_ID).mount_id
    return mount_id if mount_id is not None else _from_proc(fd)


def _from_proc(fd: int) -> int:
    """For kernels before 5.8."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name == "mnt_id":
                return int(value)
    raise OSError("the kernel does not tell mount ids")
