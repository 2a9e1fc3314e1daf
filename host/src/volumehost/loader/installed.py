"""Installed distributions with plugins, as the prober reports them to the manager."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.loader.origin import Origin

if TYPE_CHECKING:
    from volumehost.loader.scan import Distribution


@dataclass(frozen=True, slots=True)
class InstalledDistribution:
    """A distribution with plugins as it lies on the disk; two are equal when nothing was reinstalled between them."""

    name: str
    version: str
    location: str
    metadata_path: str
    entry_points: tuple[tuple[str, str], ...]
    stamp: tuple[int, ...] = ()

    @classmethod
    def from_scan(cls, found: Distribution) -> InstalledDistribution:
        """From a scanned distribution."""
        try:
            info = os.stat(found.metadata_path)
            stamp: tuple[int, ...] = (info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
        except OSError:
            stamp = ()
        return cls(
            found.name,
            found.version,
            found.location,
            found.metadata_path,
            tuple((point.name, point.value) for point in found.entry_points),
            stamp,
        )

    def origin(self, entry_point: str, value: str) -> Origin:
        """The origin of one of its plugins."""
        return Origin(self.name, self.version, entry_point, value, self.location)
