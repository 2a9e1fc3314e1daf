"""Makes what was installed while the process runs importable: ``.pth`` files, the user site, import caches (BR-10).

At its start Python's ``site`` does this once. The prober and the loader do it again for what appears later.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from volumehost.loader.scan import read_file

logger = logging.getLogger(__name__)


def site_directories() -> list[str]:
    """The directories whose ``.pth`` files Python reads, those on ``sys.path`` and the user's own."""
    site: Any = sys.modules.get("site")
    if site is None or sys.flags.no_site:
        return []
    directories = [directory for directory in site.getsitepackages() if directory in sys.path]
    user = user_site_directory()
    return [*directories, user] if user else directories


def user_site_directory() -> str:
    """The user's own site directory, "" where it is not in use. It need not exist yet."""
    site: Any = sys.modules.get("site")
    if site is None or sys.flags.no_site or site.ENABLE_USER_SITE is not True:
        return ""
    return str(site.getusersitepackages())


def add_paths_of(directory: str, pth_files: Iterable[str]) -> bool:
    """Append the existing directories that ``.pth`` files name to ``sys.path``; whether there were new ones.

    Lines that are code are left to :func:`run_pth_code`.
    """
    known = {os.path.abspath(path) for path in sys.path}
    added = False
    for name in sorted(pth_files):
        if name.startswith("."):
            continue
        for line in _lines(f"{directory}/{name}"):
            path = os.path.abspath(os.path.join(directory, line))
            if not _is_code(line) and path not in known and os.path.exists(path):
                known.add(path)
                sys.path.append(path)
                added = True
                logger.info("added to sys.path: path=%s, named by=%s/%s", path, directory, name)
    return added


def run_pth_code(path: str) -> None:
    """Run the lines of a ``.pth`` file that are code, as Python does at its start: editable installs need it.

    Call it only for files of a distribution that is about to be imported anyway.
    """
    for line in _lines(path):
        if _is_code(line):
            exec(line, {})  # noqa: S102 - what "site" does with such lines; the distribution's own code comes next


def _lines(path: str) -> list[str]:
    text = read_file(path).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _is_code(line: str) -> bool:
    return line.startswith(("import ", "import\t"))


class ImportCaches:
    """Drops what the import system remembers, finder by finder, so that one broken finder harms nobody (BR-02)."""

    def __init__(self) -> None:
        self._warned: set[int] = set()

    def invalidate(self) -> None:
        """Forget listings of directories and failed look-ups."""
        for finder in list(sys.meta_path):
            # The path finder's own method stops at the first broken finder, and imports importlib.metadata.
            if getattr(finder, "__name__", "") != "PathFinder":
                self._call(finder, getattr(finder, "invalidate_caches", None))
        for path, path_finder in list(sys.path_importer_cache.items()):
            if path_finder is None:
                sys.path_importer_cache.pop(path, None)
            else:
                self._call(path_finder, getattr(path_finder, "invalidate_caches", None))
        metadata: Any = sys.modules.get("importlib.metadata")
        if metadata is not None:
            finder = metadata.MetadataPathFinder()
            self._call(finder, finder.invalidate_caches)

    def _call(self, finder: object, invalidate: Callable[[], object] | None) -> None:
        if invalidate is None:
            return
        try:
            invalidate()
        except Exception as error:  # noqa: BLE001 - a finder of whomever; the others must still be asked
            if id(finder) not in self._warned:
                self._warned.add(id(finder))
                logger.warning(
                    "a finder on sys.meta_path cannot drop its caches, going on without: finder=%r, error=%r",
                    finder,
                    error,
                )
