"""Finds out, before anything is done, whether this process can mount, and says precisely what is missing if not.

Called by the command line and the node host at their start.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from typing import Final

from volumehost.errors import MissingPrivilegeError
from volumehost.mount import syscalls

_CAP_SYS_ADMIN: Final = 21
_CAP_SYS_RESOURCE: Final = 24
_WHOLE_MACHINE: Final = ["0", "0", "4294967295"]
_UNSHARE_SECONDS: Final = 10.0


def check_mount_privileges(*, private_namespace: bool = False, proc: str = "/proc/self") -> None:
    """Return when this process can mount in its mount namespace; changes nothing.

    :param private_namespace: whether it must also be able to make a mount namespace of its own (``unshare -m``).
    :param proc: where the kernel tells about the process.
    :raises MissingPrivilegeError: it cannot; the reason names what is missing, the hint what to do.
    """
    if sys.platform != "linux":
        raise _missing(f"this is {sys.platform}", "mounting volumes needs Linux")
    status = _read(f"{proc}/status")
    confined = in_user_namespace(_read(f"{proc}/uid_map"))
    if not has_capability(status, _CAP_SYS_ADMIN):
        raise _missing(*_no_capability(confined))
    _check(_error_of_harmless_mount(), "mount(2)", status, confined)
    if private_namespace:
        _check(_error_of_unshare(), "a mount namespace of its own (unshare -m)", status, confined)


def has_capability(status: str, number: int) -> bool:
    """Whether the effective set in the text of ``/proc/<pid>/status`` has the capability."""
    field = _field(status, "CapEff")
    return bool(field and int(field, 16) >> number & 1)


def may_grow_mounted_ext(proc: str = "/proc/self") -> bool:
    """Whether the kernel will let this process grow an ext4 filesystem that is mounted; xfs asks for nothing more."""
    return has_capability(_read(f"{proc}/status"), _CAP_SYS_RESOURCE)


def in_user_namespace(uid_map: str) -> bool:
    """Whether the text of ``/proc/<pid>/uid_map`` is one of a user namespace other than the machine's first."""
    return uid_map.split() != _WHOLE_MACHINE


def explain_refusal(number: int, what: str, status: str, confined: bool) -> tuple[str, str]:
    """(reason, hint) for a refusal although the process has the capability."""
    text = os.strerror(number)
    if confined and number == errno.EPERM:
        return (
            f"the kernel refuses {what} inside this user namespace, which does not own the mount namespace: {text}",
            "make both together: unshare --user --map-root-user --mount",
        )
    if number == errno.EACCES:
        return f"a security module (AppArmor, SELinux) denies {what}: {text}", "change its profile for this process"
    if _field(status, "Seccomp") == "2":
        return f"a seccomp filter refuses {what}: {text}", "in a container, start it with another seccomp profile"
    return f"the kernel refuses {what}: {text}", ""


def _missing(reason: str, hint: str) -> MissingPrivilegeError:
    return MissingPrivilegeError(reason, action="prepare to mount volumes", subject="mount", hint=hint)


def _check(number: int, what: str, status: str, confined: bool) -> None:
    if number:
        raise _missing(*explain_refusal(number, what, status, confined))


def _no_capability(confined: bool) -> tuple[str, str]:
    user = os.geteuid()
    who = "root" if user == 0 else f"user {user}"
    where = " inside a user namespace" if confined else ""
    hint = "run it as root" if user else "in a container, start it privileged or with --cap-add SYS_ADMIN"
    return f"the process runs as {who}{where} without the capability CAP_SYS_ADMIN", hint


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise _missing(f"{path} cannot be read: {error.strerror}", "mount proc at /proc") from error


def _field(status: str, name: str) -> str:
    for line in status.splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    return ""


def _error_of_harmless_mount() -> int:
    """The errno with which mount(2) is refused, 0 when it is permitted.

    The call names two propagation types at once, which the kernel finds invalid only after it found it permitted.
    """
    try:
        syscalls.mount("", "/", "", syscalls.MS_SHARED | syscalls.MS_PRIVATE, "")
    except OSError as error:
        return 0 if error.errno == errno.EINVAL else error.errno or errno.EPERM
    return 0


def _error_of_unshare() -> int:
    """The errno with which a new mount namespace is refused, 0 when one can be had; tried in a thread that ends."""
    refusal: list[int] = []

    def attempt() -> None:
        try:
            syscalls.unshare(syscalls.CLONE_NEWNS)
        except OSError as error:
            refusal.append(error.errno or errno.EPERM)

    thread = threading.Thread(target=attempt, name="volumehost-unshare", daemon=True)
    thread.start()
    thread.join(_UNSHARE_SECONDS)
    if thread.is_alive():
        return errno.ETIMEDOUT
    return refusal[0] if refusal else 0
