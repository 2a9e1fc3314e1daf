"""Payloads of the atomic writer: which files, with what content, and which paths are allowed (ATOMIC-03 to -06)."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from volumehost.errors import PayloadError

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255


@dataclass(frozen=True, slots=True)
class FileProjection:
    """One file: content, exact permission bits, and the owner's uid unless it is to stay the writer's.

    The content never shows in ``repr``: it may be a secret.
    """

    data: bytes
    mode: int
    fs_user: int | None = None

    def __repr__(self) -> str:
        """Size, mode and owner."""
        return f"<FileProjection {len(self.data)} bytes, mode {self.mode:#o}, owner {self.fs_user}>"


def clean_payload(payload: Mapping[str, FileProjection]) -> dict[str, FileProjection]:
    """The payload under cleaned paths: ``./bar`` becomes ``bar``, ``foo///bar`` becomes ``foo/bar``.

    :raises PayloadError: a path is invalid, two paths clean to the same one, or one is a directory of another.
    """
    cleaned: dict[str, FileProjection] = {}
    origin: dict[str, str] = {}
    for path, projection in payload.items():
        validate_payload_path(path)
        clean = posixpath.normpath(path)
        validate_payload_path(clean)
        if clean in cleaned:
            raise _refused(path, f"names the same file as {origin[clean]!r}")
        cleaned[clean] = projection
        origin[clean] = path
    for path in cleaned:
        for parent in parents(path):
            if parent in cleaned:
                raise _refused(origin[path], f"lies below {origin[parent]!r}, which is a file")
    return cleaned


def validate_payload_path(path: str) -> None:
    """Check one relative path (ATOMIC-04); lengths are those of its bytes.

    :raises PayloadError: it says what is wrong.
    """
    if not path or path == ".":
        raise _refused(path, "must not be empty")
    if "\0" in path:
        raise _refused(path, "must not contain NUL")
    if path.startswith("/"):
        raise _refused(path, "must be relative")
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise _refused(path, f"is longer than {MAX_PATH_BYTES} bytes")
    components = path.split("/")
    for component in components:
        if component == "..":
            raise _refused(path, "must not contain '..'")
        if len(os.fsencode(component)) > MAX_NAME_BYTES:
            raise _refused(path, f"has a name longer than {MAX_NAME_BYTES} bytes")
    if components[0].startswith(".."):
        raise _refused(path, "must not start with '..': such names belong to the writer")


def parents(path: str) -> list[str]:
    """The directories above a clean relative path, the nearest first."""
    found = []
    while path := posixpath.dirname(path):
        found.append(path)
    return found


def first_component(path: str) -> str:
    """The name in the volume's root through which the path is reached."""
    return path.split("/", 1)[0]


def _refused(path: str, reason: str) -> PayloadError:
    shown = path if len(path) <= MAX_NAME_BYTES else f"{path[:80]}..."
    return PayloadError(f"the path {reason}", action=f"checking the file {shown!r} of a volume", subject=shown)
