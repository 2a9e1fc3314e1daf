# ruff: noqa: D102 - the methods are CSI's calls
"""The node service of a fake driver: keeps books on what is staged and published where, and mounts if told to."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake import mounts
from volumehost_csi_kit.fake.config import FakeConfig
from volumehost_csi_kit.fake.model import FakeModel, FakeVolume
from volumehost_csi_kit.server.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
)
from volumehost_csi_kit.server.idempotency import fingerprint


class FakeNode:
    """Takes volumes that its controller never made, too, as a driver with static volumes does.

    It is strict about order: it refuses to publish what is not staged, and to unstage what is still published, so a
    host that mixes up its calls is found out (CSI-WIRE-15).
    """

    def __init__(self, model: FakeModel, config: Callable[[], FakeConfig]) -> None:
        self._model = model
        self._config = config

    def node_get_info(self, _request: object, _context: object) -> csi.NodeGetInfoResponse:
        config = self._config()
        reply = csi.NodeGetInfoResponse(node_id=config.node_id, max_volumes_per_node=config.max_volumes)
        if config.topology:
            reply.accessible_topology.segments.update(config.topology)
        return reply

    def node_get_capabilities(self, _request: object, _context: object) -> csi.NodeGetCapabilitiesResponse:
        rpc, one = csi.NodeServiceCapability.RPC, csi.NodeServiceCapability
        names = self._config().node
        return csi.NodeGetCapabilitiesResponse(capabilities=[one(rpc=rpc(type=rpc.Type.Value(name))) for name in names])

    def node_stage_volume(self, request: csi.NodeStageVolumeRequest, _context: object) -> None:
        path, asked = request.staging_target_path, fingerprint(request)
        if not os.path.isdir(path):
            raise FailedPreconditionError(f"staging_target_path: {path} is not a directory that the caller has made")
        with self._model.changing() as state:
            volume = state.volumes.get(request.volume_id) or FakeVolume(request.volume_id)
            if volume.staged and (volume.staged, volume.staged_as) != (path, asked):
                raise AlreadyExistsError(f"staged at {volume.staged}, but not as asked for now")
            if not request.volume_capability.HasField("block"):
                self._mount_content(volume, path)
            volume.staged, volume.staged_as = path, asked
            state.volumes[request.volume_id] = volume

    def node_unstage_volume(self, request: csi.NodeUnstageVolumeRequest, _context: object) -> None:
        with self._model.changing() as state:
            volume = state.volumes.get(request.volume_id)
            if volume is None:
                return
            if volume.published:
                raise FailedPreconditionError(f"still published at {', '.join(volume.published)}")
            if self._config().mounts == "bind":
                while mounts.unmount(request.staging_target_path):
                    pass
                self._forget_device(volume)
            volume.staged = volume.staged_as = ""

    def node_publish_volume(self, request: csi.NodePublishVolumeRequest, _context: object) -> None:
        target, asked = request.target_path, fingerprint(request)
        stages = "STAGE_UNSTAGE_VOLUME" in self._config().node
        with self._model.changing() as state:
            volume = state.volumes.get(request.volume_id) or FakeVolume(request.volume_id)
            if stages and volume.staged != request.staging_target_path:
                raise FailedPreconditionError(f"not staged at {request.staging_target_path}")
            if target in volume.published:
                if volume.published[target] != asked:
                    raise AlreadyExistsError(f"published at {target}, but not as asked for now")
                return
            single = csi.VolumeCapability.AccessMode.SINGLE_NODE_SINGLE_WRITER
            if volume.published and request.volume_capability.access_mode.mode == single:
                raise FailedPreconditionError(f"published at {', '.join(volume.published)} already")
            self._publish(volume, request)
            volume.published[target] = asked
            state.volumes[request.volume_id] = volume

    def node_unpublish_volume(self, request: csi.NodeUnpublishVolumeRequest, _context: object) -> None:
        with self._model.changing() as state:
            volume = state.volumes.get(request.volume_id)
            if self._config().mounts != "none":
                mounts.remove_target(request.target_path, mounted=self._config().mounts == "bind")
            if volume is None:
                return
            volume.published.pop(request.target_path, None)
            if not volume.published and not volume.staged:
                self._forget_device(volume)

    def node_get_volume_stats(
        self, request: csi.NodeGetVolumeStatsRequest, _context: object
    ) -> csi.NodeGetVolumeStatsResponse:
        config = self._config()
        with self._model.reading() as state:
            volume = state.volumes.get(request.volume_id)
        if volume is None:
            raise NotFoundError(f"there is no volume {request.volume_id!r}")
        usage = csi.VolumeUsage
        try:
            found = os.statvfs(request.volume_path)
        except FileNotFoundError as error:
            raise NotFoundError(f"{request.volume_path} is not there") from error
        if os.path.isdir(request.volume_path):
            size = found.f_frsize
            total, free, available = found.f_blocks * size, found.f_bfree * size, found.f_bavail * size
            files, unused = found.f_files, found.f_ffree
            figures = [
                usage(unit=usage.BYTES, total=total, used=total - free, available=available),
                usage(unit=usage.INODES, total=files, used=files - unused, available=unused),
            ]
        else:
            figures = [usage(unit=usage.BYTES, total=volume.capacity_bytes)]
        reply = csi.NodeGetVolumeStatsResponse(usage=figures)
        if "VOLUME_CONDITION" in config.node:
            reply.volume_condition.abnormal = bool(config.abnormal)
            reply.volume_condition.message = config.abnormal or "fine"
        return reply

    def node_expand_volume(
        self, request: csi.NodeExpandVolumeRequest, _context: object
    ) -> csi.NodeExpandVolumeResponse:
        with self._model.changing() as state:
            volume = state.volumes.get(request.volume_id)
            if volume is None:
                raise NotFoundError(f"there is no volume {request.volume_id!r}")
            if not volume.staged and not volume.published:
                raise FailedPreconditionError("neither staged nor published here")
            volume.capacity_bytes = max(volume.capacity_bytes, request.capacity_range.required_bytes)
            if self._config().mounts == "bind" and os.path.exists(self._backing(volume)):
                mounts.backing_file(self._backing(volume), volume.capacity_bytes)
                mounts.grow_loop_device(self._backing(volume))
            return csi.NodeExpandVolumeResponse(capacity_bytes=volume.capacity_bytes)

    def _publish(self, volume: FakeVolume, request: csi.NodePublishVolumeRequest) -> None:
        config, target = self._config(), request.target_path
        block = request.volume_capability.HasField("block")
        if config.mounts == "none":
            return
        mounts.make_target(target, block=block)
        if config.mounts == "mkdir":
            return
        if block:
            mounts.mount(self._device(volume), target)
        elif volume.staged:
            mounts.mount(volume.staged, target)
        else:
            self._mount_content(volume, target)
        if request.readonly:
            mounts.mount("", target, flags=mounts.MS_BIND | mounts.MS_REMOUNT | mounts.MS_RDONLY)

    def _mount_content(self, volume: FakeVolume, where: str) -> None:
        """Mount the volume's filesystem, in the mode that mounts, unless it is there already."""
        config = self._config()
        if config.mounts != "bind" or volume.staged == where:
            return
        if config.stage == "tmpfs":
            options = f"mode=0770,size={volume.capacity_bytes}" if volume.capacity_bytes else "mode=0770"
            mounts.mount("tmpfs", where, "tmpfs", 0, options)
            return
        content = self._place(volume)
        with contextlib.suppress(FileExistsError):
            os.mkdir(content, 0o770)
        mounts.mount(content, where)

    def _device(self, volume: FakeVolume) -> str:
        size = volume.capacity_bytes or self._config().default_volume_bytes
        backing = mounts.backing_file(self._backing(volume), size)
        return mounts.loop_device(backing) if self._config().block == "loop" else backing

    def _forget_device(self, volume: FakeVolume) -> None:
        if self._config().block == "loop" and os.path.exists(self._backing(volume)):
            mounts.detach_loop_device(self._backing(volume))

    def _backing(self, volume: FakeVolume) -> str:
        return f"{self._place(volume)}.img"

    def _place(self, volume: FakeVolume) -> str:
        directory = self._config().data_dir
        if not directory:
            if self._config().mounts == "bind":
                raise InternalError("the fake driver needs a data_dir to mount from")
            return "/nonexistent"
        return os.path.join(directory, hashlib.sha256(volume.volume_id.encode()).hexdigest()[:32])
