"""The record ``vol_data.json`` beside a mount: the kubelet's, key for key, so that either can read the other's.

It holds what a teardown needs and never a secret (CSI-DATA). Whoever reads it must be ready for a missing, a broken
and a foreign one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping
from typing import Final

import msgspec

from volumehost.errors import VolumeHostError

FILE_NAME: Final = "vol_data.json"

SPEC_NAME: Final = "specVolID"
HANDLE: Final = "volumeHandle"
DRIVER: Final = "driverName"
NODE_NAME: Final = "nodeName"
ATTACHMENT: Final = "attachmentID"
LIFECYCLE_MODE: Final = "volumeLifecycleMode"
SELINUX_CONTEXT: Final = "seLinuxMountContext"
#: Ours: the driver was asked to stage the volume. Other readers ignore it (CSI-DATA-13, CSI-DEV-17).
STAGED: Final = "staged"

_MODE: Final = 0o640
#: A record has a few hundred bytes; a handle may have some thousand.
_USUAL_BYTES: Final = 1 << 13
_MOST_BYTES: Final = 1 << 20


_decode: Final = msgspec.json.Decoder(dict[str, str]).decode
_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class BrokenRecordError(VolumeHostError):
    """The record is there and cannot be read or makes no sense."""


def read(directory: str) -> dict[str, str]:
    """The record in the directory; a missing key reads as "" with ``get``, unknown ones are kept (CSI-DATA-08).

    :raises FileNotFoundError: there is none (CSI-DATA-09).
    :raises BrokenRecordError: it is not one flat JSON object of texts.
    """
    path = f"{directory}/{FILE_NAME}"
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            data = os.read(file, _USUAL_BYTES)
            if len(data) == _USUAL_BYTES:  # room for the largest costs more than all the rest of the reading
                data += os.read(file, _MOST_BYTES + 1 - _USUAL_BYTES)
        finally:
            os.close(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
    except OSError as error:
        raise _broken(path, error.strerror or str(error)) from error
    return _parse(data, path)


def _parse(data: bytes, path: str) -> dict[str, str]:
    if not data.strip():
        raise _broken(path, "it is empty")
    if len(data) > _MOST_BYTES:
        raise _broken(path, f"it has more than {_MOST_BYTES} bytes")
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _parse_slowly(data, path)


def _parse_slowly(data: bytes, path: str) -> dict[str, str]:
    """What the fast decoder refuses: another encoding, or what deserves to be told what is wrong with it."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"it is not JSON: {error}") from error
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise _broken(path, "it is not one JSON object of texts")
    return content


def write(directory: str, record: Mapping[str, str], *, is_new: bool = False) -> None:
    """Put the record into the directory, whole or not at all (CSI-DATA-11, improved); nothing when it is there as is.

    :param is_new: the directory was made just now, so that no record can be there.
    :raises OSError: it cannot be written; what was there before is still there.
    """
    from volumehost.sdk import replace_file

    if not is_new:
        with contextlib.suppress(FileNotFoundError, BrokenRecordError):
            if read(directory) == record:
                return
    text = _encode(record)
    replace_file(f"{directory}/{FILE_NAME}", f"{text}\n".encode(), mode=_MODE)


def remove(directory: str) -> None:
    """Remove the record, and what a crash left of one; success when there is none.

    :raises OSError: it cannot be removed; or a directory is in its place and something in it, which is kept.
    """
    path = f"{directory}/{FILE_NAME}"
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        try:
            os.unlink(path)
        except IsADirectoryError:
            os.rmdir(path)


def remove_directory(directory: str) -> None:
    """Remove the directory that held the record; success when it is gone.

    :raises OSError: something else is in it, which is kept.
    """
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return
    except OSError:
        leftover = f"{directory}/.{FILE_NAME}.new"
        if not os.path.lexists(leftover):
            raise
        os.unlink(leftover)
        os.rmdir(directory)


def _broken(path: str, reason: str) -> BrokenRecordError:
    return BrokenRecordError(reason, action=f"reading the record {path}", subject=path)
