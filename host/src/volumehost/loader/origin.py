"""Where a plugin came from: carried by loaded plugins, errors and status lines."""

from __future__ import annotations

from typing import NamedTuple


class Origin(NamedTuple):
    """A plugin's distribution and entry point; all empty for an object that the embedding program handed over.

    ``distribution`` is the normalised name (``acme-volumes``), ``value`` the entry point's object reference
    (``acme_volumes.plugin:Scratch``), ``location`` the ``sys.path`` directory that holds the distribution.
    """

    distribution: str = ""
    version: str = ""
    entry_point: str = ""
    value: str = ""
    location: str = ""

    def __str__(self) -> str:
        """``acme-volumes 1.0 (entry point scratch)``."""
        if not self.distribution:
            return "the embedding program"
        version = f" {self.version}" if self.version else ""
        return f"{self.distribution}{version} (entry point {self.entry_point})"
