"""The modules of one distribution: imported ahead, taken out of ``sys.modules`` and put back around an upgrade."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Collection, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType
from typing import TYPE_CHECKING

from volumehost.loader.record import own_rows

if TYPE_CHECKING:
    from volumehost.loader.installed import InstalledDistribution

logger = logging.getLogger(__name__)

#: Modules that no plugin needs in order to work, and whose import may do anything.
_NOT_IMPORTED = frozenset({"__main__", "conftest", "setup", "test", "tests"})
#: Submodules of an editable install are found by listing directories; more than this are not imported ahead.
_MOST_SUBMODULES = 2000


class OwnModules:
    """Which modules belong to a distribution. Made when it is loaded: after an upgrade the disk tells of another.

    A module belongs to it when its file is listed in RECORD, or lies in the project's directory for an editable
    install. What several distributions share (a namespace package) has no file, and belongs to none.
    """

    def __init__(self, distribution: InstalledDistribution) -> None:
        self._packages = distribution.packages()
        editable = distribution.editable_directory()
        self._files: frozenset[str] = frozenset()
        self._root = ""
        rows = [row.path for row in own_rows(distribution)]
        if editable:
            self._root = os.path.realpath(editable) + os.sep
        elif rows:
            self._files = frozenset(os.path.realpath(os.path.join(distribution.directory, path)) for path in rows)
        else:  # an .egg-info: the project's own directory, or nothing that says which files are whose
            self._root = os.path.realpath(distribution.directory) + os.sep
        self._rows = rows
        tops = {
            path.partition("/")[0].partition(".")[0] for path in rows if path.endswith((".py", *EXTENSION_SUFFIXES))
        }
        self._tops = tops | set(self._packages) if self._files else set(self._packages)

    def loaded(self) -> dict[str, ModuleType]:
        """Those in ``sys.modules``, by name."""
        return {
            name: module
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] in self._tops and self._owns(module)
        }

    def extension(self) -> str:
        """The name of a loaded extension module, which cannot be imported afresh in one process; "" without."""
        for name, module in self.loaded().items():
            if str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES)):
                return name
        return ""

    def take_out(self, keep: Collection[str] = ()) -> dict[str, ModuleType]:
        """Remove the modules from ``sys.modules``, but not those named; :meth:`put_back` undoes it."""
        taken = {name: module for name, module in self.loaded().items() if name not in keep}
        for name, module in taken.items():
            sys.modules.pop(name, None)
            parent, _, child = name.rpartition(".")
            # A namespace package stays, and must not go on offering the module as its attribute.
            if getattr(sys.modules.get(parent), child, None) is module:
                delattr(sys.modules[parent], child)
        return taken

    def put_back(self, taken: dict[str, ModuleType]) -> None:
        """Restore modules, over those that were imported meanwhile, with their places in their packages."""
        self.take_out()
        sys.modules.update(taken)
        for name, module in taken.items():
            parent, _, child = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], child, module)

    def import_ahead(self, excluded: Collection[str] = ()) -> None:
        """Import the submodules of the plugin's packages, so that a late import works when the files are gone.

        What fails (an optional integration, say) is left out: the plugin has loaded without it.

        :param excluded: modules that must not be imported, with all below them.
        """
        for name in self._submodules():
            if name in sys.modules or any(name == each or name.startswith(f"{each}.") for each in excluded):
                continue
            try:
                importlib.import_module(name)
            except BaseException as error:  # noqa: BLE001 - third-party code, SystemExit included; not needed to load
                logger.debug("not imported ahead: module=%s, error=%r", name, error)

    def _owns(self, module: object) -> bool:
        try:
            file = module.__file__  # type: ignore[attr-defined]
        except Exception:  # noqa: BLE001 - sys.modules may hold any object, and a lazy one may do anything
            return False
        if not isinstance(file, str):
            return False
        path = os.path.realpath(file)
        return path in self._files or (bool(self._root) and path.startswith(self._root))

    def _submodules(self) -> list[str]:
        paths = self._rows if self._files else list(self._walk())
        names = []
        for path in paths:
            if not path.endswith(".py"):
                continue
            parts = path[:-3].split("/")
            if parts[-1] == "__init__":
                parts.pop()
            if parts and parts[0] in self._packages and _importable(parts):
                names.append(".".join(parts))
        return sorted(names)

    def _walk(self) -> Iterator[str]:
        """Files of the packages of an editable install, relative to where their packages lie."""
        count = 0
        for package in self._packages:
            for top in getattr(sys.modules.get(package), "__path__", ()):
                base = os.path.dirname(top)
                for directory, directories, files in os.walk(top):
                    directories[:] = sorted(name for name in directories if name.isidentifier())
                    for name in files:
                        count += 1
                        if count > _MOST_SUBMODULES:
                            return
                        yield os.path.relpath(os.path.join(directory, name), base)


def _importable(parts: list[str]) -> bool:
    return all(part.isidentifier() for part in parts) and not _NOT_IMPORTED.intersection(parts)
