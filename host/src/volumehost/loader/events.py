"""What a prober is and what it reports (PLUG-30, PLUG-31)."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from volumehost.loader.installed import InstalledDistribution


class ProbeOperation(enum.IntEnum):
    """What happened to a plugin; the values are distinct bits, those of the Go original."""

    ADD_OR_UPDATE = 2
    REMOVE = 4


class ProbeEvent(NamedTuple):
    """A plugin, or a distribution with plugins, appeared, changed or went away.

    A prober of plugin objects sets ``plugin_name`` and ``plugin`` (None for a removal). A prober of installed
    distributions gives the distribution's name as ``plugin_name``, sets ``installed``, and ``distribution``: what
    lies on the disk, not imported yet (None for a removal). Importing is left to the manager, because it knows
    what is in use.
    """

    operation: ProbeOperation
    plugin_name: str
    plugin: object | None = None
    distribution: InstalledDistribution | None = None
    installed: bool = False


class ProbeResult(NamedTuple):
    """Events and errors of one probe; both count at the same time (MGR-PROBE-02).

    ``changed``: something changed in the environment, be it no plugin: what failed to load may work now.
    """

    events: Sequence[ProbeEvent] = ()
    errors: Sequence[Exception] = ()
    changed: bool = False


class DynamicPluginProber(Protocol):
    """Finds plugins while the host runs. ``probe`` is called at nearly every look-up and must be cheap."""

    def init(self) -> None:
        """Get ready; an exception means that this prober is not used (MGR-INIT-03)."""
        ...

    def probe(self) -> ProbeResult:
        """What changed since the last call. Each event is delivered once."""
        ...


class NoProber:
    """The prober that stands in when there is none (MGR-INIT-02)."""

    def init(self) -> None:
        """Nothing to get ready."""

    def probe(self) -> ProbeResult:
        """Nothing ever changes."""
        return NOTHING


#: The result of a probe that found nothing.
NOTHING = ProbeResult()
