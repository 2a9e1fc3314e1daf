"""Splits mount options into what the kernel calls take: flags, attributes of one mount, propagation and data.

Called by the mounter. Options that only user space understands (``_netdev``, ``x-...``) are dropped here, options that
need a program around the call (``loop``, ``X-mount.mkdir``) are marked.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from volumehost.mount import syscalls as s
from volumehost.mount.mountinfo import split_options

_FLAGS: Final[dict[str, tuple[int, int]]] = {
    # name: (flags to set, flags to clear)
    "ro": (s.MS_RDONLY, 0),
    "rw": (0, s.MS_RDONLY),
    "nosuid": (s.MS_NOSUID, 0),
    "suid": (0, s.MS_NOSUID),
    "nodev": (s.MS_NODEV, 0),
    "dev": (0, s.MS_NODEV),
    "noexec": (s.MS_NOEXEC, 0),
    "exec": (0, s.MS_NOEXEC),
    "nosymfollow": (s.MS_NOSYMFOLLOW, 0),
    "symfollow": (0, s.MS_NOSYMFOLLOW),
    "sync": (s.MS_SYNCHRONOUS, 0),
    "async": (0, s.MS_SYNCHRONOUS),
    "dirsync": (s.MS_DIRSYNC, 0),
    "mand": (s.MS_MANDLOCK, 0),
    "nomand": (0, s.MS_MANDLOCK),
    "noatime": (s.MS_NOATIME, s.MS_RELATIME | s.MS_STRICTATIME),
    "atime": (0, s.MS_NOATIME),
    "relatime": (s.MS_RELATIME, s.MS_NOATIME | s.MS_STRICTATIME),
    "norelatime": (0, s.MS_RELATIME),
    "strictatime": (s.MS_STRICTATIME, s.MS_NOATIME | s.MS_RELATIME),
    "nostrictatime": (0, s.MS_STRICTATIME),
    "nodiratime": (s.MS_NODIRATIME, 0),
    "diratime": (0, s.MS_NODIRATIME),
    "lazytime": (s.MS_LAZYTIME, 0),
    "nolazytime": (0, s.MS_LAZYTIME),
    "iversion": (s.MS_I_VERSION, 0),
    "noiversion": (0, s.MS_I_VERSION),
    "silent": (s.MS_SILENT, 0),
    "loud": (0, s.MS_SILENT),
    "remount": (s.MS_REMOUNT, 0),
    "bind": (s.MS_BIND, 0),
    "rbind": (s.MS_BIND | s.MS_REC, 0),
}

_PROPAGATION: Final[dict[str, int]] = {
    "shared": s.MS_SHARED,
    "rshared": s.MS_SHARED | s.MS_REC,
    "slave": s.MS_SLAVE,
    "rslave": s.MS_SLAVE | s.MS_REC,
    "private": s.MS_PRIVATE,
    "rprivate": s.MS_PRIVATE | s.MS_REC,
    "unbindable": s.MS_UNBINDABLE,
    "runbindable": s.MS_UNBINDABLE | s.MS_REC,
}

_USER_SPACE: Final = frozenset(
    {
        "defaults",
        "auto",
        "noauto",
        "user",
        "nouser",
        "users",
        "nousers",
        "owner",
        "noowner",
        "group",
        "nogroup",
        "_netdev",
        "nofail",
    }
)
_IMPLIED_BY_USER: Final = s.MS_NOSUID | s.MS_NODEV | s.MS_NOEXEC
_IMPLIED: Final[dict[str, int]] = {
    "user": _IMPLIED_BY_USER,
    "users": _IMPLIED_BY_USER,
    "owner": s.MS_NOSUID | s.MS_NODEV,
    "group": s.MS_NOSUID | s.MS_NODEV,
}
#: Options for which mount(8) does something beside the system call.
_NEEDS_PROGRAM: Final = frozenset(
    {"loop", "offset", "sizelimit", "encryption", "helper", "uhelper", "verity.hashdevice"}
)

_ATTRIBUTES: Final[dict[int, int]] = {
    s.MS_RDONLY: s.MOUNT_ATTR_RDONLY,
    s.MS_NOSUID: s.MOUNT_ATTR_NOSUID,
    s.MS_NODEV: s.MOUNT_ATTR_NODEV,
    s.MS_NOEXEC: s.MOUNT_ATTR_NOEXEC,
    s.MS_NOSYMFOLLOW: s.MOUNT_ATTR_NOSYMFOLLOW,
    s.MS_NODIRATIME: s.MOUNT_ATTR_NODIRATIME,
}
_ATIME: Final[dict[int, int]] = {
    s.MS_NOATIME: s.MOUNT_ATTR_NOATIME,
    s.MS_STRICTATIME: s.MOUNT_ATTR_STRICTATIME,
    s.MS_RELATIME: s.MOUNT_ATTR_RELATIME,
}


@dataclass(frozen=True, slots=True)
class MountOptions:
    """Options in the kernel's terms. ``data`` are those of the filesystem itself, never shown in a repr.

    ``cleared`` are flags that were asked to be off (``rw``, ``exec``): of use to a remount alone.
    """

    flags: int
    propagation: tuple[int, ...]
    data: tuple[str, ...]
    needs_program: str = ""
    cleared: int = 0

    @property
    def bind(self) -> bool:
        """Whether it is a bind mount, recursive or not."""
        return bool(self.flags & s.MS_BIND) and not self.flags & s.MS_REMOUNT

    @property
    def only_propagation(self) -> bool:
        """Whether nothing but a change of propagation is asked for."""
        return bool(self.propagation) and not self.flags and not self.data

    def attributes(self) -> tuple[int, int]:
        """(to set, to clear) for mount_setattr(2); positive options like ``rw`` loosen nothing (MOUNT-09)."""
        to_set = to_clear = 0
        for flag, attribute in _ATTRIBUTES.items():
            if self.flags & flag:
                to_set |= attribute
        for flag, attribute in _ATIME.items():
            if self.flags & flag:
                to_set |= attribute
                to_clear = s.MOUNT_ATTR_ATIME_MASK
        return to_set, to_clear

    def __repr__(self) -> str:
        return f"<MountOptions flags={self.flags:#x} and {len(self.data)} of the filesystem>"


@functools.lru_cache(maxsize=64)
def known_options(options: tuple[str, ...]) -> MountOptions:
    """The same as :func:`parse_options`, for options that are no secret: thousands of mounts have the same."""
    return parse_options(options)


def parse_options(options: Sequence[str]) -> MountOptions:
    """Sort the options, the later ones winning over the earlier ones, as mount(8) does."""
    flags = cleared = 0
    propagation: list[int] = []
    data: list[str] = []
    program = ""
    for option in [item for text in options for item in split_options(text, escaped=False)]:
        name = option.partition("=")[0]
        if option in _FLAGS:
            to_set, to_clear = _FLAGS[option]
            flags = flags & ~to_clear | to_set
            cleared = cleared & ~to_set | to_clear
        elif option in _PROPAGATION:
            propagation.append(_PROPAGATION[option])
        elif option in _USER_SPACE:
            flags |= _IMPLIED.get(option, 0)
        elif name in _NEEDS_PROGRAM or name.startswith("X-mount."):
            program = program or name
        elif name.startswith(("x-", "X-")) or name == "comment":
            continue
        elif option:
            data.append(option)
    return MountOptions(flags, tuple(propagation), tuple(data), program, cleared)
