"""What lies below ``plugins``: volumes that are mounted or mapped for the whole node, by the places that are known.

CSI's (both layouts, and raw block), and the ``mounts`` and ``volumeDevices`` directories of built-in plugins. Mounts
elsewhere below ``plugins`` are found in the mount table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from volumehost.inspection.pod_directories import CSI, NAMES_SHOWN
from volumehost.inspection.records import (
    VOL_DATA,
    VOL_DATA_TEMPORARY,
    VolumeRecord,
    read_volume_record,
)
from volumehost.inspection.tree import Entry, EntryKind, Tree
from volumehost.sdk.names import unescape_qualified_name
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE

_OWN: Final = "plugins/kubernetes.io"
_BLOCK: Final = f"{_OWN}/csi/volumeDevices"
#: Names in ``volumeDevices`` of CSI that are no volumes (CSI-PATH-11), and in ``csi`` that are no drivers.
_RESERVED_BLOCK: Final = ("staging", "publish")
_RESERVED_CSI: Final = ("volumeDevices", "pv")


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """A volume as it is there for the whole node. ``directory`` holds it and its record.

    ``mount_path`` is where its filesystem is mounted, or the directory of a block volume's binds. ``pods``: uids by
    the names of those binds, and of what the driver published.
    """

    plugin: str
    mode: str
    directory: str
    mount_path: str
    name: str
    entry: Entry
    record: VolumeRecord | None = None
    driver: str = ""
    content: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()
    temporary: bool = False
    pods: tuple[str, ...] = ()
    #: Further places at which something of it is mounted.
    places: tuple[str, ...] = field(default=())


def read_devices(tree: Tree) -> list[DeviceEntry]:
    """All that are known by their places."""
    return [*_csi_filesystems(tree), *_csi_blocks(tree), *_of_built_in_plugins(tree)]


def _csi_filesystems(tree: Tree) -> Iterator[DeviceEntry]:
    places = [
        (f"{_OWN}/csi/{driver}", digest, driver)
        for driver in tree.names(f"{_OWN}/csi")
        if driver not in _RESERVED_CSI
        for digest in tree.names(f"{_OWN}/csi/{driver}")
    ]
    # The place of releases before Kubernetes 1.24.
    places += [(f"{_OWN}/csi/pv", volume, "") for volume in tree.names(f"{_OWN}/csi/pv")]
    for above, name, driver in places:
        entry = _csi_filesystem(tree, f"{above}/{name}", name, driver)
        if entry is not None:
            yield entry


def _csi_filesystem(tree: Tree, relative: str, name: str, driver: str) -> DeviceEntry | None:
    names = tree.names(relative)
    if tree.look(relative).kind is not EntryKind.DIRECTORY or not {"globalmount", VOL_DATA} & set(names):
        # A driver may keep what it likes below its own name.
        return None if names else _empty(tree, relative, name, driver)
    record = read_volume_record(tree, relative)
    return DeviceEntry(
        plugin=CSI,
        mode=FILESYSTEM_MODE,
        directory=tree.path(relative),
        mount_path=tree.path(f"{relative}/globalmount"),
        name=name,
        entry=tree.look(f"{relative}/globalmount"),
        record=record,
        driver=record.driver or driver,
        content=tuple(tree.names(f"{relative}/globalmount", NAMES_SHOWN)),
        stray=tuple(each for each in names if each not in ("globalmount", VOL_DATA, VOL_DATA_TEMPORARY)),
        temporary=VOL_DATA_TEMPORARY in names,
    )


def _empty(tree: Tree, relative: str, name: str, driver: str) -> DeviceEntry | None:
    """An empty directory with the name of a digest is what is left of a volume."""
    if len(name) != 64 or tree.look(relative).kind is not EntryKind.DIRECTORY:
        return None
    path = tree.path(relative)
    missing = Entry(EntryKind.MISSING)
    return DeviceEntry(CSI, FILESYSTEM_MODE, path, f"{path}/globalmount", name, missing, driver=driver)


def _csi_blocks(tree: Tree) -> list[DeviceEntry]:
    names = set(tree.names(_BLOCK)) - set(_RESERVED_BLOCK)
    for base in _RESERVED_BLOCK:
        names |= set(tree.names(f"{_BLOCK}/{base}"))
    return [_csi_block(tree, name) for name in sorted(names)]


def _csi_block(tree: Tree, name: str) -> DeviceEntry:
    relative = f"{_BLOCK}/{name}"
    record = read_volume_record(tree, f"{relative}/data")
    maps, published = tree.names(f"{relative}/dev"), tree.names(f"{_BLOCK}/publish/{name}")
    return DeviceEntry(
        plugin=CSI,
        mode=BLOCK_MODE,
        directory=tree.path(relative),
        mount_path=tree.path(f"{relative}/dev"),
        name=unescape_qualified_name(name),
        entry=tree.look(f"{relative}/dev"),
        record=record,
        driver=record.driver,
        content=tuple(tree.names(f"{_BLOCK}/staging/{name}", NAMES_SHOWN)),
        stray=tuple(each for each in tree.names(relative) if each not in ("data", "dev")),
        temporary=VOL_DATA_TEMPORARY in tree.names(f"{relative}/data"),
        pods=tuple(sorted({*maps, *published})),
        places=(tree.path(f"{_BLOCK}/staging/{name}"), tree.path(f"{_BLOCK}/publish/{name}")),
    )


def _of_built_in_plugins(tree: Tree) -> list[DeviceEntry]:
    found = []
    for name in tree.names(_OWN):
        if name == "csi":
            continue
        for base, mode in (("mounts", FILESYSTEM_MODE), ("volumeDevices", BLOCK_MODE)):
            for volume in tree.names(f"{_OWN}/{name}/{base}"):
                relative = f"{_OWN}/{name}/{base}/{volume}"
                path, entry = tree.path(relative), tree.look(relative)
                names = tuple(tree.names(relative, NAMES_SHOWN))
                pods = names if mode == BLOCK_MODE else ()
                plugin = f"kubernetes.io/{name}"
                found.append(DeviceEntry(plugin, mode, path, path, volume, entry, content=names, pods=pods))
    return found
