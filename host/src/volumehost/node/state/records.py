"""What the actual state holds of a volume and of its use by one pod; handed out as snapshots.

Structs, since there are thousands of them: they are made in a fraction of the time that a dataclass takes. Nothing that
one of them refers to refers back to it, so the garbage collector need not look at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from volumehost.node.state import of_pods
from volumehost.node.state.identity import unique_volume_name_of_pod
from volumehost.node.state.states import Attachability, DeviceState, MountState, ResizeHold
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE, Spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.volumes import Attributes, BlockVolumeMapper


class MountedVolume(msgspec.Struct, frozen=True, gc=False):
    """A volume of a pod that is mounted or may be; enough to tear it down without the pod.

    ``attributes`` are what its mounter said when it was mounted, ``mapper`` is kept of a raw block volume; both are
    None for what a restart found and nobody has mounted again (``found``). ``spec`` is there only where no record of
    the volume itself tells it, and something depends on it. ``is_mount`` tells whether the path was a mount point when
    it was set up, None when that is not known. ``from_directory``: no journal
    tells of it, only a directory does. ``mount_point`` is what the mount table shows for it where that is not
    ``path``: of a block volume the bind of its device.
    """

    volume: str
    pod_uid: str
    pod_name: str
    pod_namespace: str
    plugin_name: str
    inner_name: str
    state: MountState
    mode: str = FILESYSTEM_MODE
    spec: Spec | None = None
    attributes: Attributes | None = None
    mapper: BlockVolumeMapper | None = None
    path: str = ""
    is_mount: bool | None = None
    remount_required: bool = False
    found: bool = False
    reconstructed: bool = False
    from_directory: bool = False
    mount_point: str = ""

    @property
    def is_named_by_pod(self) -> bool:
        """Whether its unique name is that of this pod alone (IDENT-02)."""
        return self.volume == unique_volume_name_of_pod(self.plugin_name, self.pod_uid, self.inner_name)

    @property
    def is_block(self) -> bool:
        """Whether the pod gets a raw block device."""
        return self.mode == BLOCK_MODE


class AttachedVolume(msgspec.Struct, gc=False):
    """A volume that the node knows (ASW-01, ASW-05), attached or not in need of that; a snapshot when handed out.

    ``attached`` is False while an attachment may be there and is not confirmed: it is attached again before it is used,
    and detached before it is forgotten (BR-47). ``device_owed``: an unmount of the device is owed even when a later
    mount fails for good, since it was mounted before: a restart found it, or its unmount was begun (BR-32). ``size`` is
    what the node has grown it to, in bytes, 0 when that is not known. ``from_directory``: only what lies on disk tells
    of the device. Of a spec that is on record there is only what reads it, given the volume's name.
    ``selinux_context``: the SELinux label that it is mounted with, "" for none of its own; it stays until the volume is
    forgotten (ASW-19).
    """

    name: str
    plugin_name: str
    spec_or_reader: Spec | Callable[[str], Spec | None] | None
    attachability: Attachability
    device_state: DeviceState = DeviceState.NOT_MOUNTED
    device_path: str = ""
    device_mount_path: str = ""
    device_owed: bool = False
    mode: str = FILESYSTEM_MODE
    attached: bool = True
    size: int = 0
    resize_hold: ResizeHold = ResizeHold.NONE
    resize_failed: bool = False
    from_directory: bool = False
    selinux_context: str = ""
    #: See :mod:`volumehost.node.state.of_pods`.
    held: MountedVolume | dict[str, MountedVolume] | None = None

    @property
    def spec(self) -> Spec | None:
        """The spec; read from the record each time where that has it. None where nobody knows it or needs it.

        A snapshot's as well: the next time it may be gone, with the volume.
        """
        spec = self.spec_or_reader
        return spec if spec is None or isinstance(spec, Spec) else spec(self.name)

    @property
    def pods(self) -> dict[str, MountedVolume]:
        """What there is of it for each pod, by UID."""
        return {mount.pod_uid: mount for mount in of_pods.items(self.held)}

    def snapshot(self) -> AttachedVolume:
        """A copy that no later change reaches."""
        held = dict(self.held) if isinstance(self.held, dict) else self.held
        return msgspec.structs.replace(self, held=held)
