"""Records on disk, read as if a stranger had written them: ``vol_data.json``, the journal, the records of drivers."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from volumehost.errors import RootDirectoryError
from volumehost.inspection.tree import open_quietly
from volumehost.node.journal.format import JournalContents
from volumehost.node.journal.journal import read_journal

if TYPE_CHECKING:
    from volumehost.hosts.layout import Layout
    from volumehost.inspection.tree import Tree

VOL_DATA: Final = "vol_data.json"

#: What :func:`volumehost.sdk.replace_file` leaves of a write that was cut short.
VOL_DATA_TEMPORARY: Final = f".{VOL_DATA}.new"


@dataclass(frozen=True, slots=True)
class VolumeRecord:
    """A ``vol_data.json`` (CSI-DATA). ``problem`` is "" when it is whole; ``missing`` when there is none."""

    problem: str = ""
    driver: str = ""
    handle: str = ""
    spec_name: str = ""
    lifecycle: str = ""
    modified_at: float = 0.0

    @property
    def exists(self) -> bool:
        """Whether there is one, whole or not."""
        return self.problem != "missing"

    @property
    def word(self) -> str:
        """``whole``, ``missing``, or what is wrong."""
        return self.problem or "whole"

    @property
    def ephemeral(self) -> bool:
        """Whether the volume lives only as long as its pod."""
        return self.lifecycle == "Ephemeral"


def read_volume_record(tree: Tree, directory: str) -> VolumeRecord:
    """The record in a directory of the tree."""
    path = f"{directory}/{VOL_DATA}"
    try:
        data = tree.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return VolumeRecord("missing")
    except OSError as error:
        return VolumeRecord(error.strerror or str(error))
    content = parse_flat_json(data)
    if isinstance(content, str):
        return VolumeRecord(content)
    found = {name: str(content.get(name, "")) for name in ("driverName", "volumeHandle")}
    missing = [name for name, value in found.items() if not value]
    return VolumeRecord(
        problem=f"it lacks {' and '.join(missing)}" if missing else "",
        driver=found["driverName"],
        handle=found["volumeHandle"],
        spec_name=str(content.get("specVolID", "")),
        lifecycle=str(content.get("volumeLifecycleMode", "")),
        modified_at=tree.look(path).modified_at,
    )


def parse_flat_json(data: bytes) -> Mapping[str, Any] | str:
    """The one JSON object that the data is, or what is wrong with it."""
    if not data.strip(b"\0 \t\r\n"):
        return "it is empty"
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    return content if isinstance(content, dict) else "it is not a JSON object"


def read_journal_quietly(layout: Layout) -> JournalContents:
    """The journal, without changing the time of its last access; one that cannot be read counts as damaged."""
    path = layout.journal_file()
    try:
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            return JournalContents(exists=True, intact=False, notes=["it is no regular file"])
        return read_journal(path, opener=_open)
    except RootDirectoryError as error:
        return JournalContents(exists=True, intact=False, notes=[error.reason])


def _open(path: str, flags: int) -> int:
    """Without waiting, should it be no file."""
    return open_quietly(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


# --- drivers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DriverProcess:
    """What ``drivers/<name>/process.json`` tells: which process the driver is, and its keeper."""

    driver: str
    pid: int
    start_time: int
    keeper_pid: int
    keeper_start_time: int
    boot_id: str
    keep_alive: bool
    endpoint: str


@dataclass(frozen=True, slots=True)
class DriverRecords:
    """The records of drivers: processes, and what could not be read (path, why)."""

    processes: tuple[DriverProcess, ...] = ()
    damaged: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = field(default=())


_DRIVER_RECORDS: Final = ("process.json", "exit.json", "facts.json", "registered.json")


def read_driver_records(tree: Tree) -> DriverRecords:
    """All of them."""
    processes: list[DriverProcess] = []
    damaged: list[tuple[str, str]] = []
    names = tree.names("drivers")
    for name in names:
        for file in _DRIVER_RECORDS:
            path = f"drivers/{name}/{file}"
            try:
                content = parse_flat_json(tree.read(path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                content = error.strerror or str(error)
            if isinstance(content, str):
                damaged.append((tree.path(path), content))
            elif file == "process.json":
                try:
                    processes.append(_process(name, content))
                except (KeyError, TypeError, ValueError):
                    damaged.append((tree.path(path), "it does not tell which process the driver is"))
    return DriverRecords(tuple(processes), tuple(damaged), tuple(names))


def _process(driver: str, data: Mapping[str, Any]) -> DriverProcess:
    return DriverProcess(
        driver=driver,
        pid=int(data["pid"]),
        start_time=int(data["start_time"]),
        keeper_pid=int(data["keeper_pid"]),
        keeper_start_time=int(data["keeper_start_time"]),
        boot_id=str(data["boot_id"]),
        keep_alive=bool(data["keep_alive"]),
        endpoint=str(data.get("endpoint", "")),
    )
