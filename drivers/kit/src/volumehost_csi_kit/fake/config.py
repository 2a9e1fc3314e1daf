"""What a fake driver says that it is and can do; everything may be changed while it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from volumehost_csi_kit.fake.mounts import MountMode

CONTROLLER_CAPABILITIES = (
    "CREATE_DELETE_VOLUME",
    "PUBLISH_UNPUBLISH_VOLUME",
    "LIST_VOLUMES",
    "GET_CAPACITY",
    "CREATE_DELETE_SNAPSHOT",
    "LIST_SNAPSHOTS",
    "CLONE_VOLUME",
    "PUBLISH_READONLY",
    "EXPAND_VOLUME",
    "LIST_VOLUMES_PUBLISHED_NODES",
    "VOLUME_CONDITION",
    "GET_VOLUME",
    "SINGLE_NODE_MULTI_WRITER",
    "MODIFY_VOLUME",
    "GET_SNAPSHOT",
)
NODE_CAPABILITIES = (
    "STAGE_UNSTAGE_VOLUME",
    "GET_VOLUME_STATS",
    "EXPAND_VOLUME",
    "VOLUME_CONDITION",
    "SINGLE_NODE_MULTI_WRITER",
    "VOLUME_MOUNT_GROUP",
)


@dataclass(frozen=True)
class FakeConfig:
    """Sizes are bytes. ``controller=None`` is a driver without a controller service; the others are capability names.

    ``ready`` None leaves the field of the Probe reply unset. ``topology`` gives the node's segments, and with them the
    capability VOLUME_ACCESSIBILITY_CONSTRAINTS. ``mounts``: ``none`` only keeps the books, ``mkdir`` makes and removes
    the publish target, ``bind`` mounts for real (needs the privilege and a ``data_dir``). ``stage`` is what a staged
    volume is in that mode: a directory below ``data_dir`` whose content lasts, or a tmpfs. ``block`` is what a block
    target is: the plain file behind the volume, or a loop device on it. ``node_expansion`` is the answer of
    ControllerExpandVolume, ``abnormal`` the message of a condition that is not fine.
    """

    name: str = "fake.csi.example.com"
    version: str = "1.0.0"
    node_id: str = "fake-node"
    controller: tuple[str, ...] | None = CONTROLLER_CAPABILITIES
    node: tuple[str, ...] = NODE_CAPABILITIES
    expansion: tuple[str, ...] = ("ONLINE",)
    topology: Mapping[str, str] = field(default_factory=dict)
    ready: bool | None = True
    max_volumes: int = 0
    capacity_bytes: int = 1 << 40
    default_volume_bytes: int = 1 << 30
    node_expansion: bool = True
    abnormal: str = ""
    mounts: MountMode = "mkdir"
    stage: Literal["directory", "tmpfs"] = "directory"
    block: Literal["file", "loop"] = "file"
    data_dir: str = ""

    def changed(self, **changes: Any) -> Self:
        """A copy with other values; lists become tuples.

        :raises TypeError: there is no such field.
        """
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()}
        return dataclasses.replace(self, **values)

    def refuses(self, call: str) -> bool:
        """Whether a driver with these capabilities does not have this call."""
        service, needed = _NEEDS.get(call, ("", ""))
        if service == "Node":
            return needed not in self.node
        if service == "Controller":
            return self.controller is None or (bool(needed) and needed not in self.controller)
        return False


_NEEDS = {
    "CreateVolume": ("Controller", "CREATE_DELETE_VOLUME"),
    "DeleteVolume": ("Controller", "CREATE_DELETE_VOLUME"),
    "ControllerPublishVolume": ("Controller", "PUBLISH_UNPUBLISH_VOLUME"),
    "ControllerUnpublishVolume": ("Controller", "PUBLISH_UNPUBLISH_VOLUME"),
    "ValidateVolumeCapabilities": ("Controller", ""),
    "ListVolumes": ("Controller", "LIST_VOLUMES"),
    "GetCapacity": ("Controller", "GET_CAPACITY"),
    "ControllerGetCapabilities": ("Controller", ""),
    "CreateSnapshot": ("Controller", "CREATE_DELETE_SNAPSHOT"),
    "DeleteSnapshot": ("Controller", "CREATE_DELETE_SNAPSHOT"),
    "ListSnapshots": ("Controller", "LIST_SNAPSHOTS"),
    "GetSnapshot": ("Controller", "GET_SNAPSHOT"),
    "ControllerExpandVolume": ("Controller", "EXPAND_VOLUME"),
    "ControllerGetVolume": ("Controller", "GET_VOLUME"),
    "ControllerModifyVolume": ("Controller", "MODIFY_VOLUME"),
    "NodeStageVolume": ("Node", "STAGE_UNSTAGE_VOLUME"),
    "NodeUnstageVolume": ("Node", "STAGE_UNSTAGE_VOLUME"),
    "NodeGetVolumeStats": ("Node", "GET_VOLUME_STATS"),
    "NodeExpandVolume": ("Node", "EXPAND_VOLUME"),
}
