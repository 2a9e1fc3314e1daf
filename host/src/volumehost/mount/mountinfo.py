"""Reads and parses the mount table (``/proc/*/mountinfo``); everything that looks at mounts goes through here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final

from volumehost.errors import InconsistentMountTableError, MountError
from volumehost.host_services import MountPoint

#: The mount table of the calling thread's mount namespace, which need not be the main thread's.
MOUNT_TABLE: Final = "/proc/thread-self/mountinfo"

_MINIMUM_FIELDS: Final = 10
_FIELDS_AFTER_SEPARATOR: Final = 3
_READS: Final = 10
_READ_BYTES: Final = 1 << 13
#: One line; the root and the path of it, in which spaces are escaped.
_ENTRY: Final = re.compile(r"^([^ \n]+ [^ \n]+ [^ \n]+ ([^ \n]+) ([^ \n]+) .*)$", re.MULTILINE)
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


class MountTableSyntaxError(MountError):
    """A line of a mount table that cannot be read. The text never quotes the line: options may be secret."""


def _read(path: str) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(file, _READ_BYTES):  # the kernel gives a page at a time
                parts.append(part)
        finally:
            os.close(file)
        return b"".join(parts).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise MountError(
            error.strerror or str(error), action="read the mount table", subject=path, errno=error.errno
        ) from error


def read_mount_table(path: str = MOUNT_TABLE) -> list[MountPoint]:
    """The mount table, in the kernel's order (MOUNT-21 to -25).

    :raises InconsistentMountTableError: it changed during every read of an old kernel (MOUNT-34).
    :raises MountError: it cannot be read.
    """
    return parse_mountinfo(read_consistently(path))


def read_consistently(path: str, *, kernel_release: str | None = None, read: Callable[[str], str] = _read) -> str:
    """The text of a mount table.

    Kernels from 5.8 on never lose a line to a concurrent change; older ones are read until two reads agree (MOUNT-25).

    :param kernel_release: as ``uname -r`` prints it; one that cannot be parsed counts as old.
    :param read: returns the text at the path.
    """
    text = read(path)
    if _reads_are_consistent(os.uname().release if kernel_release is None else kernel_release):
        return text
    for _ in range(_READS - 1):
        again = read(path)
        if again == text:
            return text
        text = again
    raise InconsistentMountTableError(
        f"the table changed during each of {_READS} reads", action=f"read {path}", subject=path, hint="try again"
    )


def _reads_are_consistent(release: str) -> bool:
    match = re.match(r"(\d+)\.(\d+)", release)
    return match is not None and (int(match[1]), int(match[2])) >= (5, 8)


def parse_mountinfo(text: str) -> list[MountPoint]:
    """Parse a whole table (MOUNT-21, -22); empty lines are skipped.

    :raises MountTableSyntaxError: a line is not in the kernel's format.
    """
    # The kernel escapes every newline inside a field, so "\n" alone separates lines (str.splitlines knows more ends).
    return [parse_line(line) for line in text.split("\n") if line]


def split_table(text: str) -> list[tuple[str, str, str]]:
    """(line, root, path) of each entry, for who will parse the few lines of thousands that matter."""
    found: list[tuple[str, str, str]] = _ENTRY.findall(text)
    return [(line, unescape(root), unescape(path)) for line, root, path in found] if "\\" in text else found


def parse_line(line: str) -> MountPoint:
    """One entry.

    :raises MountTableSyntaxError: it is not in the kernel's format.
    """
    # Runs of spaces cannot occur: an empty source is printed as an empty field between two single spaces.
    fields = line.split(" ")
    if len(fields) < _MINIMUM_FIELDS:
        raise MountTableSyntaxError(
            f"wrong number of fields (expected at least {_MINIMUM_FIELDS}, got {len(fields)})",
            action="parse the mount table",
        )
    separator = _find_separator(fields)
    if len(fields) - separator - 1 < _FIELDS_AFTER_SEPARATOR:
        raise MountTableSyntaxError(
            f"expected {_FIELDS_AFTER_SEPARATOR} fields after the separator, got {len(fields) - separator - 1}",
            action="parse the mount table",
        )
    major, minor = _parse_device(fields[2])
    escaped = "\\" in line
    return MountPoint(
        mount_id=_parse_number(fields[0], "mount id"),
        parent_id=_parse_number(fields[1], "parent mount id"),
        major=major,
        minor=minor,
        root=unescape(fields[3]) if escaped else fields[3],
        path=unescape(fields[4]) if escaped else fields[4],
        options=split_options(fields[5], escaped),
        optional_fields=tuple(fields[6:separator]),
        fs_type=unescape(fields[separator + 1]) if escaped else fields[separator + 1],
        source=unescape(fields[separator + 2]) if escaped else fields[separator + 2],
        # A filesystem that forgets to escape a space in its own options shows more fields than three.
        super_options=split_options(" ".join(fields[separator + 3 :]), escaped),
    )


def _find_separator(fields: list[str]) -> int:
    try:
        return fields.index("-", 6)
    except ValueError:
        raise MountTableSyntaxError(
            "expected 3 fields after the separator, but there is no separator", action="parse the mount table"
        ) from None


def _parse_device(pair: str) -> tuple[int, int]:
    major, colon, minor = pair.partition(":")
    if not colon or ":" in minor:
        raise MountTableSyntaxError("unexpected minor:major pair", action="parse the mount table")
    return _parse_number(major, "major device id"), _parse_number(minor, "minor device id")


def _parse_number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise MountTableSyntaxError(f"unable to parse {what}", action="parse the mount table")
    return int(text)


def unescape(text: str) -> str:
    r"""Decode the kernel's octal escapes (``\040`` is a space; MOUNT-24, improved).

    Only values that fit a byte are escapes; anything else stays as it is.
    """
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_decode_escape, text)


def _decode_escape(match: re.Match[str]) -> str:
    value = int(match[1], 8)
    # A byte above 127 is part of a name in some encoding: keep it as the surrogate that os.fsencode turns back.
    if value > 0o377:
        return match[0]
    return chr(value) if value < 0x80 else chr(0xDC00 + value)


def split_options(text: str, escaped: bool = True) -> tuple[str, ...]:
    """Split on commas outside double quotes, drop empty items, decode escapes (MOUNT-23)."""
    if '"' not in text and "\\" not in text:
        return tuple([item for item in text.split(",") if item])
    items: list[str] = []
    begin, quoted = 0, False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            items.append(text[begin:position])
            begin = position + 1
    items.append(text[begin:])
    return tuple([unescape(item) if escaped else item for item in items if item])
