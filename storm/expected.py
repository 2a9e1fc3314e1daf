"""What must be on the node for the pods that are wanted: every mount, directory, file, loop device and attachment.

Worked out from the wishes, the objects in the store and the kubelet's layout; nothing is asked of the manager.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from storm.wishes import FAKE, Pod, Volume, host_path

_CSI = "kubernetes.io~csi"


@dataclass(frozen=True)
class Source:
    """A CSI volume: the PersistentVolume's name (for an inline one the volume's own) and the driver's handle."""

    name: str
    handle: str
    driver: str
    claim: str = ""


@dataclass
class Expected:
    """All that must be there, and nothing else. ``paths`` has where containers find each volume, by pod and volume."""

    mounts: set[str] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)
    paths: dict[tuple[str, str], str] = field(default_factory=dict)
    mounts_of: dict[str, set[str]] = field(default_factory=dict)
    attached: set[str] = field(default_factory=set)
    published: dict[str, set[str]] = field(default_factory=dict)
    staged: dict[str, set[str]] = field(default_factory=dict)

    def mount(self, pod: Pod, path: str) -> None:
        """Something must be mounted there for the pod."""
        self.mounts.add(path)
        self.mounts_of.setdefault(pod.name, set()).add(path)
        self.entry(path)

    def entry(self, *paths: str) -> None:
        """The path must exist, and so all that lead to it."""
        for each in paths:
            path = each
            while path not in self.entries and path != "/":
                self.entries.add(path)
                path = posixpath.dirname(path)


def expected(
    root: str,
    host_data: str,
    pods: Iterable[Pod],
    sources: Mapping[tuple[str, str], Source],
    subpaths: Iterable[str] = (),
) -> Expected:
    """For these pods, whose uids are known.

    :param sources: the CSI volumes by the names of pod and volume.
    :param subpaths: names of pods whose subpaths were prepared.
    """
    found = Expected()
    found.entry(f"{root}/pods", f"{root}/plugins/kubernetes.io/csi")
    prepared = set(subpaths)
    for pod in pods:
        directory = f"{root}/pods/{pod.uid}"
        for volume in pod.volumes:
            source = sources.get((pod.name, volume.name))
            if volume.is_csi and source is not None:
                _csi(found, root, pod, volume, source)
            elif not volume.is_csi:
                _own(found, directory, host_data, pod, volume)
            if volume.has_sub_path and pod.name in prepared:
                _subpath(found, directory, pod, volume, source)
    return found


def _own(found: Expected, directory: str, host_data: str, pod: Pod, volume: Volume) -> None:
    key = pod.name, volume.name
    if volume.kind in ("host", "created"):
        found.paths[key] = host_path(volume, host_data)
        return
    path = found.paths[key] = f"{directory}/volumes/kubernetes.io~empty-dir/{volume.name}"
    meta = f"{directory}/plugins/kubernetes.io~empty-dir/{volume.name}"
    found.entry(path, f"{meta}/ready")
    if volume.kind == "memory":
        found.mount(pod, path)
        found.entry(f"{meta}/on-mount")


def _csi(found: Expected, root: str, pod: Pod, volume: Volume, source: Source) -> None:
    directory = f"{root}/pods/{pod.uid}"
    plugin = f"{root}/plugins/kubernetes.io/csi"
    key = pod.name, volume.name
    if volume.kind != "inline":
        found.attached.add(source.name)
    if volume.is_block:
        devices = f"{plugin}/volumeDevices"
        published = f"{devices}/publish/{source.name}/{pod.uid}"
        found.mount(pod, published)
        found.mount(pod, f"{devices}/{source.name}/dev/{pod.uid}")
        found.entry(f"{devices}/{source.name}/data/vol_data.json", f"{devices}/staging/{source.name}")
        found.entry(f"{directory}/volumeDevices/{_CSI}/{source.name}")
        found.paths[key] = published
        staged = f"{devices}/staging/{source.name}"
    else:
        published = found.paths[key] = f"{directory}/volumes/{_CSI}/{source.name}/mount"
        found.mount(pod, published)
        found.entry(f"{directory}/volumes/{_CSI}/{source.name}/vol_data.json")
        staged = ""
        if volume.kind != "inline":
            global_dir = f"{plugin}/{source.driver}/{hashlib.sha256(source.handle.encode()).hexdigest()}"
            staged = f"{global_dir}/globalmount"
            found.mount(pod, staged)
            found.entry(f"{global_dir}/vol_data.json")
    if source.driver == FAKE:
        found.published.setdefault(source.handle, set()).add(published)
        found.staged.setdefault(source.handle, set()).add(staged)


def _subpath(found: Expected, directory: str, pod: Pod, volume: Volume, source: Source | None) -> None:
    mounts = pod.manifest("")["spec"]["containers"][0]["volumeMounts"]
    index = next(number for number, mount in enumerate(mounts) if mount.get("subPath") and mount["name"] == volume.name)
    name = source.name if source is not None else volume.name
    found.mount(pod, f"{directory}/volume-subpaths/{name}/main/{index}")
