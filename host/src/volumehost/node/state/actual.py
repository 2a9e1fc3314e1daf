"""Actual state of world: what is attached and mounted on this node, or may be (ASW rules).

Operations and reconstruction write it, the reconciler reads it by the questions of
:mod:`volumehost.node.state.actual_view`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from volumehost.errors import VolumeHostError
from volumehost.node.state import of_pods
from volumehost.node.state.actual_view import ActualView
from volumehost.node.state.records import AttachedVolume, MountedVolume
from volumehost.node.state.states import Attachability, DeviceState, MountState, ResizeHold

if TYPE_CHECKING:
    from volumehost.node.state.desired import Changed
    from volumehost.spec import Spec


class ActualState(ActualView):
    """The volumes of the node; safe for threads. ``changed`` is told of every change, under the lock.

    ``recorded_spec`` reads the spec of a volume from where it was recorded.
    """

    def __init__(self, changed: Changed, recorded_spec: Callable[[str], Spec | None] | None = None) -> None:
        super().__init__()
        self._changed = changed
        self._recorded_spec = recorded_spec

    # --- volumes --------------------------------------------------------------------------------------------

    def enter_wanted(self, name: str, plugin_name: str, spec: Spec | None, mode: str) -> None:
        """A volume that is about to be mounted and needs no attaching is known from now on (ASW-05), which is no news.

        :param spec: None where nothing will depend on it.
        """
        with self._lock:
            if name not in self._volumes:
                self._volumes[name] = AttachedVolume(name, plugin_name, spec, Attachability.FALSE, mode=mode)

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
                known.spec_or_reader = known.spec_or_reader or spec
            self._changed(name, "")

    def read_spec_from_record(self, name: str) -> None:
        """The spec of the volume is on record, so it need not be kept here too."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is not None and self._recorded_spec is not None:
                volume.spec_or_reader = self._recorded_spec

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
                    known.spec_or_reader = known.spec_or_reader or volume.spec_or_reader
            for mount in mounts:
                volume = self._volumes[mount.volume]
                if of_pods.get(volume.held, mount.pod_uid) is None:
                    self._put(volume, mount)
                    self.has_directories = self.has_directories or mount.from_directory
        return new

    def mark_detached(self, name: str) -> None:
        """Forget the volume (ASW-12).

        :raises VolumeHostError: pods still use it.
        """
        with self._lock:
            volume = self._volumes.get(name)
            if volume is None:
                return
            if volume.held is not None:
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
            if volume.held is not None or volume.device_state.may_be_mounted or attached:
                return volume.snapshot()
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
            former = of_pods.get(volume.held, mount.pod_uid)
            if former is not None and former.state is MountState.MOUNTED:
                mount = replace(
                    mount,
                    attributes=mount.attributes or former.attributes,
                    mapper=mount.mapper or former.mapper,
                    spec=mount.spec or former.spec,
                    path=mount.path or former.path,
                    is_mount=former.is_mount if mount.is_mount is None else mount.is_mount,
                    mount_point=mount.mount_point or former.mount_point,
                )
            if mount.state is MountState.MOUNTED and mount.reconstructed:
                mount = replace(mount, reconstructed=False)
            volume.from_directory = volume.from_directory and mount.state is not MountState.MOUNTED
            self._put(volume, mount)
            self._changed(mount.volume, mount.pod_uid)

    def mark_uncertain(self, name: str, pod_uid: str) -> None:
        """Something was begun that may or may not have changed the mount; unknown entries are ignored."""
        with self._lock:
            volume = self._volumes.get(name)
            mount = of_pods.get(volume.held, pod_uid) if volume is not None else None
            if volume is not None and mount is not None and mount.state is not MountState.UNCERTAIN:
                self._put(volume, replace(mount, state=MountState.UNCERTAIN))
                self._changed(name, pod_uid)

    def mark_unmounted(self, name: str, pod_uid: str) -> None:
        """Nothing of the pod's volume is left (ASW-17).

        :raises VolumeHostError: the volume is not known.
        """
        with self._lock:
            volume = self._known(name)
            if of_pods.get(volume.held, pod_uid) is None:
                return
            volume.held = of_pods.without(volume.held, pod_uid)
            of_pod = self._by_pod[pod_uid]
            of_pod.remove(name)
            if not of_pod:
                del self._by_pod[pod_uid]
            self._changed(name, pod_uid)
            self._changed(name, "")

    def mark_remount_required(self, name: str, pod_uid: str) -> None:
        """Ask for a refresh of the pod's volume if it is mounted (ASW-20)."""
        with self._lock:
            volume = self._volumes.get(name)
            mount = of_pods.get(volume.held, pod_uid) if volume is not None else None
            if volume is not None and mount is not None and mount.state is MountState.MOUNTED:
                self._put(volume, replace(mount, remount_required=True))
                self._changed(name, pod_uid)

    # --- labels ---------------------------------------------------------------------------------------------

    def set_selinux_context(self, name: str, label: str) -> None:
        """The volume is mounted with that label from now on; one that is known stays (ASW-15, -18, -19)."""
        with self._lock:
            volume = self._volumes.get(name)
            if volume is not None and not volume.selinux_context:
                volume.selinux_context = label

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
                for mount in of_pods.items(volume.held):
                    self._changed(name, mount.pod_uid)
            if failed is not None:
                volume.resize_failed = failed

    def _put(self, volume: AttachedVolume, mount: MountedVolume) -> None:
        if of_pods.get(volume.held, mount.pod_uid) is None:
            self._by_pod.setdefault(mount.pod_uid, []).append(volume.name)
        volume.held = of_pods.put(volume.held, mount)

    def _known(self, name: str) -> AttachedVolume:
        volume = self._volumes.get(name)
        if volume is None:
            raise VolumeHostError(
                f'no volume with the name "{name}" exists in the list of attached volumes',
                action="recording the state of a volume",
                subject=name,
            )
        return volume
