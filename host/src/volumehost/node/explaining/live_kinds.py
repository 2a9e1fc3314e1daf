"""What kind of volume one is, as the manager at work knows it: for its sequence in an explanation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from volumehost.hookspecs import AttachableVolumePlugin
from volumehost.node.explaining.facts import driver_of
from volumehost.node.explaining.sequence import VolumeKind
from volumehost.node.state.states import Attachability
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.api.objects import Pod, Volume
    from volumehost.node.assembly import NodeParts
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import AttachedVolume, MountedVolume
    from volumehost.node.status.records import VolumeStatus


class LiveKinds:
    """Reads the desired and the actual state of a manager."""

    def __init__(self, parts: NodeParts) -> None:
        self.node = parts.host.get_node_name()
        self._services = parts.services
        self._actual = parts.services.actual

    def of_device(self, known: AttachedVolume) -> VolumeKind:
        """A volume of the node that no pod has any more."""
        spec = known.spec  # read once: its record may be gone the next moment
        return replace(
            _with_device(VolumeKind(plugin=known.plugin_name, node=self.node), known),
            persistent_volume=spec.name() if spec is not None else "",
            by=driver_of(spec.persistent_volume if spec is not None else None),
        )

    def of_volume(
        self,
        status: VolumeStatus,
        use: VolumeUse | None,
        mount: MountedVolume | None,
        volume: Volume | None,
        pod: Pod | None,
    ) -> VolumeKind:
        """A volume of a pod: by what is wanted of it, else by what is there of it."""
        origin = f"{status.distribution} {status.version}".strip()
        kind = VolumeKind(plugin=status.plugin, origin=origin, node=self.node, path=status.path)
        known = self._actual.get_volume(status.unique_name) if status.unique_name else None
        if known is not None:
            kind = _with_device(kind, known)
        if mount is not None:
            kind = replace(kind, block=mount.is_block, shared_with=self._others(mount.volume, mount.pod_uid))
        spec = use.spec if use is not None else known.spec if known is not None else None
        inline = volume.csi.driver if volume is not None and volume.csi is not None else ""
        persistent = spec.persistent_volume if spec is not None else None
        kind = replace(
            kind,
            persistent_volume=persistent.metadata.name if persistent is not None else "",
            by=driver_of(persistent, inline),
        )
        if use is None:
            return kind
        context = pod.spec.security_context if pod is not None else None
        return replace(
            kind,
            block=use.is_block,
            attaches=use.attachable and use.plugin.supports(AttachableVolumePlugin),
            mounts_device=use.device_mountable,
            group=use.fs_group,
            group_policy=(context.fs_group_change_policy or "") if context is not None else "",
            grow_to=str(use.size) if use.has_grown else "",
        )

    def _others(self, volume: str, pod_uid: str) -> tuple[str, ...]:
        """Labels of the other pods that have the volume, or want it."""
        uids = [*self._actual.pods_of_volume(volume), *self._services.desired.pods_of_volume(volume)]
        return tuple(self.label(volume, uid) for uid in dict.fromkeys(uids) if uid != pod_uid)

    def label(self, volume: str, pod_uid: str) -> str:
        """Namespace and name of a pod that has the volume or wants it, its uid where nothing tells them."""
        mount = self._actual.get_mount(volume, pod_uid)
        if mount is not None and mount.pod_name:
            return f"{mount.pod_namespace}/{mount.pod_name}"
        use = self._services.desired.get(volume, pod_uid)
        return f"{use.pod.metadata.namespace}/{use.pod.metadata.name}" if use is not None else pod_uid


def _with_device(kind: VolumeKind, known: AttachedVolume) -> VolumeKind:
    return replace(
        kind,
        block=known.mode == BLOCK_MODE,
        attaches=known.attachability is Attachability.TRUE,
        mounts_device=known.device_state.may_be_mounted,
        stage_path=known.device_mount_path,
    )
