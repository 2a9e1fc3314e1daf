"""Files of the root directory itself that are left over: temporary ones, kept copies, sockets that nobody serves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from volumehost.inspection.processes import is_listened_to
from volumehost.inspection.tree import EntryKind, Tree

#: What is younger than this may be in use, in seconds.
YOUNG_SECONDS: Final = 60.0

_TEMPORARY: Final = re.compile(r"\..+\.new|volumes\.journal\.new")
_KEPT: Final = re.compile(r".+\.(damaged|newer)-\d+")


@dataclass(frozen=True, slots=True)
class RootFiles:
    """Absolute paths. ``sockets`` are those on which nobody listens."""

    temporary: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()


def read_root_files(tree: Tree, now: float) -> RootFiles:
    """All of them.

    :param now: in seconds since the epoch.
    """
    names = tree.names("")
    temporary = [name for name in names if _TEMPORARY.fullmatch(name)]
    for driver in tree.names("drivers"):
        found = tree.names(f"drivers/{driver}")
        temporary += [f"drivers/{driver}/{name}" for name in found if _TEMPORARY.fullmatch(name)]
    kept = [tree.path(name) for name in names if _KEPT.fullmatch(name)]
    old = [tree.path(path) for path in temporary if _is_old_file(tree, path, now, EntryKind.FILE)]
    sockets = [
        tree.path(path)
        for path in _sockets(tree)
        if _is_old_file(tree, path, now, EntryKind.SOCKET) and is_listened_to(tree.path(path)) is False
    ]
    return RootFiles(tuple(old), tuple(kept), tuple(sockets))


def _sockets(tree: Tree) -> Iterator[str]:
    """The agent's, and those of drivers and their registration, at the places where they belong."""
    yield from (name for name in tree.names("") if name.endswith(".sock"))
    yield from (f"plugins_registry/{name}" for name in tree.names("plugins_registry"))
    for name in tree.names("plugins"):
        yield from (f"plugins/{name}/{each}" for each in tree.names(f"plugins/{name}") if each.endswith(".sock"))


def _is_old_file(tree: Tree, relative: str, now: float, kind: EntryKind) -> bool:
    entry = tree.look(relative)
    return entry.kind is kind and now - entry.modified_at > YOUNG_SECONDS
