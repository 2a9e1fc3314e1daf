"""Where manifests come from: files, directories, standard input. Reads text; knows nothing of what it means."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from volumehost.errors import ManifestError

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")
#: More than any object may have, many times over.
_MAX_BYTES = 16 * 1024 * 1024


class ManifestText(msgspec.Struct, frozen=True):
    """The text of one file; ``name`` is how messages call it."""

    name: str
    text: str


def read_sources(
    paths: Iterable[str], *, recursive: bool = False, stdin: BinaryIO | None = None
) -> Iterator[ManifestText]:
    """The texts of files in the order given, of a directory's manifests by name, of standard input for ``-``.

    :raises ManifestError: one cannot be read, or a directory has no manifests.
    """
    for path in paths:
        if path == STDIN:
            yield ManifestText(
                "standard input", _decode(_read(stdin or sys.stdin.buffer, "standard input"), "standard input")
            )
        elif os.path.isdir(path):
            yield from _read_directory(path, recursive=recursive)
        else:
            yield _read_file(path)


def _read_directory(path: str, *, recursive: bool) -> Iterator[ManifestText]:
    found = sorted(_manifests_in(path, recursive=recursive))
    if not found:
        deeper = "" if recursive else "; directories in it are not searched"
        raise ManifestError(f"has no {', '.join(_SUFFIXES)} files{deeper}", source=path, action=f"read {path}")
    for name in found:
        yield _read_file(name)


def _manifests_in(path: str, *, recursive: bool) -> Iterator[str]:
    for directory, inner, files in os.walk(path):
        yield from (os.path.join(directory, name) for name in files if name.endswith(_SUFFIXES))
        if not recursive:
            inner.clear()


def _read_file(path: str) -> ManifestText:
    try:
        with open(path, "rb") as file:
            # A pipe (process substitution) is fine; a device would never end.
            mode = os.fstat(file.fileno()).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
                raise ManifestError("is not a file", source=path, action=f"read {path}")
            return ManifestText(path, _decode(_read(file, path), path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ManifestError(reason or str(error), source=path, action=f"read {path}") from error


def _read(file: BinaryIO, name: str) -> bytes:
    data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ManifestError(f"is larger than {_MAX_BYTES} bytes", source=name, action=f"read {name}")
    return data


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ManifestError(
            f"line {line}: is not UTF-8 text", source=name, action=f"read {name}", hint="save it as UTF-8"
        ) from None
