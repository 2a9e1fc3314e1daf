"""Takes everything that is mounted off the node, while the pods stay: pods' volumes, then devices, then attachments.

What is a directory and no mount (emptyDir on disk, hostPath) is left as it is, so that no data goes. The next manager
mounts the pods again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from volumehost.errors import VolumeHostError, WaitTimeoutError
from volumehost.mount.deadline import in_seconds

if TYPE_CHECKING:
    from volumehost.node.assembly import NodeParts
    from volumehost.node.state.records import MountedVolume

logger = logging.getLogger(__name__)

#: How long it is waited for that node status says so, in seconds.
STATUS_SECONDS = 5.0


class Draining:
    """Drains once, with the parts of a manager of which nothing more is asked afterwards."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._actual = parts.services.actual
        table = {mount.path for mount in parts.host.get_mounter().list_mounts()}
        self._mounted = frozenset(table)

    def run(self, timeout: float) -> None:
        """Begin nothing more but unmounting, and wait until nothing is mounted.

        :raises WaitTimeoutError: something still is; ``details`` says what and why.
        """
        parts = self._parts
        parts.populator.drain(self.is_real)
        self._unbind_subpaths()
        self._look_at_everything()
        if not parts.waits.wait(self._subjects(), self._is_done, timeout):
            left = self._left()
            raise WaitTimeoutError(
                f"{len(left)} still there after {in_seconds(timeout)}",
                details=left,
                action="unmounting everything",
                subject=parts.host.layout.root_dir,
                hint="they stay as they are; the next manager goes on with them",
            )
        if parts.services.attachments is not None and not parts.services.attachments.flush(STATUS_SECONDS):
            logger.warning("node status still has volumes in use that are not: %s", parts.services.attachments.problem)

    def _look_at_everything(self) -> None:
        """Also at what is wanted and lacks nothing, which an ordinary look at everything passes over."""
        reconciler = self._parts.reconciler
        for uid in self._actual.pods():
            reconciler.look_at_pod(uid)
        for volume in self._actual.volumes():
            reconciler.look_at_volume(volume)
        reconciler.run()

    def is_real(self, mount: MountedVolume) -> bool:
        """Whether the kernel has, or may have, something mounted or mapped for it."""
        if mount.is_block or mount.is_mount is not None:
            return mount.is_block or bool(mount.is_mount)
        return (mount.mount_point or mount.path) in self._mounted

    def _subjects(self) -> list[str]:
        return [*self._actual.pods(), *self._actual.volumes()]

    def _is_done(self) -> bool:
        return not self._parts.pending.running() and not self._real_mounts() and not self._volumes_left()

    def _real_mounts(self) -> list[MountedVolume]:
        return [
            mount for uid in self._actual.pods() for mount in self._actual.mounts_of_pod(uid) if self.is_real(mount)
        ]

    def _volumes_left(self) -> list[str]:
        """Volumes without a pod that are still staged or attached; those with one are told by their mounts."""
        return [name for name in self._actual.volumes() if self._actual.is_left_over(name)]

    def _left(self) -> list[str]:
        status = self._parts.status
        mounts = self._real_mounts()
        lines = []
        for uid in dict.fromkeys(mount.pod_uid for mount in mounts):
            pod = status.of_leftover(uid)
            real = {mount.inner_name for mount in mounts if mount.pod_uid == uid}
            label = f"{pod.namespace}/{pod.name}" if pod.name else uid
            lines += [f"pod {label}: {volume.explain()}" for volume in pod.volumes if volume.volume in real]
        return lines + status.of_devices(self._volumes_left())

    def _unbind_subpaths(self) -> None:
        """Of volumes that are no mounts the bind mounts of their subpaths go; the others' go with the volume."""
        subpather, layout = self._parts.host.get_subpather(), self._parts.host.layout
        for uid in self._actual.pods():
            for mount in self._actual.mounts_of_pod(uid):
                if self.is_real(mount):
                    continue
                try:
                    subpather.clean_sub_paths(layout.pod_dir(uid), mount.inner_name)
                except (OSError, VolumeHostError) as error:
                    logger.warning("subpaths of volume %s of pod %s stay mounted: %s", mount.inner_name, uid, error)
