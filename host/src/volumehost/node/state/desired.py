"""Desired state of world: which volumes of which pods are wanted on this node (DSW rules).

The populator writes it, the reconciler and the operations read it. It only keeps records: whoever adds has looked up
the plugin and built the spec.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from volumehost.node.state import of_pods
from volumehost.node.state.kept_pods import KeptPods
from volumehost.node.state.kept_specs import is_persistent, pack, unpack
from volumehost.node.state.states import Need
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.state.actual_view import ActualView
    from volumehost.node.state.kept_pods import KeptPod
    from volumehost.node.state.kept_specs import KeptSpec
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


class _Wish(msgspec.Struct, gc=False):
    """A use as it is kept: what is large in it is packed, and shared by the uses of one pod."""

    volume: str
    pod: KeptPod
    spec: KeptSpec
    outer_names: tuple[str, ...]
    plugin: LoadedPlugin
    attachable: bool
    device_mountable: bool
    remounts: bool
    size_limit: int | None
    fs_group: int | None
    size: int
    claim_size: int
    requested_at: float
    selinux: SELinuxLabels | None
    #: The pod's own, at hand since nothing is asked for as often.
    pod_uid: str = ""

    @classmethod
    def of(cls, use: VolumeUse, pods: KeptPods) -> _Wish:
        unpacked = pods.entered(use.pod)
        unpacked.specs[use.volume] = use.spec
        spec = pack(use.spec, use.pod, use.outer_names[0])
        wish = cls(use.volume, unpacked.kept, spec, *_kept_as_they_are(use))
        wish.pod_uid = unpacked.kept.uid
        unpacked.uses[use.volume] = wish, use
        return wish

    @property
    def is_on_node(self) -> bool:
        """Whether it is shared, or a raw block device, which no volume of the pod's own is."""
        return self.attachable or self.device_mountable or (is_persistent(self.spec) and self.unpack().is_block)

    def need(self, actual: ActualView) -> Need:
        """What it lacks, as for :meth:`VolumeUse` (ASW-30)."""
        size = 0 if self.size and self.unpack().spec.read_only else self.size
        label = self.selinux.mount if self.selinux is not None else None
        return actual.check(self.volume, self.pod_uid, attachable=self.attachable, size=size, label=label)

    def unpack(self) -> VolumeUse:
        unpacked = self.pod.unpack()
        wish, use = unpacked.uses.get(self.volume, (None, None))
        if use is None or wish is not self:
            spec = unpack(self.spec, unpacked, self.volume, self.outer_names[0])
            use = VolumeUse(self.volume, unpacked.pod, spec, *_kept_as_they_are(self))
            unpacked.uses[self.volume] = self, use
        return use


_kept_as_they_are = attrgetter(*_Wish.__struct_fields__[3:-1])


class DesiredState:
    """The wanted volumes; safe for threads. ``changed`` hears of each change, under the lock: it must not call back.

    ``pods`` keeps the pods that want them.
    """

    def __init__(self, changed: Changed) -> None:
        self.pods = KeptPods()
        self._changed = changed
        self._lock = threading.Lock()
        self._volumes: dict[str, _Wish | dict[str, _Wish]] = {}
        self._by_pod: dict[str, list[str]] = {}
        self._reported_in_use: set[str] = set()

    def add(self, use: VolumeUse) -> VolumeUse | None:
        """Enter or refresh a pod's use of a volume; returns the one that it replaces (DSW-04, DSW-05).

        Outer names add up; the request time of a known use stays, unless the plugin wants remounts.
        """
        wish = _Wish.of(use, self.pods)
        with self._lock:
            held = self._volumes.get(use.volume)
            former = of_pods.get(held, use.pod_uid)
            if former is None:
                self._by_pod.setdefault(use.pod_uid, []).append(use.volume)
                before = None
            else:
                before = former.unpack()
                wish.pod.unpack().uses.pop(use.volume, None)  # what the wish says is no longer what the use does
                added = [name for name in wish.outer_names if name not in former.outer_names]
                wish.outer_names = (*former.outer_names, *added)
                wish.spec = pack(use.spec, use.pod, wish.outer_names[0])
                if not use.remounts:
                    wish.requested_at = former.requested_at
            self._volumes[use.volume] = of_pods.put(held, wish)
            if before is None or _differs(before, use):
                self._changed(use.volume, use.pod_uid)
            return before

    def remove(self, volume_name: str, pod_uid: str) -> None:
        """The pod no longer wants the volume (DSW-06). Unknown ones are ignored."""
        with self._lock:
            held = self._volumes.get(volume_name)
            if of_pods.get(held, pod_uid) is None:
                return
            left = of_pods.without(held, pod_uid)
            if left is not None:
                self._volumes[volume_name] = left
            else:
                del self._volumes[volume_name]
                self._reported_in_use.discard(volume_name)
            of_pod = self._by_pod[pod_uid]
            of_pod.remove(volume_name)
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
            for wish in of_pods.items(self._volumes.get(volume_name)):
                wish.attachable = False
                wish.pod.unpack().uses.pop(volume_name, None)
                self._changed(volume_name, wish.pod_uid)

    def mark_reported_in_use(self, volume_names: list[str]) -> None:
        """Node status lists these volumes, and no others, as in use (DSW-07)."""
        with self._lock:
            listed = self._volumes.keys() & set(volume_names)
            for name in listed ^ self._reported_in_use:
                for wish in of_pods.items(self._volumes.get(name)):
                    self._changed(name, wish.pod_uid)
            self._reported_in_use = listed

    def wanting(self, actual: ActualView) -> list[tuple[str, str]]:
        """Every (volume, pod) that is wanted and lacks something."""
        with self._lock:
            return [
                (name, wish.pod_uid)
                for name, held in self._volumes.items()
                for wish in of_pods.items(held)
                if wish.need(actual) is not Need.NOTHING
            ]

    def need(self, volume_name: str, pod_uid: str, actual: ActualView) -> Need | None:
        """What the volume lacks that the pod wants; None when the pod does not want it."""
        with self._lock:
            wish = of_pods.get(self._volumes.get(volume_name), pod_uid)
            return wish.need(actual) if wish is not None else None

    # --- queries --------------------------------------------------------------------------------------------

    def get(self, volume_name: str, pod_uid: str) -> VolumeUse | None:
        """The use of the volume by the pod."""
        with self._lock:
            wish = of_pods.get(self._volumes.get(volume_name), pod_uid)
            return wish.unpack() if wish is not None else None

    def wants(self, volume_name: str, pod_uid: str) -> bool:
        """Whether the pod wants the volume."""
        with self._lock:
            return of_pods.get(self._volumes.get(volume_name), pod_uid) is not None

    def follows(self, pod_uid: str) -> bool:
        """Whether the pod has a volume that its plugin refreshes, or that leads to a PersistentVolume."""
        with self._lock:
            return any(wish.remounts or is_persistent(wish.spec) for wish in self._of_pod(pod_uid))

    def has_volume(self, volume_name: str) -> bool:
        """Whether any pod wants the volume."""
        return volume_name in self._volumes

    def has_several_pods(self, volume_name: str) -> bool:
        """Whether more than one pod wants the volume, or did a moment ago."""
        return isinstance(self._volumes.get(volume_name), dict)

    def reported_in_use(self, volume_name: str) -> bool:
        """Whether node status lists the volume."""
        return volume_name in self._reported_in_use

    def attachable_volumes(self) -> set[str]:
        """The wanted volumes that have to be attached (VM-14)."""
        with self._lock:
            return {
                name for name, held in self._volumes.items() if any(wish.attachable for wish in of_pods.items(held))
            }

    def volumes_of_pod(self, pod_uid: str) -> list[str]:
        """Unique names of the volumes that the pod wants."""
        with self._lock:
            return list(self._by_pod.get(pod_uid, ()))

    def uses_of_pod(self, pod_uid: str) -> list[VolumeUse]:
        """What the pod wants."""
        with self._lock:
            return [wish.unpack() for wish in self._of_pod(pod_uid)]

    def refreshed_of_pod(self, pod_uid: str) -> list[str]:
        """Unique names of the volumes whose set-up their plugin wants repeated from time to time."""
        with self._lock:
            return [wish.volume for wish in self._of_pod(pod_uid) if wish.remounts]

    def on_node_of_pod(self, pod_uid: str) -> set[str]:
        """Unique names of the pod's volumes that have something on the node beside what is in the pod."""
        with self._lock:
            return {wish.volume for wish in self._of_pod(pod_uid) if wish.is_on_node}

    def pods_of_volume(self, volume_name: str) -> list[str]:
        """UIDs of the pods that want the volume."""
        with self._lock:
            return [wish.pod_uid for wish in of_pods.items(self._volumes.get(volume_name))]

    def names_of_pod(self, pod_uid: str) -> dict[str, str]:
        """Outer name to unique volume name (DSW-11)."""
        with self._lock:
            return {name: wish.volume for wish in self._of_pod(pod_uid) for name in wish.outer_names}

    def keys(self) -> list[tuple[str, str]]:
        """Every (volume, pod), for a full resync."""
        with self._lock:
            return [(name, wish.pod_uid) for name, held in self._volumes.items() for wish in of_pods.items(held)]

    def _of_pod(self, pod_uid: str) -> Iterator[_Wish]:
        for name in self._by_pod.get(pod_uid, ()):
            wish = of_pods.get(self._volumes[name], pod_uid)
            if wish is not None:
                yield wish


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
