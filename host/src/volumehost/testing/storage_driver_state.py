"""What the fake storage driver knows and how it answers: its capabilities, errors by code, volumes and snapshots."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field

from volumehost.errors import (
    StorageDriverError,
    StorageDriverInfeasibleError,
    StorageDriverPreconditionError,
    StorageDriverUncertainError,
    StorageDriverUnsupportedError,
)
from volumehost.storage_driver import DriverCapabilities

#: A driver that can do everything.
EVERYTHING = DriverCapabilities(
    plugin=frozenset({"CONTROLLER_SERVICE", "VOLUME_ACCESSIBILITY_CONSTRAINTS"}),
    expansion=frozenset({"ONLINE"}),
    controller=frozenset(
        {
            "CREATE_DELETE_VOLUME",
            "PUBLISH_UNPUBLISH_VOLUME",
            "LIST_VOLUMES",
            "LIST_VOLUMES_PUBLISHED_NODES",
            "GET_CAPACITY",
            "CREATE_DELETE_SNAPSHOT",
            "LIST_SNAPSHOTS",
            "GET_SNAPSHOT",
            "CLONE_VOLUME",
            "PUBLISH_READONLY",
            "EXPAND_VOLUME",
            "MODIFY_VOLUME",
            "SINGLE_NODE_MULTI_WRITER",
        }
    ),
    node=frozenset({"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"}),
)

_KINDS: dict[str, type[StorageDriverError]] = {
    **dict.fromkeys(
        ("CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", ""),
        StorageDriverUncertainError,
    ),
    **dict.fromkeys(("INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND"), StorageDriverInfeasibleError),
    "FAILED_PRECONDITION": StorageDriverPreconditionError,
    "UNIMPLEMENTED": StorageDriverUnsupportedError,
}


def without(capabilities: DriverCapabilities, *controller: str) -> DriverCapabilities:
    """The capabilities without these of the controller service."""
    return DriverCapabilities(
        capabilities.plugin, capabilities.expansion, capabilities.controller - set(controller), capabilities.node
    )


def driver_error(driver: str, call: str, code: str, message: str = "it was told to fail") -> StorageDriverError:
    """The error that a driver's answer with that gRPC code becomes (CSI-ERR-04); "" stands for a lost connection."""
    kind = _KINDS.get(code, StorageDriverError)
    return kind(
        f"{code or 'no answer'}: {message}",
        driver=driver,
        call=call,
        code=code,
        driver_message=message,
        action=f"calling {call} of driver {driver}",
    )


@dataclass(slots=True)
class Volume:
    """A volume; ``nodes`` are those that it is attached to, sizes are in bytes."""

    size: int
    context: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    source_snapshot: str = ""
    source_volume: str = ""


@dataclass(slots=True)
class Snapshot:
    """A snapshot; ``asked`` counts how often somebody wanted to know whether it is ready."""

    name: str
    volume: str
    size: int
    created: float
    asked: int = 0


@dataclass(slots=True)
class DriverState:
    """All of it; ``names`` leads from the name of a create call to the handle of what it made."""

    volumes: dict[str, Volume] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    counter: int = 0


def load(path: str) -> DriverState:
    """What was stored there; nothing without a path or a file."""
    if not path or not os.path.exists(path):
        return DriverState()
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    return DriverState(
        volumes={handle: Volume(**fields) for handle, fields in data["volumes"].items()},
        names=data["names"],
        snapshots={handle: Snapshot(**fields) for handle, fields in data["snapshots"].items()},
        counter=data["counter"],
    )


def store(path: str, state: DriverState) -> None:
    """Keep it; a process that is killed meanwhile leaves the former state."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
    os.replace(temporary, path)
