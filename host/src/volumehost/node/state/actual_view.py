"""What can be asked of the actual state of world; the reconciler, status and whoever tells of the node ask it.

Records handed out are snapshots, which no later change reaches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from volumehost.node.state import of_pods
from volumehost.node.state.records import AttachedVolume, MountedVolume
from volumehost.node.state.states import Attachability, MountState, Need, ResizeHold

if TYPE_CHECKING:
    pass


class ActualView:
    """The volumes of the node, to look at; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._volumes: dict[str, AttachedVolume] = {}
        self._by_pod: dict[str, list[str]] = {}
        #: Whether a restart has ever found a directory of which nothing else told.
        self.has_directories = False

    # --- what is wanting ---------------------------------------------------------------------------------------

    def check(
        self, name: str, pod_uid: str, *, attachable: bool = False, size: int = 0, label: str | None = None
    ) -> Need:
        """What a wanted volume lacks (ASW-30).

        :param attachable: it has to be attached before it is used; if not, an attachment is undone before (BR-49).
        :param size: the size that it is to have, in bytes, 0 for any.
        :param label: the SELinux label that it is to be mounted with, "" for none, None where there is no SELinux.
        """
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None:
                return Need.ATTACH
            if label is not None and _has_other_label(volume, label):
                return Need.RELABEL
            as_wanted = volume.attached and attachable == (volume.attachability is Attachability.TRUE)
            in_use = volume.held is not None or volume.device_state.may_be_mounted
            if not as_wanted and (attachable or not in_use):
                return Need.ATTACH
            need = _mount_need(volume, pod_uid)
            if need is Need.NOTHING and 0 < volume.size < size and volume.resize_hold is ResizeHold.NONE:
                need = Need.RESIZE
            return need

    def state_of(self, name: str, pod_uid: str) -> Need:
        """What the pod's use of the volume lacks, whatever the volume itself lacks."""
        with self._lock:
            volume = self._volumes.get(name)
            return _mount_need(volume, pod_uid) if volume is not None else Need.ATTACH

    def lacking(self, names: Iterable[str], pod_uid: str) -> list[str]:
        """Those of the volumes of which :meth:`state_of` tells anything but ``NOTHING``."""
        with self._lock:
            volumes = self._volumes
            return [
                name
                for name in names
                if (volume := volumes.get(name)) is None or _mount_need(volume, pod_uid) is not Need.NOTHING
            ]

    def has_other_label(self, name: str, label: str) -> bool:
        """Whether the volume is, or may be, mounted with another SELinux label than this, "" for none (DSW-08)."""
        with self._lock:
            volume = self._volumes.get(name)
            return volume is not None and _has_other_label(volume, label)

    # --- what there is -----------------------------------------------------------------------------------------

    def has_volume(self, name: str) -> bool:
        """Whether the node knows the volume."""
        return name in self._volumes

    def get_volume(self, name: str) -> AttachedVolume | None:
        """A snapshot of the volume."""
        with self._lock:
            volume = self._volumes.get(name)
            return volume.snapshot() if volume is not None else None

    def is_left_over(self, name: str) -> bool:
        """Whether no pod has the volume, and it is or may be on the node all the same: staged or attached."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None or volume.held is not None:
                return False
            return volume.device_state.may_be_mounted or volume.attachability is Attachability.TRUE

    def is_from_directory(self, name: str) -> bool:
        """Whether nothing but a directory tells of the volume."""
        with self._lock:
            volume = self._volumes.get(name)
            return volume is not None and volume.from_directory

    def is_in_use(self, name: str) -> bool:
        """Whether the volume is, or may be, staged or mounted on this node (BR-46)."""
        with self._lock:
            volume = self._volumes.get(name)
            return volume is not None and (volume.held is not None or volume.device_state.may_be_mounted)

    def pods_of_volume(self, name: str) -> list[str]:
        """UIDs of the pods that have the volume, mounted or uncertain."""
        with self._lock:
            volume = self._volumes.get(name)
            return [mount.pod_uid for mount in of_pods.items(volume.held)] if volume is not None else []

    def get_mount(self, name: str, pod_uid: str) -> MountedVolume | None:
        """The pod's volume, mounted or uncertain."""
        with self._lock:
            volume = self._volumes.get(name)
            return of_pods.get(volume.held, pod_uid) if volume is not None else None

    def mounts_of_pod(self, pod_uid: str) -> list[MountedVolume]:
        """Mounted and uncertain volumes of the pod (ASW-32)."""
        with self._lock:
            found = (of_pods.get(self._volumes[name].held, pod_uid) for name in self._by_pod.get(pod_uid, ()))
            return [mount for mount in found if mount is not None]

    def has_mounts(self, pod_uid: str) -> bool:
        """Whether the pod has a volume that is mounted or may be (VM-12)."""
        return pod_uid in self._by_pod

    def is_used_elsewhere(self, name: str, plugin_name: str, inner_name: str, pod_uid: str) -> bool:
        """Whether another pod has the PersistentVolume; uncertain counts (ASW-36).

        Without a device the volume has another name for each pod: then the plugin and the inner name tell. A volume of
        a pod's own may be called the same; after a restart that is not known.
        """
        with self._lock:
            volume = self._volumes.get(name)
            if volume is not None and any(mount.pod_uid != pod_uid for mount in of_pods.items(volume.held)):
                return True
            return any(
                (mount.plugin_name, mount.inner_name) == (plugin_name, inner_name)
                for known in self._volumes.values()
                for mount in of_pods.items(known.held)
                if mount.pod_uid != pod_uid and (mount.spec is None or mount.spec.persistent_volume is not None)
            )

    def find_by_inner_name(self, pod_uid: str, inner_name: str) -> MountedVolume | None:
        """The pod's volume with that spec name (ASW-37)."""
        return next((mount for mount in self.mounts_of_pod(pod_uid) if mount.inner_name == inner_name), None)

    def pods(self) -> list[str]:
        """UIDs of all pods that have a volume mounted or maybe mounted."""
        with self._lock:
            return list(self._by_pod)

    def volumes(self) -> list[str]:
        """Unique names of all known volumes."""
        with self._lock:
            return list(self._volumes)

    def reconstructed_mounts(self) -> list[MountedVolume]:
        """What a restart found, and nobody has mounted again."""
        with self._lock:
            return [
                mount
                for volume in self._volumes.values()
                for mount in of_pods.items(volume.held)
                if mount.reconstructed and mount.state is MountState.UNCERTAIN
            ]

    def attached_volumes(self) -> list[str]:
        """Volumes that are attached, and known to be."""
        with self._lock:
            attached = Attachability.TRUE
            return [name for name, known in self._volumes.items() if known.attachability is attached and known.attached]

    def possibly_attached(self) -> set[str]:
        """Volumes that are attached, or of which that is not clear."""
        with self._lock:
            return {name for name, known in self._volumes.items() if known.attachability is not Attachability.FALSE}

    def volumes_with_devices(self) -> list[str]:
        """Unique names of the volumes whose device is mounted or may be."""
        with self._lock:
            return [name for name, volume in self._volumes.items() if volume.device_state.may_be_mounted]

    def uncertain_attachability(self) -> list[str]:
        """Volumes whose attachability a restart left open (RECON-24)."""
        with self._lock:
            return [name for name, volume in self._volumes.items() if volume.attachability is Attachability.UNCERTAIN]

    def keys(self) -> Iterator[tuple[str, str]]:
        """Every (volume, pod), and (volume, "") for each volume, for a full resync."""
        with self._lock:
            found = [
                (name, pod_uid)
                for name, volume in self._volumes.items()
                for pod_uid in ("", *(mount.pod_uid for mount in of_pods.items(volume.held)))
            ]
        return iter(found)


def _has_other_label(volume: AttachedVolume, label: str) -> bool:
    mounted = volume.held is not None or volume.device_state.may_be_mounted
    return volume.selinux_context != label and (mounted or bool(volume.selinux_context))


def _mount_need(volume: AttachedVolume, pod_uid: str) -> Need:
    mount = of_pods.get(volume.held, pod_uid)
    if mount is None or mount.state is MountState.UNCERTAIN:
        return Need.MOUNT
    return Need.REMOUNT if mount.remount_required else Need.NOTHING
