"""Entry points of any group in the installed distributions, kept up to date; hosts hand them to plugins."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from volumehost.host_services import InstalledEntryPoint
from volumehost.loader.events import ProbeOperation
from volumehost.loader.prober import EntryPointProber

if TYPE_CHECKING:
    from volumehost.loader.installed import InstalledDistribution
    from volumehost.loader.trust import TrustPolicy


class InstalledEntryPoints:
    """What is installed, by group; a question with nothing changed costs a few ``stat`` calls. Safe for threads."""

    def __init__(self, trust: TrustPolicy) -> None:
        self._trust = trust
        self._lock = threading.Lock()
        self._groups: dict[str, tuple[EntryPointProber, dict[str, InstalledDistribution]]] = {}

    def of(self, group: str) -> tuple[InstalledEntryPoint, ...]:
        """The entry points of a group that the trust policy allows, by distribution and name; nothing is imported."""
        with self._lock:
            if group not in self._groups:
                prober = EntryPointProber(group=group)
                prober.init()
                self._groups[group] = prober, {}
            prober, installed = self._groups[group]
            for event in prober.probe().events:
                if event.operation is ProbeOperation.REMOVE:
                    installed.pop(event.plugin_name, None)
                elif event.distribution is not None:
                    installed[event.plugin_name] = event.distribution
            return tuple(
                InstalledEntryPoint(found.name, found.version, name, value, found.location, found.identity)
                for found in sorted(installed.values())
                for name, value in found.entry_points
                if not self._trust.reason_not_to_import(found.name, name)
            )
