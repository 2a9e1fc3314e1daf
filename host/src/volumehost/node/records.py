"""What the actual state holds of a volume and of its use by one pod; handed out as snapshots.

Structs, since there are thousands of them: they are made in a fraction of the time that a dataclass takes. Nothing that
one of them refers to refers back to it, so the garbage collector need not look at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from volumehost.node.identity import unique_volume_name_of_pod
from volumehost.node.states import Attachability, DeviceState, MountState, Need, ResizeHold
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE

if TYPE_CHECKING:
    from volumehost.spec import Spec
    from volumehost.volumes import BlockVolumeMapper, Mounter


class MountedVolume(msgspec.Struct, frozen=True, gc=False):
    """A volume of a pod that is mounted or may be; enough to tear it down without the pod.

    ``spec`` and ``mounter`` are None for what a restart found and nobody has mounted again. ``is_mount`` tells
    whether the path was a mount point when it was set up, None when that is not known. ``from_directory``: no journal
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
    mounter: Mounter | None = None
    mapper: BlockVolumeMapper | None = None
    path: str = ""
    is_mount: bool | None = None
    remount_required: bool = False
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
    of the device. ``spec_recorded``: the spec is on record and was not read yet; a snapshot has it.
    ``selinux_context``: the SELinux label that it is mounted with, "" for none of its own; it stays until the volume is
    forgotten (ASW-19).
    """

    name: str
    plugin_name: str
    spec: Spec | None
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
    spec_recorded: bool = False
    selinux_context: str = ""
    pods: dict[str, MountedVolume] = msgspec.field(default_factory=dict)

    def snapshot(self) -> AttachedVolume:
        """A copy that no later change reaches."""
        return msgspec.structs.replace(self, pods=dict(self.pods))


class MountCheck(NamedTuple):
    """What ``ActualState.check`` found: what the volume lacks, and its device path."""

    need: Need
    device_path: str
