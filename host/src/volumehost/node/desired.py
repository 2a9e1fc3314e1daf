"""Desired state of world: which volumes of which pods are wanted on this node (DSW rules).

The populator writes it, the reconciler and the operations read it. It only keeps records: whoever adds has looked up
the plugin and built the spec.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.spec import Spec

#: Called with (unique volume name, pod uid) of what changed; the pod is "" for the volume as a whole.
Changed = Callable[[str, str], None]


class SELinuxLabels(NamedTuple):
    """What a volume is mounted with, "" for no label of its own; and what its containers need, in any case (DSW-01)."""

    mount: str
    original: str


class VolumeUse(msgspec.Struct, frozen=True, gc=False):
    """One volume as one pod wants it; what the operations get (DSW-10).

    ``remounts``: the plugin wants its set-up repeated from time to time. ``size_limit`` is the local ephemeral limit in
    bytes. ``size`` is what the PersistentVolume has and ``claim_size`` what its claim has got, in bytes, both 0 where
    the node has nothing to do for a volume to grow. ``requested_at`` is on the manager's monotonic clock. ``selinux``
    is None where the kernel has no SELinux.
    """

    volume: str
    pod: Pod
    spec: Spec
    outer_names: tuple[str, ...]
    plugin: LoadedPlugin
    attachable: bool
    device_mountable: bool
    remounts: bool = False
    size_limit: int | None = None
    fs_group: int | None = None
    size: int = 0
    claim_size: int = 0
    requested_at: float = 0.0
    selinux: SELinuxLabels | None = None

    @property
    def mount_label(self) -> str:
        """The SELinux label that the volume is mounted with, "" for none of its own."""
        return self.selinux.mount if self.selinux is not None else ""

    @property
    def pod_uid(self) -> str:
        """Unique name of the pod (IDENT-01)."""
        return self.pod.metadata.uid

    @property
    def inner_name(self) -> str:
        """The spec's name: the volume's directory name in the pod (IDENT-03)."""
        return self.spec.name()

    @property
    def is_block(self) -> bool:
        """Whether the pod gets a raw block device (SPEC-10)."""
        return self.spec.volume_mode() == BLOCK_MODE

    @property
    def has_grown(self) -> bool:
        """Whether the volume has grown and its claim does not say yet that it is done."""
        return self.size > self.claim_size > 0

    @property
    def wanted_size(self) -> int:
        """The size that it is to have, in bytes, 0 for any: what is used read-only does not grow (POP-40)."""
        return 0 if self.spec.read_only else self.size

    @property
    def is_shared(self) -> bool:
        """Whether its name is that of the volume on the node, the same for all pods (IDENT-02)."""
        return self.attachable or self.device_mountable


@dataclass(slots=True)
class _DesiredVolume:
    uses: dict[str, VolumeUse] = field(default_factory=dict)
    reported_in_use: bool = False


class DesiredState:
    """The wanted volumes; safe for threads. ``changed`` hears of each change, under the lock: it must not call back."""

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._volumes: dict[str, _DesiredVolume] = {}
        self._by_pod: dict[str, dict[str, None]] = {}

    def add(self, use: VolumeUse) -> VolumeUse | None:
        """Enter or refresh a pod's use of a volume; returns the one that it replaces (DSW-04, DSW-05).

        Outer names add up; the request time of a known use stays, unless the plugin wants remounts.
        """
        with self._lock:
            volume = self._volumes.setdefault(use.volume, _DesiredVolume())
            former = volume.uses.get(use.pod_uid)
            if former is not None:
                names = (*former.outer_names, *(name for name in use.outer_names if name not in former.outer_names))
                requested_at = use.requested_at if use.remounts else former.requested_at
                use = replace(use, outer_names=names, requested_at=requested_at)
            volume.uses[use.pod_uid] = use
            self._by_pod.setdefault(use.pod_uid, {})[use.volume] = None
            if former is None or _differs(former, use):
                self._changed(use.volume, use.pod_uid)
            return former

    def remove(self, volume_name: str, pod_uid: str) -> None:
        """The pod no longer wants the volume (DSW-06). Unknown ones are ignored."""
        with self._lock:
            volume = self._volumes.get(volume_name)
            if volume is None or volume.uses.pop(pod_uid, None) is None:
                return
            if not volume.uses:
                del self._volumes[volume_name]
            of_pod = self._by_pod[pod_uid]
            del of_pod[volume_name]
            if not of_pod:
                del self._by_pod[pod_uid]
            self._changed(volume_name, pod_uid)

    def remove_pod(self, pod_uid: str) -> None:
        """The pod no longer wants any volume."""
        for volume_name in self.volumes_of_pod(pod_uid):
            self.remove(volume_name, pod_uid)

    def mark_not_attachable(self, volume_name: str) -> None:
        """The volume needs no attaching any more (POP-31)."""
        with self._lock:
            volume = self._volumes.get(volume_name)
            if volume is None:
                return
            for pod_uid, use in list(volume.uses.items()):
                volume.uses[pod_uid] = replace(use, attachable=False)
                self._changed(volume_name, pod_uid)

    def mark_reported_in_use(self, volume_names: list[str]) -> None:
        """Node status lists these volumes, and no others, as in use (DSW-07)."""
        listed = set(volume_names)
        with self._lock:
            for name, volume in self._volumes.items():
                in_use = name in listed
                if in_use != volume.reported_in_use:
                    volume.reported_in_use = in_use
                    for pod_uid in volume.uses:
                        self._changed(name, pod_uid)

    # --- queries --------------------------------------------------------------------------------------------

    def get(self, volume_name: str, pod_uid: str) -> VolumeUse | None:
        """The use of the volume by the pod."""
        with self._lock:
            volume = self._volumes.get(volume_name)
            return volume.uses.get(pod_uid) if volume is not None else None

    def has_volume(self, volume_name: str) -> bool:
        """Whether any pod wants the volume."""
        return volume_name in self._volumes

    def reported_in_use(self, volume_name: str) -> bool:
        """Whether node status lists the volume."""
        with self._lock:
            volume = self._volumes.get(volume_name)
            return volume is not None and volume.reported_in_use

    def volumes_of_pod(self, pod_uid: str) -> list[str]:
        """Unique names of the volumes that the pod wants."""
        with self._lock:
            return list(self._by_pod.get(pod_uid, ()))

    def uses_of_pod(self, pod_uid: str) -> list[VolumeUse]:
        """What the pod wants."""
        with self._lock:
            return [self._volumes[name].uses[pod_uid] for name in self._by_pod.get(pod_uid, ())]

    def pods_of_volume(self, volume_name: str) -> list[str]:
        """UIDs of the pods that want the volume."""
        with self._lock:
            volume = self._volumes.get(volume_name)
            return list(volume.uses) if volume is not None else []

    def names_of_pod(self, pod_uid: str) -> dict[str, str]:
        """Outer name to unique volume name (DSW-11)."""
        return {name: use.volume for use in self.uses_of_pod(pod_uid) for name in use.outer_names}

    def keys(self) -> list[tuple[str, str]]:
        """Every (volume, pod), for a full resync."""
        with self._lock:
            return [(name, pod_uid) for name, volume in self._volumes.items() for pod_uid in volume.uses]


def _differs(former: VolumeUse, use: VolumeUse) -> bool:
    same = former.attachable == use.attachable and former.mount_label == use.mount_label
    return not same or not same_spec(former.spec, use.spec)


def same_spec(one: Spec, other: Spec) -> bool:
    """Whether two specs describe the volume alike. A PersistentVolume's status and bookkeeping do not count."""
    if one is other:
        return True
    if one.read_only != other.read_only or one.volume != other.volume:
        return False
    first, second = one.persistent_volume, other.persistent_volume
    if first is None or second is None:
        return first is second
    return first.metadata.uid == second.metadata.uid and first.spec == second.spec
