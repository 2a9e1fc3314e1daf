"""Actual state of world: what is attached and mounted on this node, or may be (ASW rules).

Operations and reconstruction write it, the reconciler reads it. Records handed out are snapshots.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from volumehost.errors import VolumeHostError
from volumehost.node.records import AttachedVolume, MountCheck, MountedVolume
from volumehost.node.states import Attachability, DeviceState, MountState, Need, ResizeHold

if TYPE_CHECKING:
    from volumehost.node.desired import Changed
    from volumehost.spec import Spec


class ActualState:
    """The volumes of the node; safe for threads. ``changed`` is told of every change, under the lock.

    ``recorded_spec`` reads the spec of a volume from where it was recorded, when it is first asked for after a restart.
    """

    def __init__(self, changed: Changed, recorded_spec: Callable[[str], Spec | None] = lambda _name: None) -> None:
        self._changed = changed
        self._recorded_spec = recorded_spec
        self._lock = threading.Lock()
        self._volumes: dict[str, AttachedVolume] = {}
        self._by_pod: dict[str, dict[str, None]] = {}

    # --- volumes --------------------------------------------------------------------------------------------

    def mark_attached(
        self, name: str, plugin_name: str, spec: Spec, attachability: Attachability, device_path: str = ""
    ) -> None:
        """The volume is attached, or needs no attaching (ASW-10). Of a known one the device path changes.

        An attachability that a restart left uncertain, and a spec that it could not recover, are filled in too. What is
        attached once has to be detached, whatever is said of it later.
        """
        with self._lock:
            known = self._volumes.get(name)
            if known is None:
                self._volumes[name] = AttachedVolume(
                    name, plugin_name, spec, attachability, device_path=device_path, mode=spec.volume_mode()
                )
            else:
                known.device_path = device_path
                if known.attachability is not Attachability.TRUE:
                    known.attachability = attachability
                known.attached = True
                if known.spec is None:
                    known.spec = spec
            self._changed(name, "")

    def mark_maybe_attached(self, name: str, plugin_name: str, spec: Spec) -> None:
        """An attach is begun: the attachment is neither counted on nor forgotten (BR-47)."""
        with self._lock:
            known = self._volumes.get(name)
            if known is None:
                mode = spec.volume_mode()
                known = AttachedVolume(name, plugin_name, spec, Attachability.TRUE, mode=mode)
                self._volumes[name] = known
            known.attachability, known.attached = Attachability.TRUE, False
            self._changed(name, "")

    def mark_unconfirmed(self, name: str) -> None:
        """A detach has failed: what is left of the attachment is not counted on (DETACH-03)."""
        with self._lock:
            known = self._volumes.get(name)
            if known is not None:
                known.attached = False

    def mark_not_attachable(self, name: str) -> None:
        """The volume needs no attaching any more, and is not attached (BR-49). Unknown ones are ignored."""
        with self._lock:
            known = self._volumes.get(name)
            if known is not None:
                known.attachability, known.attached = Attachability.FALSE, True
                self._changed(name, "")

    def enter(self, volumes: Iterable[AttachedVolume], mounts: Iterable[MountedVolume]) -> list[str]:
        """Take over what a restart found, uncertain as it is (ASW-11, ASW-21); returns the volumes that were new.

        What is known already keeps its newer data, but for a device of which only the new ones tell (RECON-23). Their
        records belong to this state from now on. Who enters them has everything looked at.
        """
        new = []
        with self._lock:
            for volume in volumes:
                known = self._volumes.setdefault(volume.name, volume)
                if known is volume:
                    new.append(volume.name)
                elif volume.device_state.may_be_mounted and not known.device_state.may_be_mounted:
                    known.device_state, known.device_owed = volume.device_state, volume.device_owed
                    known.device_mount_path = volume.device_mount_path
                    known.spec = known.spec or volume.spec
            for mount in mounts:
                of_volume = self._volumes[mount.volume].pods
                if mount.pod_uid not in of_volume:
                    of_volume[mount.pod_uid] = mount
                    self._by_pod.setdefault(mount.pod_uid, {})[mount.volume] = None
        return new

    def mark_detached(self, name: str) -> None:
        """Forget the volume (ASW-12).

        :raises VolumeHostError: pods still use it.
        """
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None:
                return
            if volume.pods:
                raise VolumeHostError(
                    f"{len(volume.pods)} pods still use it", action=f"forgetting volume {name}", subject=name
                )
            del self._volumes[name]
            self._changed(name, "")

    def forget_unless_held(self, name: str) -> AttachedVolume | None:
        """Forget a volume of which nothing is left; otherwise a snapshot of it, to see what holds it.

        Held is what has pods, a device that may be mounted, or an attachment that is there or not clear yet.
        """
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None:
                return None
            attached = volume.attachability is not Attachability.FALSE
            if volume.pods or volume.device_state.may_be_mounted or attached:
                return self._snapshot(volume)
            del self._volumes[name]
            return None

    def set_device(self, name: str, state: DeviceState, *, device_path: str = "", device_mount_path: str = "") -> None:
        """The device's global mount; an empty device path keeps the former one (ASW-18).

        :raises VolumeHostError: the volume is not known.
        """
        with self._lock:
            volume = self._known(name)
            volume.device_state = state
            volume.device_mount_path = device_mount_path
            volume.device_path = device_path or volume.device_path
            if state is not DeviceState.UNCERTAIN:
                volume.device_owed = False
            self._changed(name, "")

    def mark_device_unmounting(self, name: str, device_mount_path: str) -> None:
        """The unmount of the device is sent: it is not mounted until a new mount succeeds, and may still be (BR-32).

        :raises VolumeHostError: the volume is not known.
        """
        with self._lock:
            volume = self._known(name)
            volume.device_state, volume.device_mount_path = DeviceState.UNCERTAIN, device_mount_path
            volume.device_owed = True
            self._changed(name, "")

    def set_attachability(self, name: str, attachability: Attachability, device_path: str | None = None) -> None:
        """Resolve what a restart left uncertain; a confirmed one keeps its newer data (ASW-22)."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None or volume.attachability is not Attachability.UNCERTAIN:
                return
            volume.attachability = attachability
            volume.attached = device_path is not None or attachability is not Attachability.TRUE
            if device_path is not None and volume.device_state is DeviceState.UNCERTAIN:
                volume.device_path = device_path
            self._changed(name, "")

    # --- volumes of pods ------------------------------------------------------------------------------------

    def put_mount(self, mount: MountedVolume) -> None:
        """The pod's volume is mounted or may be (ASW-13 to -16).

        A mounted entry keeps its data when the new record lacks them; the state is always overwritten, so that a
        failed teardown makes it uncertain. Being mounted ends the mark of reconstruction.

        :raises VolumeHostError: the volume is not known.
        """
        with self._lock:
            volume = self._known(mount.volume)
            former = volume.pods.get(mount.pod_uid)
            if former is not None and former.state is MountState.MOUNTED:
                mount = replace(
                    mount,
                    mounter=mount.mounter or former.mounter,
                    mapper=mount.mapper or former.mapper,
                    spec=mount.spec or former.spec,
                    path=mount.path or former.path,
                    is_mount=former.is_mount if mount.is_mount is None else mount.is_mount,
                    mount_point=mount.mount_point or former.mount_point,
                )
            if mount.state is MountState.MOUNTED and mount.reconstructed:
                mount = replace(mount, reconstructed=False)
            volume.pods[mount.pod_uid] = mount
            volume.from_directory = volume.from_directory and mount.state is not MountState.MOUNTED
            self._by_pod.setdefault(mount.pod_uid, {})[mount.volume] = None
            self._changed(mount.volume, mount.pod_uid)

    def mark_uncertain(self, name: str, pod_uid: str) -> None:
        """Something was begun that may or may not have changed the mount; unknown entries are ignored."""
        with self._lock:
            volume = self._volumes.get(name)
            mount = volume.pods.get(pod_uid) if volume is not None else None
            if volume is not None and mount is not None and mount.state is not MountState.UNCERTAIN:
                volume.pods[pod_uid] = replace(mount, state=MountState.UNCERTAIN)
                self._changed(name, pod_uid)

    def mark_unmounted(self, name: str, pod_uid: str) -> None:
        """Nothing of the pod's volume is left (ASW-17).

        :raises VolumeHostError: the volume is not known.
        """
        with self._lock:
            volume = self._known(name)
            if volume.pods.pop(pod_uid, None) is None:
                return
            of_pod = self._by_pod[pod_uid]
            del of_pod[name]
            if not of_pod:
                del self._by_pod[pod_uid]
            self._changed(name, pod_uid)
            self._changed(name, "")

    def mark_remount_required(self, name: str, pod_uid: str) -> None:
        """Ask for a refresh of the pod's volume if it is mounted (ASW-20)."""
        with self._lock:
            volume = self._volumes.get(name)
            mount = volume.pods.get(pod_uid) if volume is not None else None
            if volume is not None and mount is not None and mount.state is MountState.MOUNTED:
                volume.pods[pod_uid] = replace(mount, remount_required=True)
                self._changed(name, pod_uid)

    # --- labels ---------------------------------------------------------------------------------------------

    def set_selinux_context(self, name: str, label: str) -> None:
        """The volume is mounted with that label from now on; one that is known stays (ASW-15, -18, -19)."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is not None and not volume.selinux_context:
                volume.selinux_context = label

    def has_other_label(self, name: str, label: str) -> bool:
        """Whether the volume is, or may be, mounted with another SELinux label than this, "" for none (DSW-08)."""
        with self._lock:
            volume = self._volumes.get(name)
            return volume is not None and _has_other_label(volume, label)

    # --- sizes ----------------------------------------------------------------------------------------------

    def initialize_size(self, name: str, size: int) -> None:
        """The size that the claim has got, in bytes, unless the node knows better (ASW-24)."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is not None and not volume.size:
                volume.size = size

    def mark_resized(self, name: str, size: int) -> bool:
        """The node has grown the volume; False when it is not known (ASW-24)."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None:
                return False
            volume.size, volume.resize_failed, volume.resize_hold = size, False, ResizeHold.NONE
            return True

    def hold_resize(self, name: str, hold: ResizeHold, *, failed: bool | None = None) -> None:
        """Do not grow the volume for now; ``failed`` remembers a failure that no retry helps (EXPN-32)."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None:
                return
            if volume.resize_hold not in (ResizeHold.IN_USE, hold):
                volume.resize_hold = hold
                for pod_uid in volume.pods:
                    self._changed(name, pod_uid)
            if failed is not None:
                volume.resize_failed = failed

    # --- queries --------------------------------------------------------------------------------------------

    def check(
        self, name: str, pod_uid: str, *, attachable: bool = False, size: int = 0, label: str | None = None
    ) -> MountCheck:
        """What a wanted volume lacks (ASW-30).

        :param attachable: it has to be attached before it is used; if not, an attachment is undone before (BR-49).
        :param size: the size that it is to have, in bytes, 0 for any.
        :param label: the SELinux label that it is to be mounted with, "" for none, None where there is no SELinux.
        """
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None:
                return MountCheck(Need.ATTACH, "")
            if label is not None and _has_other_label(volume, label):
                return MountCheck(Need.RELABEL, volume.device_path)
            as_wanted = volume.attached and attachable == (volume.attachability is Attachability.TRUE)
            in_use = volume.pods or volume.device_state.may_be_mounted
            if not as_wanted and (attachable or not in_use):
                return MountCheck(Need.ATTACH, volume.device_path)
            need = _mount_need(volume, pod_uid)
            if need is Need.NOTHING and 0 < volume.size < size and volume.resize_hold is ResizeHold.NONE:
                need = Need.RESIZE
            return MountCheck(need, volume.device_path)

    def state_of(self, name: str, pod_uid: str) -> Need:
        """What the pod's use of the volume lacks, whatever the volume itself lacks."""
        with self._lock:
            volume = self._volumes.get(name)
            return _mount_need(volume, pod_uid) if volume is not None else Need.ATTACH

    def get_volume(self, name: str) -> AttachedVolume | None:
        """A snapshot of the volume."""
        with self._lock:
            volume = self._volumes.get(name)
            return self._snapshot(volume) if volume is not None else None

    def is_left_over(self, name: str) -> bool:
        """Whether no pod has the volume, and it is or may be on the node all the same: staged or attached."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None or volume.pods:
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
            return volume is not None and (bool(volume.pods) or volume.device_state.may_be_mounted)

    def pods_of_volume(self, name: str) -> list[str]:
        """UIDs of the pods that have the volume, mounted or uncertain."""
        with self._lock:
            volume = self._volumes.get(name)
            return list(volume.pods) if volume is not None else []

    def get_mount(self, name: str, pod_uid: str) -> MountedVolume | None:
        """The pod's volume, mounted or uncertain."""
        with self._lock:
            volume = self._volumes.get(name)
            return volume.pods.get(pod_uid) if volume is not None else None

    def mounts_of_pod(self, pod_uid: str) -> list[MountedVolume]:
        """Mounted and uncertain volumes of the pod (ASW-32)."""
        with self._lock:
            return [self._volumes[name].pods[pod_uid] for name in self._by_pod.get(pod_uid, ())]

    def has_mounts(self, pod_uid: str) -> bool:
        """Whether the pod has a volume that is mounted or may be (VM-12)."""
        return pod_uid in self._by_pod

    def is_used_elsewhere(self, name: str, plugin_name: str, inner_name: str, pod_uid: str) -> bool:
        """Whether another pod has the PersistentVolume; uncertain counts (ASW-36).

        Without a device the volume has another name for each pod: then the plugin and the inner name tell.
        """
        with self._lock:
            volume = self._volumes.get(name)
            if volume is not None and any(uid != pod_uid for uid in volume.pods):
                return True
            return any(
                (mount.plugin_name, mount.inner_name) == (plugin_name, inner_name)
                for known in self._volumes.values()
                for uid, mount in known.pods.items()
                if uid != pod_uid
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
                for mount in volume.pods.values()
                if mount.reconstructed and mount.state is MountState.UNCERTAIN
            ]

    def attached_volumes(self) -> list[str]:
        """Volumes that are attached, and known to be."""
        with self._lock:
            attached = Attachability.TRUE
            return [name for name, known in self._volumes.items() if known.attachability is attached and known.attached]

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
            found = [(name, pod_uid) for name, volume in self._volumes.items() for pod_uid in ("", *volume.pods)]
        return iter(found)

    def _snapshot(self, volume: AttachedVolume) -> AttachedVolume:
        """With its spec, which is read only now when a restart found the volume."""
        if volume.spec_recorded:
            volume.spec_recorded = False
            volume.spec = volume.spec or self._recorded_spec(volume.name)
        return volume.snapshot()

    def _known(self, name: str) -> AttachedVolume:
        volume = self._volumes.get(name)
        if volume is None:
            raise VolumeHostError(
                f'no volume with the name "{name}" exists in the list of attached volumes',
                action="recording the state of a volume",
                subject=name,
            )
        return volume


def _has_other_label(volume: AttachedVolume, label: str) -> bool:
    mounted = bool(volume.pods) or volume.device_state.may_be_mounted
    return volume.selinux_context != label and (mounted or bool(volume.selinux_context))


def _mount_need(volume: AttachedVolume, pod_uid: str) -> Need:
    mount = volume.pods.get(pod_uid)
    if mount is None or mount.state is MountState.UNCERTAIN:
        return Need.MOUNT
    return Need.REMOUNT if mount.remount_required else Need.NOTHING
