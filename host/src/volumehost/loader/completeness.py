"""Tells a finished installation from one that an installer is still writing (DESIGN section 4, BR-11)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.loader.installed import InstalledDistribution

#: Seconds for which metadata from a wheel may lack its RECORD: a large installation takes as long as that.
WHEEL_LIMIT = 600.0
#: Seconds for which other metadata may lack it, and for which listed files may be missing. Distributions that an
#: operating system's packages bring often have no RECORD; their files are older than this when they appear.
OTHER_LIMIT = 2.0
FILES_LIMIT = 60.0


def unfinished_reason(distribution: InstalledDistribution, *, now: float, waited: float) -> str:
    """Why the installation is not finished yet, "" when it is.

    :param now: the time of day, seconds since the epoch.
    :param waited: seconds since it was first seen unfinished; counts where the clock was set back.
    """
    metadata = distribution.metadata_path
    if not metadata.endswith(".dist-info") or os.path.isfile(distribution.directory):
        return ""
    try:
        written = os.stat(metadata).st_mtime
    except OSError:
        return "its metadata is being removed"
    age = max(now - written, waited)
    if not os.path.exists(f"{metadata}/RECORD"):
        limit = WHEEL_LIMIT if os.path.exists(f"{metadata}/WHEEL") else OTHER_LIMIT
        return "its RECORD is not written yet" if age < limit else ""
    if age < FILES_LIMIT:
        from volumehost.loader.record import first_missing_file

        missing = first_missing_file(distribution)
        if missing:
            return f"its file {missing} is not written yet"
    return ""


def is_stash_of(name: str, entry: str) -> bool:
    """Whether ``name`` is where pip keeps the directory ``entry`` while it replaces it: ``~cme-1.0.dist-info``."""
    if not name.startswith("~"):
        return False
    if name.endswith(entry):
        return True
    if len(name) != len(entry):
        return False
    replaced = 0
    while replaced < len(name) and name[replaced] in "~-.=%0123456789":
        replaced += 1
    return any(name[count:] == entry[count:] for count in range(1, replaced + 1))
