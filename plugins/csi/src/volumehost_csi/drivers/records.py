"""What is written down about a driver: its process, how it ended, what it told. One small JSON file for each.

Files are read as if written by a stranger: what makes no sense counts as absent. No secret is ever in one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from volumehost.sdk import replace_file
from volumehost.storage_driver import DriverCapabilities
from volumehost_csi.drivers.places import DriverPlaces
from volumehost_csi.drivers.processes import ProcessIdentity, is_alive


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process of an installed driver. ``identity`` is that of the installation that it was started from.

    ``restarts`` is how often in a row the driver had ended by itself before.
    """

    instance: str
    process: ProcessIdentity
    keeper: ProcessIdentity
    endpoint: str
    distribution: str
    version: str
    identity: tuple[int, ...]
    keep_alive: bool
    started_at: float
    host_pid: int
    restarts: int = 0

    @property
    def alive(self) -> bool:
        """Whether the driver's process still runs."""
        return is_alive(self.process)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended: ``status`` as of ``subprocess`` (below 0: the signal); ``ended_by`` "" when by itself."""

    instance: str
    status: int
    ended_by: str


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """What a driver told when it was last asked, and what was last wrong with it; ``asked_at`` 0: never asked."""

    version: str = ""
    node_id: str = ""
    max_volumes: int = 0
    topology: Mapping[str, str] = field(default_factory=dict)
    capabilities: DriverCapabilities | None = None
    asked_at: float = 0.0
    error: str = ""


def read_process(places: DriverPlaces) -> ProcessRecord | None:
    """The last process that was written down; it may have ended. None when there is none."""
    data = _read(places.process_file)
    try:
        boot = str(data["boot_id"])
        return ProcessRecord(
            instance=str(data["instance"]),
            process=ProcessIdentity(int(data["pid"]), int(data["start_time"]), boot),
            keeper=ProcessIdentity(int(data["keeper_pid"]), int(data["keeper_start_time"]), boot),
            endpoint=str(data["endpoint"]),
            distribution=str(data["distribution"]),
            version=str(data["version"]),
            identity=tuple(int(number) for number in data["identity"]),
            keep_alive=bool(data["keep_alive"]),
            started_at=float(data["started_at"]),
            host_pid=int(data["host_pid"]),
            restarts=int(data["restarts"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def read_ending(places: DriverPlaces, instance: str) -> Ending | None:
    """How that process ended, None when its keeper did not tell."""
    data = _read(places.exit_file)
    try:
        ending = Ending(str(data["instance"]), int(data["status"]), str(data["ended_by"]))
    except (KeyError, TypeError, ValueError):
        return None
    return ending if ending.instance == instance else None


def read_facts(places: DriverPlaces) -> DriverFacts:
    """What is remembered; nothing when there is nothing."""
    data = _read(places.facts_file)
    try:
        capabilities = data.get("capabilities")
        return DriverFacts(
            version=str(data.get("version", "")),
            node_id=str(data.get("node_id", "")),
            max_volumes=int(data.get("max_volumes", 0)),
            topology={str(key): str(value) for key, value in dict(data.get("topology", {})).items()},
            capabilities=_capabilities(capabilities) if capabilities is not None else None,
            asked_at=float(data.get("asked_at", 0)),
            error=str(data.get("error", "")),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return DriverFacts()


def write_facts(places: DriverPlaces, facts: DriverFacts) -> None:
    """Remember them; one writer at a time (``start.lock``)."""
    data = asdict(facts)
    if facts.capabilities is not None:
        data["capabilities"] = {name: sorted(values) for name, values in data["capabilities"].items()}
    _write(places.facts_file, data)


def read_registered(places: DriverPlaces) -> str:
    """The endpoint that was registered by command, "" when none was."""
    endpoint = _read(places.registered_file).get("endpoint", "")
    return endpoint if isinstance(endpoint, str) else ""


def write_registered(places: DriverPlaces, endpoint: str) -> None:
    """Remember that the driver was registered by command."""
    _write(places.registered_file, {"endpoint": endpoint, "registered_at": time.time()})


def _capabilities(data: Mapping[str, Any]) -> DriverCapabilities:
    return DriverCapabilities(
        **{name: frozenset(str(each) for each in data[name]) for name in ("plugin", "expansion", "controller", "node")}
    )


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read(1 << 20))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _write(path: str, data: Mapping[str, Any]) -> None:
    replace_file(path, json.dumps(data, indent=1).encode())
