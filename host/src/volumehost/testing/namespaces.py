"""A private mount namespace for a test process: mounts made in tests stay in it and die with it."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
_THREAD_NAMESPACE = "/proc/thread-self/ns/mnt"

_made_private: set[str] = set()  # namespaces that this process, or the one it was forked from, has dealt with


def why_not_private() -> str:
    """The reason why this process cannot have mounts of its own, "" when it can."""
    if os.uname().sysname != "Linux":
        return "needs Linux"
    if os.geteuid() != 0:
        return "needs root"
    return ""


def has_own_mounts() -> bool:
    """Whether this thread has mounts that the process's parent does not see, so that every new one is its own."""
    try:
        return os.readlink(_THREAD_NAMESPACE) != os.readlink(f"/proc/{os.getppid()}/ns/mnt")
    except OSError:
        return False


def enter_private_mount_namespace() -> None:
    """Move this process (and what it starts) into a mount namespace of its own, with nothing propagating out.

    A process that has one of its own already stays in it; what was made shared in there since the first call stays so.

    :raises OSError: the kernel refuses, for want of CAP_SYS_ADMIN for example.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not has_own_mounts() and libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare of the mount namespace failed")
    namespace = os.readlink(_THREAD_NAMESPACE)
    if namespace in _made_private:
        return
    if libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None) != 0:
        raise OSError(ctypes.get_errno(), "making the mounts of the new namespace private failed")
    _made_private.add(namespace)
