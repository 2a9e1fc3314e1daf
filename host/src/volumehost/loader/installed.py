"""Installed distributions with plugins: what the prober reports and the manager loads from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from volumehost.loader.origin import Origin
from volumehost.loader.scan import read_file, read_zip_file

if TYPE_CHECKING:
    from volumehost.loader.scan import Distribution


class InstalledDistribution(NamedTuple):
    """A distribution with plugins as it lies on the disk.

    ``identity`` tells one installation from the next (inode, size and time of the metadata file): two values are
    equal when nothing was installed anew between them. ``location`` is a directory on ``sys.path``, or a zip.
    """

    name: str
    version: str
    location: str
    metadata_path: str
    entry_points: tuple[tuple[str, str], ...]
    identity: tuple[int, ...] = ()

    @classmethod
    def from_scan(cls, found: Distribution) -> InstalledDistribution:
        """From what a scan found; reads the version where the metadata's name does not tell it."""
        installed = cls(
            found.name,
            found.version,
            found.location,
            found.metadata_path,
            found.entry_points,
            _identity(found.metadata_path),
        )
        if found.version:
            return installed
        version = dict(reversed(installed.headers())).get("version", "")
        return cls(found.name, version, found.location, found.metadata_path, found.entry_points, installed.identity)

    def origin(self, entry_point: str, value: str) -> Origin:
        """The origin of one of its plugins."""
        return Origin(self.name, self.version, entry_point, value, self.location)

    @property
    def directory(self) -> str:
        """The directory that its files are relative to."""
        return self.location or os.curdir

    def read_metadata(self, name: str) -> bytes:
        """A file of its metadata, such as ``RECORD``; empty when there is none."""
        if os.path.isfile(self.metadata_path):  # an .egg-info may be the one file PKG-INFO itself
            return read_file(self.metadata_path) if name == "PKG-INFO" else b""
        if os.path.isfile(self.directory):
            return read_zip_file(self.directory, f"{os.path.basename(self.metadata_path)}/{name}")
        return read_file(f"{self.metadata_path}/{name}")

    def headers(self) -> list[tuple[str, str]]:
        """The header fields of its core metadata, names in lower case."""
        data = self.read_metadata("METADATA") or self.read_metadata("PKG-INFO")
        head = data.replace(b"\r\n", b"\n").partition(b"\n\n")[0].decode("utf-8", "replace")
        fields = []
        for line in head.split("\n"):
            name, colon, value = line.partition(":")
            if colon and name and not name[0].isspace():
                fields.append((name.lower(), value.strip()))
        return fields

    def editable_directory(self) -> str:
        """The project's directory when it is an editable install, else ""."""
        data = self.read_metadata("direct_url.json")
        if b"editable" not in data:
            return ""
        import json

        try:
            origin = json.loads(data)
            editable = origin["dir_info"]["editable"] is True
            scheme, _, rest = str(origin["url"]).partition("://")
        except (ValueError, KeyError, TypeError):
            return ""
        if not editable or scheme != "file":
            return ""
        path = "/" + rest.partition("/")[2]
        if "%" in path:
            from urllib.parse import unquote  # loads modules of 200 KiB

            path = unquote(path)
        return path

    def packages(self) -> tuple[str, ...]:
        """The top-level packages or modules that its entry points name."""
        tops = {value.partition(":")[0].partition(".")[0].strip() for _, value in self.entry_points}
        return tuple(sorted(tops - {""}))


def _identity(metadata_path: str) -> tuple[int, ...]:
    """Identity of an installation: pip writes METADATA once, while it comes back to the directory several times."""
    for path in (f"{metadata_path}/METADATA", f"{metadata_path}/PKG-INFO", metadata_path):
        try:
            info = os.stat(path)
        except OSError:
            continue
        return (info.st_ino, info.st_size, info.st_mtime_ns)
    return ()
