"""Stands in for a storage driver in a plan: tells what it can do, and can be called for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from volumehost.errors import VolumeHostError
from volumehost.storage_driver import DriverCapabilities

if TYPE_CHECKING:
    from volumehost.storage_driver import DriverStatus

#: What is taken for granted of a driver that has not run yet.
_LIKELY = DriverCapabilities(
    plugin=frozenset({"CONTROLLER_SERVICE"}),
    controller=frozenset(
        {"CREATE_DELETE_VOLUME", "CREATE_DELETE_SNAPSHOT", "CLONE_VOLUME", "MODIFY_VOLUME", "SINGLE_NODE_MULTI_WRITER"}
    ),
)


class PlannedDriver:
    """One driver as its status describes it.

    Topology is left out: what the driver says of it where it has not registered yet nobody knows.
    """

    def __init__(self, status: DriverStatus) -> None:
        self.name = status.name
        self.node_id = status.node_id
        known = status.capabilities
        self._capabilities = _LIKELY
        if known is not None:
            self._capabilities = DriverCapabilities(
                known.plugin - {"VOLUME_ACCESSIBILITY_CONSTRAINTS"}, known.expansion, known.controller, known.node
            )

    def capabilities(self) -> DriverCapabilities:
        """What it can do."""
        return self._capabilities

    def __getattr__(self, name: str) -> Any:
        raise VolumeHostError(f"a plan does not call {name} of driver {self.name}")
