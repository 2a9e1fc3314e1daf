"""The type of a hostPath volume: what must be at the path, and what is created when nothing is (HOSTPATH-22)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import MountError, SpecError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.host_services import HostUtils

ACTION = "hostPath type check failed"


class _Wanted(NamedTuple):
    """One type: the file type it asks for, how messages call that, and whether a missing path is created."""

    file_type: str
    text: str
    create: Callable[[HostUtils, str], None] | None = None


def _make_directory(host_util: HostUtils, path: str) -> None:
    host_util.make_dir(path)


def _make_file(host_util: HostUtils, path: str) -> None:
    host_util.make_file(path)


_TYPES = {
    "DirectoryOrCreate": _Wanted("Directory", "a directory", _make_directory),
    "Directory": _Wanted("Directory", "a directory"),
    "FileOrCreate": _Wanted("File", "a file", _make_file),
    "File": _Wanted("File", "a file"),
    "Socket": _Wanted("Socket", "a socket file"),
    "CharDevice": _Wanted("CharDevice", "a character device"),
    "BlockDevice": _Wanted("BlockDevice", "a block device"),
}

_TEXTS = {wanted.file_type: wanted.text for wanted in _TYPES.values()}


def check_type(path: str, wanted_type: str, host_util: HostUtils) -> None:
    """Check the path against the type; links are followed (HOSTPATH-24). An unset type checks nothing.

    :raises SpecError: there is no such type.
    :raises MountError: the check failed; the text says what is there instead.
    """
    if not wanted_type:
        return
    wanted = _TYPES.get(wanted_type)
    if wanted is None:
        raise SpecError(
            f"{wanted_type} is an invalid volume type", action=ACTION, subject=path, hint="one of " + ", ".join(_TYPES)
        )
    if _is_as_wanted(path, wanted, host_util):
        return
    if wanted.create is None or os.path.islink(path):
        # Nothing is created through a dangling link: who can write beside it would choose the place (HOSTPATH-25).
        raise _missing(path, wanted)
    try:
        wanted.create(host_util, path)
    except (OSError, VolumeHostError) as error:
        raise _creation_failed(path, wanted, error) from error
    if not _is_as_wanted(path, wanted, host_util):
        raise _missing(path, wanted)


def _is_as_wanted(path: str, wanted: _Wanted, host_util: HostUtils) -> bool:
    """True when it is, False when nothing is there; raises for everything else."""
    try:
        found = host_util.get_file_type(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unreadable(path, wanted, error) from error
    except VolumeHostError as error:  # it answered, and is of none of the kinds that volumes know
        kind = _other_kind(path) or str(error)
    else:
        if found == wanted.file_type:
            return True
        kind = _TEXTS.get(found, found)
    raise MountError(f"{path} is not {wanted.text}: it is {kind}", action=ACTION, subject=path)


def _other_kind(path: str) -> str:
    try:
        return "a named pipe" if stat.S_ISFIFO(os.stat(path).st_mode) else ""
    except OSError:
        return ""


def _missing(path: str, wanted: _Wanted) -> MountError:
    reason, hint = "it does not exist", ""
    if os.path.islink(path):
        reason = f"it is a symbolic link to {os.readlink(path)}, which does not exist"
    elif wanted.file_type in {"Directory", "File"}:
        hint = f"create it, or use the type {wanted.file_type}OrCreate"
    elif wanted.file_type == "Socket":
        hint = "is the program that listens there running?"
    return MountError(f"{path} is not {wanted.text}: {reason}", action=ACTION, subject=path, hint=hint)


def _unreadable(path: str, wanted: _Wanted, error: OSError) -> MountError:
    return MountError(
        f"{path} cannot be examined, so it is not known to be {wanted.text}: {error.strerror or error}",
        action=ACTION,
        subject=path,
        errno=error.errno,
    )


def _creation_failed(path: str, wanted: _Wanted, error: Exception) -> MountError:
    number = getattr(error, "errno", None)
    cause = os.strerror(number) if isinstance(number, int) else str(error)
    hint = ""
    if isinstance(error, FileNotFoundError) and wanted.file_type == "File":
        cause = f"its directory {os.path.dirname(path)} does not exist"
        hint = "FileOrCreate creates no directories: create it, or add a DirectoryOrCreate volume for it"
    return MountError(
        f"{path} does not exist and cannot be created as {wanted.text}: {cause}",
        action=ACTION,
        subject=path,
        hint=hint,
        errno=number,
    )
