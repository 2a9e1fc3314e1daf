"""CSI drivers that are installed as Python distributions: entry points of the group ``volumehost.csi_drivers``.

The entry point's name is the driver's; its value ``module:function``, with the extra ``keep-alive`` where the
driver's mounts need its process. Nothing is imported here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.errors import SpecError, StorageDriverUnavailableError
from volumehost_csi.names import check_driver_name, shorten

if TYPE_CHECKING:
    from volumehost.host_services import InstalledEntryPoint

GROUP = "volumehost.csi_drivers"
KEEP_ALIVE = "keep-alive"
MANIFEST_NAMES = ("csi-driver.yaml", "csi-driver.json")

_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_VALUE = re.compile(
    rf"\s*(?P<module>{_DOTTED})\s*:\s*(?P<function>{_DOTTED})\s*(?:\[(?P<extras>[^\]]*)\])?\s*", re.ASCII
)


@dataclass(frozen=True, slots=True)
class InstalledDriver:
    """A driver that can be started here. ``identity`` changes when its distribution is installed anew.

    ``problem`` says why it cannot be started after all, "" when it can; ``hint`` what to do about that.
    """

    name: str
    distribution: str
    version: str
    module: str = ""
    function: str = ""
    keep_alive: bool = False
    identity: tuple[int, ...] = ()
    location: str = ""
    problem: str = field(default="", compare=False)
    hint: str = field(default="ask the author of the driver", compare=False)

    @property
    def origin(self) -> str:
        """``acme-driver 1.0``."""
        return f"{self.distribution} {self.version}".strip()

    def manifest(self) -> str:
        """The file of API objects beside its module, "" when there is none; the module is not imported."""
        path = _beside(self.module, self.location)
        return path if path and os.path.isfile(path) else ""

    def unavailable(self) -> StorageDriverUnavailableError:
        """The error for ``problem``."""
        return StorageDriverUnavailableError(
            self.problem, driver=self.name, action=f"starting the CSI driver {shorten(self.name)}", hint=self.hint
        )


def installed_drivers(entry_points: Iterable[InstalledEntryPoint]) -> Mapping[str, InstalledDriver]:
    """The drivers that these entry points declare, by name; those that cannot be used carry their problem."""
    found: dict[str, InstalledDriver] = {}
    for entry_point in entry_points:
        driver = _parse(entry_point)
        other = found.get(driver.name)
        if other is not None:
            problem = f"two distributions bring a driver of this name: {other.origin} and {driver.origin}"
            driver = InstalledDriver(
                driver.name, other.distribution, other.version, problem=problem, hint="uninstall one of them"
            )
        found[driver.name] = driver
    return found


def _parse(entry_point: InstalledEntryPoint) -> InstalledDriver:
    match = _VALUE.fullmatch(entry_point.value)
    problem = _name_problem(entry_point.name)
    if match is None:
        return InstalledDriver(
            entry_point.name,
            entry_point.distribution,
            entry_point.version,
            problem=problem
            or f"the entry point of {entry_point.distribution} {entry_point.version}, {entry_point.value!r}, is not "
            "module:function",
        )
    extras = {extra.strip() for extra in (match["extras"] or "").split(",")} - {""}
    unknown = sorted(extras - {KEEP_ALIVE})
    if unknown and not problem:
        problem = f"its entry point has an unknown extra: {', '.join(unknown)}"
    return InstalledDriver(
        entry_point.name,
        entry_point.distribution,
        entry_point.version,
        match["module"],
        match["function"],
        KEEP_ALIVE in extras,
        entry_point.identity,
        entry_point.location,
        problem,
    )


def _name_problem(name: str) -> str:
    try:
        check_driver_name(name)
    except SpecError as error:
        return f"{error.reason}: {error.hint}"
    return ""


def _beside(module: str, location: str) -> str:
    """The manifest's path beside a module that lies below ``location``, or where an editable install points."""
    for directory in (location, *_editable_directories(location)):
        if not os.path.isdir(directory):  # distributions may lie in a zip
            continue
        package = os.path.join(directory, *module.split("."))
        for folder in (package, os.path.dirname(package)):
            inside = os.path.isfile(os.path.join(folder, "__init__.py")) or folder == package
            for path in (os.path.join(folder, name) for name in MANIFEST_NAMES):
                if os.path.isfile(path) and inside:
                    return path
    return ""


def _editable_directories(location: str) -> Iterable[str]:
    """Directories that ``.pth`` files in ``location`` add to the path: that is how editable installs are done."""
    try:
        names = sorted(name for name in os.listdir(location) if name.endswith(".pth"))
    except OSError:
        return
    for name in names:
        try:
            with open(os.path.join(location, name), encoding="utf-8-sig", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            directory = line.strip()
            if directory and not directory.startswith(("#", "import ", "import\t")):
                yield os.path.join(location, directory)
