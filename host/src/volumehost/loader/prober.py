"""Finds installed plugins by their entry points, while the host runs. The manager asks at nearly every look-up."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from volumehost.loader.events import DynamicPluginProber, NoProber, ProbeEvent, ProbeOperation, ProbeResult
from volumehost.loader.installed import InstalledDistribution
from volumehost.loader.scan import scan

__all__ = [
    "GROUP",
    "DynamicPluginProber",
    "EntryPointProber",
    "NoProber",
    "ProbeEvent",
    "ProbeOperation",
    "ProbeResult",
]

#: The entry point group of volume plugins.
GROUP = "volumehost.plugins"


class EntryPointProber:
    """Reports distributions with entry points of a group: installed, changed, removed.

    :param path: directories to scan instead of ``sys.path``.
    """

    def __init__(self, *, group: str = GROUP, path: Sequence[str] | None = None) -> None:
        self.group = group
        self._path = path
        self._known: dict[str, InstalledDistribution] = {}

    def init(self) -> None:
        """Nothing to get ready."""

    def probe(self) -> ProbeResult:
        """What changed since the last call."""
        path = sys.path if self._path is None else self._path
        now = {found.name: InstalledDistribution.from_scan(found) for found in scan(self.group, path)}
        events = [
            ProbeEvent(ProbeOperation.ADD_OR_UPDATE, name, distribution=found, installed=True)
            for name, found in sorted(now.items())
            if self._known.get(name) != found
        ]
        events += [
            ProbeEvent(ProbeOperation.REMOVE, name, installed=True) for name in sorted(self._known.keys() - now.keys())
        ]
        self._known = now
        return ProbeResult(tuple(events))
