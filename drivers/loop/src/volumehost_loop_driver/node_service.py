"""The Node service: reads requests, calls ``Staging``, ``Publishing`` and ``Stats``, writes answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from volumehost_csi_kit import csi
from volumehost_loop_driver.answering import answering, time_left
from volumehost_loop_driver.ephemeral import EphemeralVolumes
from volumehost_loop_driver.messages import READ_ONLY_KEY
from volumehost_loop_driver.parameters import EPHEMERAL_KEY, read_capability, read_inline
from volumehost_loop_driver.publishing import Publishing
from volumehost_loop_driver.staging import Staging
from volumehost_loop_driver.stats import Stats, Usage
from volumehost_loop_driver.topology import topology

if TYPE_CHECKING:
    import grpc


class NodeService:
    """Answers the calls of the Node service."""

    capabilities = ("VOLUME_CONDITION", "SINGLE_NODE_MULTI_WRITER", "VOLUME_MOUNT_GROUP")

    def __init__(
        self, node_id: str, staging: Staging, publishing: Publishing, ephemeral: EphemeralVolumes, stats: Stats
    ) -> None:
        self._node_id = node_id
        self._staging = staging
        self._publishing = publishing
        self._ephemeral = ephemeral
        self._stats = stats

    def node_get_info(self, _request: csi.NodeGetInfoRequest, _context: object) -> csi.NodeGetInfoResponse:
        """The node's id and place. The kernel has loop devices for any number of volumes, so there is no limit."""
        return csi.NodeGetInfoResponse(node_id=self._node_id, accessible_topology=topology(self._node_id))

    @answering
    def node_stage_volume(self, request: csi.NodeStageVolumeRequest, context: grpc.ServicerContext) -> None:
        """Attach, format if blank, check, mount."""
        self._staging.stage(
            request.volume_id,
            os.path.normpath(request.staging_target_path),
            read_capability(request.volume_capability),
            read_only=request.publish_context.get(READ_ONLY_KEY) == "true",
            timeout=time_left(context),
        )

    @answering
    def node_unstage_volume(self, request: csi.NodeUnstageVolumeRequest, context: grpc.ServicerContext) -> None:
        """Unmount, detach."""
        self._staging.unstage(request.volume_id, os.path.normpath(request.staging_target_path), time_left(context))

    @answering
    def node_publish_volume(self, request: csi.NodePublishVolumeRequest, context: grpc.ServicerContext) -> None:
        """Show a staged volume, or make an ephemeral one and show that."""
        capability = read_capability(request.volume_capability)
        target = os.path.normpath(request.target_path)
        if request.volume_context.get(EPHEMERAL_KEY) == "true":
            inline = read_inline(request.volume_context, capability.fs_type)
            self._ephemeral.publish(
                request.volume_id,
                target,
                replace(capability, fs_type=inline.fs_type),
                inline.size,
                read_only=request.readonly,
                timeout=time_left(context),
            )
            return
        self._publishing.publish(
            request.volume_id,
            os.path.normpath(request.staging_target_path),
            target,
            capability,
            read_only=request.readonly,
            timeout=time_left(context),
        )

    @answering
    def node_unpublish_volume(self, request: csi.NodeUnpublishVolumeRequest, context: grpc.ServicerContext) -> None:
        """Take a volume away from a target."""
        self._publishing.unpublish(request.volume_id, os.path.normpath(request.target_path), time_left(context))

    @answering
    def node_get_volume_stats(
        self, request: csi.NodeGetVolumeStatsRequest, _context: grpc.ServicerContext
    ) -> csi.NodeGetVolumeStatsResponse:
        """How full a volume is, and what is wrong with it."""
        stats = self._stats.of(request.volume_id, os.path.normpath(request.volume_path))
        unit = csi.VolumeUsage.Unit
        usage = [_usage(stats.bytes, unit.Value("BYTES"))]
        if stats.inodes is not None:
            usage.append(_usage(stats.inodes, unit.Value("INODES")))
        condition = csi.VolumeCondition(
            abnormal=bool(stats.condition), message=stats.condition or "the volume is in order"
        )
        return csi.NodeGetVolumeStatsResponse(usage=usage, volume_condition=condition)

    @answering
    def node_expand_volume(
        self, request: csi.NodeExpandVolumeRequest, context: grpc.ServicerContext
    ) -> csi.NodeExpandVolumeResponse:
        """Grow the filesystem to the size of its volume."""
        if request.HasField("volume_capability"):
            read_capability(request.volume_capability)
        size = self._staging.expand(
            request.volume_id,
            os.path.normpath(request.volume_path),
            request.capacity_range.required_bytes,
            time_left(context),
        )
        return csi.NodeExpandVolumeResponse(capacity_bytes=size)


def _usage(usage: Usage, unit: int) -> csi.VolumeUsage:
    return csi.VolumeUsage(total=usage.total, used=usage.used, available=usage.available, unit=unit)
