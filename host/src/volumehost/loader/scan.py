"""Lists installed distributions that declare entry points of a group, without importing ``importlib.metadata``.

The prober uses it at every change of the environment, and commands in their first milliseconds: nothing but
built-in modules and ``os`` is imported here.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SUFFIXES = (".dist-info", ".egg-info")
_ENTRY_POINTS = "entry_points.txt"
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
#: Names with these first characters are not distributions: pip moves what it removes to names with a tilde.
_NOT_A_NAME = frozenset("~.-=%")


class Distribution:
    """An installed distribution, as far as the name of its metadata and its entry points tell.

    ``name`` is normalised (``acme-volumes``), ``version`` may be "" for an egg; ``location`` is the ``sys.path``
    entry that holds it and ``metadata_path`` its ``.dist-info`` or ``.egg-info`` there; ``entry_points`` are the
    ``(name, value)`` pairs of the scanned group.
    """

    __slots__ = ("entry_points", "location", "metadata_path", "name", "version")

    def __init__(
        self, name: str, version: str, location: str, metadata_path: str, entry_points: tuple[tuple[str, str], ...]
    ) -> None:
        self.name = name
        self.version = version
        self.location = location
        self.metadata_path = metadata_path
        self.entry_points = entry_points

    def __repr__(self) -> str:
        return f"<Distribution {self.name} {self.version} {self.metadata_path} {self.entry_points}>"


def scan(group: str, path: Iterable[str] | None = None) -> list[Distribution]:
    """Distributions on ``path`` (``sys.path`` when None) with entry points of the group.

    Of several copies of a distribution only the first on the path counts, also when it has no such entry points
    any more (BR-08).
    """
    seen: set[str] = set()
    found: list[Distribution] = []
    marker = group_marker(group)
    for location in sys.path if path is None else path:
        if not isinstance(location, str):
            continue  # Python ignores such entries too
        names = list_directory(location)
        reader = read_zip_entry if names is None else read_entry
        for entry in metadata_entries(zip_entries(location) if names is None else names, location):
            name = distribution_name(entry, location)
            if name not in seen:
                seen.add(name)
                distribution = reader(location, entry, group, marker)
                if distribution.entry_points:
                    found.append(distribution)
    return found


def group_marker(group: str) -> bytes:
    """What an ``entry_points.txt`` must contain to be worth parsing."""
    return group.encode()


def list_directory(location: str) -> list[str] | None:
    """The names in a ``sys.path`` directory, none when it does not exist; None when it is a file, maybe a zip."""
    try:
        return os.listdir(location or os.curdir)
    except NotADirectoryError:
        return None
    except (OSError, ValueError):  # ValueError: a null byte in an entry of sys.path
        return []


def metadata_entries(names: Iterable[str], location: str) -> Iterator[str]:
    """Those of the names that are metadata of a distribution."""
    for name in names:
        if name.endswith(_SUFFIXES):
            if name[0] not in _NOT_A_NAME:
                yield name
        elif name == "EGG-INFO" and location.endswith(".egg"):
            yield name


def split_entry(entry: str, location: str) -> tuple[str, str]:
    """Normalised name and version from ``acme_volumes-1.0.dist-info`` and the like; an egg may lack the version."""
    stem = os.path.basename(location)[:-4] if entry == "EGG-INFO" else entry.rpartition(".")[0]
    name, _, rest = stem.partition("-")
    return normalize(name), rest if entry.endswith(".dist-info") else rest.partition("-")[0]


def distribution_name(entry: str, location: str) -> str:
    """The normalised name alone."""
    return split_entry(entry, location)[0]


def normalize(name: str) -> str:
    """A distribution's name in its canonical form: lower case, runs of ``-_.`` as one hyphen."""
    name = name.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name


def read_entry(location: str, entry: str, group: str, marker: bytes) -> Distribution:
    """A distribution with its entry points of the group, from the name of its metadata."""
    metadata_path = f"{location or os.curdir}/{entry}"
    name, version = split_entry(entry, location)
    data = read_file(f"{metadata_path}/{_ENTRY_POINTS}")
    points = parse_entry_points(data, group) if marker in data else ()
    return Distribution(name, version, location, metadata_path, points)


def read_file(path: str) -> bytes:
    """A file's content, empty when there is none or it cannot be read."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return b""
    try:
        chunks = [os.read(descriptor, 65536)]
        while len(chunks[-1]) == 65536:
            chunks.append(os.read(descriptor, 65536))
        return b"".join(chunks)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def parse_entry_points(data: bytes, group: str) -> tuple[tuple[str, str], ...]:
    """The ``name = value`` lines of one group, the first of each name; other lines are skipped."""
    found: dict[str, str] = {}
    wanted = False
    for raw in data.decode("utf-8", "replace").splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            wanted = line == f"[{group}]" or (line[-1] == "]" and line[1:-1].strip() == group)
        elif wanted:
            name, equals, value = line.partition("=")
            if equals:
                found.setdefault(name.strip(), value.strip())
    return tuple(found.items())


def zip_entries(location: str) -> list[str]:
    """The top-level names in a zip on the path; none when the file is no zip."""
    return sorted({name.partition("/")[0] for name in _zip_names(location)})


def read_zip_entry(location: str, entry: str, group: str, marker: bytes) -> Distribution:
    """The same as :func:`read_entry` for a distribution in a zip."""
    name, version = split_entry(entry, location)
    data = read_zip_file(location, f"{entry}/{_ENTRY_POINTS}")
    points = parse_entry_points(data, group) if marker in data else ()
    return Distribution(name, version, location, f"{location}/{entry}", points)


def read_zip_file(location: str, name: str) -> bytes:
    """One file of a zip, empty when it cannot be read."""
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(location) as archive:
            return archive.read(name)
    except (OSError, KeyError, BadZipFile):
        return b""


def _zip_names(location: str) -> list[str]:
    if not os.path.isfile(location):
        return []
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(location) as archive:
            return archive.namelist()
    except (OSError, BadZipFile):
        return []
