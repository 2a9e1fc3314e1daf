"""What a distribution's RECORD says about its files: are they all there, are they what was installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from volumehost.loader.installed import InstalledDistribution


class RecordRow(NamedTuple):
    """A file: its path relative to the distribution's location, ``sha256=...`` or "", size in bytes or None."""

    path: str
    digest: str
    size: int | None


def read_record(distribution: InstalledDistribution) -> list[RecordRow]:
    """The rows of RECORD, none when it has no such file."""
    text = distribution.read_metadata("RECORD").decode("utf-8", "replace")
    if '"' in text:
        import csv

        rows = [row for row in csv.reader(text.splitlines()) if row]
    else:
        rows = [line.rsplit(",", 2) for line in text.splitlines() if line]
    return [RecordRow(row[0], row[1], int(row[2]) if row[2].isdecimal() else None) for row in rows if len(row) == 3]


def own_rows(distribution: InstalledDistribution) -> Iterator[RecordRow]:
    """Rows of files under the distribution's location: not scripts and data elsewhere."""
    for row in read_record(distribution):
        if not row.path.startswith(("/", "../")):
            yield row


def first_missing_file(distribution: InstalledDistribution) -> str:
    """The first file that is not there or not whole, "" when all are.

    An installer may write RECORD before the last of the files that it lists. Metadata does not count: installers
    write some of it anew.
    """
    metadata = f"{os.path.basename(distribution.metadata_path)}/"
    for row in own_rows(distribution):
        if row.size is None or row.path.startswith(metadata):
            continue
        try:
            if os.stat(f"{distribution.directory}/{row.path}").st_size != row.size:
                return row.path
        except (OSError, ValueError):  # ValueError: a null byte in the name
            return row.path
    return ""


def first_changed_file(distribution: InstalledDistribution) -> str:
    """Why the files on disk are not those that were installed, "" when they are.

    Compares every file under the location that RECORD lists with a hash. Compiled caches (``__pycache__``) have no
    hash there and are not covered.
    """
    if distribution.editable_directory():
        return "it is an editable install, whose files RECORD does not list"
    rows = [row for row in own_rows(distribution) if row.digest]
    if not rows:
        return "its RECORD lists no hashes"
    for row in rows:
        name, _, wanted = row.digest.partition("=")
        try:
            digest = _digest(f"{distribution.directory}/{row.path}", name)
        except (OSError, ValueError) as error:
            return f"{row.path} cannot be checked: {error}"
        if digest != wanted:
            return f"{row.path} is not the file that was installed"
    return ""


def _digest(path: str, name: str) -> str:
    """A file's hash as RECORD writes it: URL-safe base64 without padding."""
    import hashlib
    from base64 import urlsafe_b64encode

    if name not in ("sha256", "sha384", "sha512"):
        raise ValueError(f"the hash {name!r} is not a safe one")
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, name).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
