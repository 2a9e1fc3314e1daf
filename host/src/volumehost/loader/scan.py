"""Lists installed distributions that declare entry points of a group, without importing ``importlib.metadata``.

Used by the prober at every change of the environment, and in the first milliseconds of every command: nothing but
built-in modules and ``os`` is imported here.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_METADATA_SUFFIXES = (".dist-info", ".egg-info")


class EntryPoint:
    """One line of an entry point group: ``name = value``."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return f"EntryPoint({self.name!r}, {self.value!r})"


class Distribution:
    """An installed distribution, as far as its directory names and its entry points tell.

    ``name`` is normalised (``acme-volumes``); ``metadata_path`` is its ``.dist-info`` or ``.egg-info``;
    ``location`` the ``sys.path`` entry that holds it; ``entry_points`` those of the scanned group.
    """

    __slots__ = ("entry_points", "location", "metadata_path", "name", "version")

    def __init__(
        self, name: str, version: str, metadata_path: str, location: str, entry_points: tuple[EntryPoint, ...]
    ) -> None:
        self.name = name
        self.version = version
        self.metadata_path = metadata_path
        self.location = location
        self.entry_points = entry_points

    def __repr__(self) -> str:
        return f"Distribution({self.name!r}, {self.version!r}, {self.metadata_path!r}, {self.entry_points!r})"


def scan(group: str, path: Iterable[str] | None = None) -> list[Distribution]:
    """Distributions on ``path`` (``sys.path`` when None) with entry points of the group, the first copy of each."""
    found: dict[str, Distribution] = {}
    for location in sys.path if path is None else path:
        for distribution in scan_directory(location, group):
            found.setdefault(distribution.name, distribution)
    return [distribution for distribution in found.values() if distribution.entry_points]


def scan_directory(location: str, group: str) -> Iterator[Distribution]:
    """All distributions whose metadata lies in the directory, those without such entry points too."""
    directory = location or os.curdir
    try:
        names = os.listdir(directory)
    except OSError:
        return
    marker = f"[{group}]".encode()
    for entry in names:
        if entry.endswith(_METADATA_SUFFIXES) and entry[0] not in "~.-":
            name, version = split_stem(entry[:-10])
            metadata_path = f"{directory}/{entry}"
            yield Distribution(name, version, metadata_path, location, read_entry_points(metadata_path, group, marker))


def split_stem(stem: str) -> tuple[str, str]:
    """Normalised name and version of ``acme_volumes-1.0`` or ``acme_volumes-1.0-py3.11``; the version may be ""."""
    name, _, rest = stem.partition("-")
    return normalize(name), rest.partition("-")[0]


def normalize(name: str) -> str:
    """A distribution's name in its canonical form: lower case, runs of ``-_.`` as one hyphen."""
    name = name.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name


def read_entry_points(metadata_path: str, group: str, marker: bytes) -> tuple[EntryPoint, ...]:
    """The entry points of the group in a metadata directory; none when it has no such file."""
    try:
        descriptor = os.open(f"{metadata_path}/entry_points.txt", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        data = os.read(descriptor, 1 << 20)
    finally:
        os.close(descriptor)
    if marker not in data:
        return ()
    return tuple(parse_entry_points(data.decode("utf-8", "replace").splitlines(), group))


def parse_entry_points(lines: Sequence[str], group: str) -> Iterator[EntryPoint]:
    """Entry points of one group from the lines of an ``entry_points.txt``; what is no ``name = value`` is skipped."""
    wanted = False
    for raw in lines:
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and line[-1] == "]":
            wanted = line[1:-1].strip() == group
        elif wanted:
            name, equals, value = line.partition("=")
            if equals:
                yield EntryPoint(name.strip(), value.strip())
