"""What lies in the directories of pods: volumes, block maps, subpaths, markers, and what does not belong there.

Only names and kinds of entries, and the records of CSI volumes, are read here; mounts are not entered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from volumehost.inspection.records import VOL_DATA, VOL_DATA_TEMPORARY, VolumeRecord, read_volume_record
from volumehost.inspection.tree import Entry, EntryKind, Tree
from volumehost.sdk.names import unescape_qualified_name
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE

CSI: Final = "kubernetes.io/csi"
EMPTY_DIR: Final = "kubernetes.io/empty-dir"

#: Plugins whose volumes hold a copy of objects of the API, and nothing else.
COPYING_PLUGINS: Final = frozenset(
    f"kubernetes.io/{name}" for name in ("configmap", "secret", "projected", "downward-api")
)

#: Children of a pod's directory that a kubelet or this host makes; all but the first three hold no volume's data.
POD_CHILDREN: Final = frozenset({"volumes", "volumeDevices", "volume-subpaths", "plugins", "containers", "etc-hosts"})

#: Names of what is in a directory that are looked at: enough to tell what it is.
NAMES_SHOWN: Final = 5

#: By which an emptyDir is known to lie on a mount of its own.
_ON_MOUNT: Final = "on-mount"

_GENERATION: Final = re.compile(r"\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.[0-9A-Za-z]+")

#: Files that plugins keep beside a pod's volumes, in ``plugins/<plugin>/<volume>``.
MARKERS: Final = frozenset({"ready", _ON_MOUNT})


@dataclass(frozen=True, slots=True)
class VolumeEntry:
    """A volume's directory, or the link of a block volume. ``content``: first names in it, unless a mount hides them.

    ``stray``: what is beside the mount and the record of a CSI volume. ``on_mount``: a marker says that it lies on a
    mount of its own. ``payload``: all that is in it is a copy of what the API has, put there in the way of such copies.
    """

    pod_uid: str
    plugin: str
    name: str
    mode: str
    path: str
    mount_path: str
    entry: Entry
    at_mount_path: Entry
    record: VolumeRecord | None = None
    content: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()
    temporary: bool = False
    on_mount: bool = False
    payload: bool = False


@dataclass(frozen=True, slots=True)
class SubpathEntry:
    """The place of a container's subpath; ``entry`` is a mount when it is in use."""

    pod_uid: str
    volume: str
    path: str
    entry: Entry
    content: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stray:
    """Something that does not belong where it is; ``content``: first names in it when it is a directory."""

    path: str
    kind: EntryKind
    content: tuple[str, ...] = ()

    @property
    def holds_data(self) -> bool:
        """Whether removing it would remove more than an empty directory or a link."""
        return self.kind not in (EntryKind.DIRECTORY, EntryKind.LINK, EntryKind.MOUNT) or bool(self.content)

    def __str__(self) -> str:
        what = "unreadable" if self.kind is EntryKind.UNREADABLE else f"a {self.kind}"
        holds = f" that holds {', '.join(self.content)}" if self.content else ""
        return f"{self.path} is {what}{holds}"


@dataclass(frozen=True, slots=True)
class PodEntry:
    """A pod's directory. ``unexpected`` does not belong there, ``plugin_files`` is what plugins keep for the pod."""

    uid: str
    path: str
    entry: Entry
    children: tuple[str, ...] = ()
    volumes: tuple[VolumeEntry, ...] = ()
    subpaths: tuple[SubpathEntry, ...] = ()
    unexpected: tuple[Stray, ...] = ()
    plugin_files: tuple[Stray, ...] = ()


def is_generation(name: str) -> bool:
    """Whether it is the name of a generation of a payload: ``..2026_01_31_12_00_00.123456789``."""
    return _GENERATION.fullmatch(name) is not None


def read_pods(tree: Tree) -> list[PodEntry]:
    """Every pod's directory."""
    return [_read_pod(tree, uid) for uid in tree.names("pods")]


def _read_pod(tree: Tree, uid: str) -> PodEntry:
    relative = f"pods/{uid}"
    entry = tree.look(relative)
    if entry.kind is not EntryKind.DIRECTORY:
        return PodEntry(uid, tree.path(relative), entry)
    reader = _PodReader(tree, uid, relative)
    children = tree.names(relative)
    reader.look_at_children(children)
    volumes = tuple(reader.volumes())
    subpaths = tuple(reader.subpaths())
    return PodEntry(
        uid=uid,
        path=tree.path(relative),
        entry=entry,
        children=tuple(children),
        volumes=volumes,
        subpaths=subpaths,
        unexpected=tuple(reader.unexpected),
        plugin_files=tuple(reader.plugin_files()),
    )


class _PodReader:
    """Reads one pod's directory."""

    def __init__(self, tree: Tree, uid: str, relative: str) -> None:
        self._tree = tree
        self._uid = uid
        self._relative = relative
        self.unexpected: list[Stray] = []

    def look_at_children(self, children: list[str]) -> None:
        """Note what is no child of a pod's directory, or is not the directory that it should be."""
        for name in children:
            kind = self._tree.look(f"{self._relative}/{name}").kind
            expected = EntryKind.FILE if name == "etc-hosts" else EntryKind.DIRECTORY
            if name not in POD_CHILDREN or kind is not expected:
                self._unexpected(f"{self._relative}/{name}")

    def plugin_files(self) -> list[Stray]:
        """What plugins keep for the pod besides their known markers, in ``plugins/<plugin>/<volume>``."""
        found = []
        top = f"{self._relative}/plugins"
        for plugin in self._tree.names(top):
            for volume in self._tree.names(f"{top}/{plugin}"):
                place = f"{top}/{plugin}/{volume}"
                found += [] if self._tree.look(place).kind is EntryKind.DIRECTORY else [self._stray(place)]
                found += [
                    self._stray(f"{place}/{name}")
                    for name in self._tree.names(place)
                    if name not in MARKERS or self._tree.look(f"{place}/{name}").kind is not EntryKind.FILE
                ]
        return found

    def volumes(self) -> list[VolumeEntry]:
        """Volumes with a filesystem, then raw block ones."""
        found = []
        for base, mode in (("volumes", FILESYSTEM_MODE), ("volumeDevices", BLOCK_MODE)):
            for escaped in self._tree.names(f"{self._relative}/{base}"):
                above = f"{self._relative}/{base}/{escaped}"
                if self._is_plugins_directory(above, escaped):
                    found += [self._volume(above, escaped, name, mode) for name in self._tree.names(above)]
        return found

    def _is_plugins_directory(self, relative: str, escaped: str) -> bool:
        kind = self._tree.look(relative).kind
        named = escaped.count("~") == 1 and not escaped.startswith("~") and not escaped.endswith("~")
        if kind is not EntryKind.DIRECTORY:
            self._unexpected(relative)
        elif not named:  # what is in it is looked at all the same
            self.unexpected.append(Stray(self._tree.path(relative), kind))
        return kind is EntryKind.DIRECTORY

    def _volume(self, above: str, escaped: str, name: str, mode: str) -> VolumeEntry:
        relative, plugin = f"{above}/{name}", unescape_qualified_name(escaped)
        entry, path = self._tree.look(relative), self._tree.path(relative)
        if mode == BLOCK_MODE:
            if entry.kind is not EntryKind.LINK:
                self._unexpected(relative)
            return VolumeEntry(self._uid, plugin, name, mode, path, path, entry, entry)
        if entry.kind not in (EntryKind.DIRECTORY, EntryKind.MOUNT):
            self._unexpected(relative)
        if plugin == CSI:
            return self._csi_volume(relative, name, entry)
        content = tuple(self._tree.names(relative, NAMES_SHOWN)) if entry.kind is EntryKind.DIRECTORY else ()
        marker = f"{self._relative}/plugins/{escaped}/{name}/{_ON_MOUNT}"
        on_mount = plugin == EMPTY_DIR and self._tree.look(marker).kind is EntryKind.FILE
        return VolumeEntry(
            pod_uid=self._uid,
            plugin=plugin,
            name=name,
            mode=mode,
            path=path,
            mount_path=path,
            entry=entry,
            at_mount_path=entry,
            content=content,
            on_mount=on_mount,
            payload=bool(content) and plugin in COPYING_PLUGINS and self._is_payload(relative),
        )

    def _is_payload(self, relative: str) -> bool:
        """Whether it holds nothing but generations of a payload and links into them (see ``sdk.AtomicWriter``)."""
        for name in self._tree.names(relative):
            kind = self._tree.look(f"{relative}/{name}").kind
            if kind is not EntryKind.LINK and not (kind is EntryKind.DIRECTORY and is_generation(name)):
                return False
        return True

    def _csi_volume(self, relative: str, name: str, entry: Entry) -> VolumeEntry:
        """CSI volumes are mounted one level further down, beside their record (LAYOUT-09)."""
        target = self._tree.look(f"{relative}/mount")
        names = self._tree.names(relative) if entry.kind is EntryKind.DIRECTORY else []
        return VolumeEntry(
            pod_uid=self._uid,
            plugin=CSI,
            name=name,
            mode=FILESYSTEM_MODE,
            path=self._tree.path(relative),
            mount_path=self._tree.path(f"{relative}/mount"),
            entry=entry,
            at_mount_path=target,
            record=read_volume_record(self._tree, relative),
            content=tuple(self._tree.names(f"{relative}/mount", NAMES_SHOWN)),
            stray=tuple(each for each in names if each not in ("mount", VOL_DATA, VOL_DATA_TEMPORARY)),
            temporary=VOL_DATA_TEMPORARY in names,
        )

    def subpaths(self) -> list[SubpathEntry]:
        """``volume-subpaths/<volume>/<container>/<index>`` (SUBPATH-22)."""
        found = []
        top = f"{self._relative}/volume-subpaths"
        for volume in self._tree.names(top):
            for container in self._tree.names(f"{top}/{volume}"):
                for index in self._tree.names(f"{top}/{volume}/{container}"):
                    relative = f"{top}/{volume}/{container}/{index}"
                    entry = self._tree.look(relative)
                    content = tuple(self._tree.names(relative, NAMES_SHOWN))
                    found.append(SubpathEntry(self._uid, volume, self._tree.path(relative), entry, content))
        return found

    def _unexpected(self, relative: str) -> None:
        self.unexpected.append(self._stray(relative))

    def _stray(self, relative: str) -> Stray:
        content = tuple(self._tree.names(relative, NAMES_SHOWN))
        return Stray(self._tree.path(relative), self._tree.look(relative).kind, content)
