"""The volumes of a pod as its containers get them: those that this manager has mounted, and those that it has found.

A volume that an earlier process mounted is taken as it is, by its record and the kernel's mount table: nothing is set
up again only to tell where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import FailedPreconditionError, VolumeHostError
from volumehost.node.journal.format import MOUNTED, text_of
from volumehost.node.state.states import MountState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from volumehost.api.objects import Pod
    from volumehost.node.operations.common import Services
    from volumehost.node.state.desired import VolumeUse
    from volumehost.node.state.records import MountedVolume
    from volumehost.volumes import Attributes


class Mounted(NamedTuple):
    """A volume that is mounted for a pod, what its plugin says of it, and where it is."""

    mount: MountedVolume
    attributes: Attributes
    path: str


class PodVolumes:
    """Finds a pod's volumes by the names that the pod gives them.

    :param uses: what the volumes lead to, or why that is not known.
    """

    def __init__(self, services: Services, pod: Pod, uses: Mapping[str, VolumeUse | Exception]) -> None:
        self._services = services
        self._pod = pod
        self._uses = uses

    def uses(self) -> Iterator[VolumeUse]:
        """Those of which it is known what they lead to."""
        return (use for use in self._uses.values() if not isinstance(use, Exception))

    def mounted(self, name: str, container: str) -> Mounted:
        """The volume, as it is mounted for the pod.

        :raises FailedPreconditionError: it is not (SUBPATH-05).
        """
        mount, use = self._find("mount", name, container)
        if mount.attributes is not None:
            return Mounted(mount, mount.attributes, mount.path)
        if mount.is_block:
            raise self._not_there("mount", name, container, "it is a raw block volume")
        mounter = use.plugin.new_mounter(use.spec, self._pod)
        return Mounted(mount, mounter.get_attributes(), mounter.get_path())

    def mapped(self, name: str, container: str) -> tuple[MountedVolume, VolumeUse]:
        """The raw block volume, as it is mapped for the pod.

        :raises FailedPreconditionError: it is not.
        """
        mount, use = self._find("map", name, container)
        if not mount.is_block:
            raise self._not_there("map", name, container, "it is no raw block volume")
        return mount, use

    def _find(self, verb: str, name: str, container: str) -> tuple[MountedVolume, VolumeUse]:
        use = self._uses.get(name)
        if use is None or isinstance(use, Exception):
            raise self._not_there(verb, name, container, str(use or ""))
        uid = self._pod.metadata.uid
        mount = self._services.actual.get_mount(use.volume, uid)
        if mount is None or not self._is_usable(mount):
            record = self._services.journal.entry(use.volume, uid) or {}
            raise self._not_there(verb, name, container, text_of(record, "err"))
        return mount, use

    def _is_usable(self, mount: MountedVolume) -> bool:
        if mount.state is MountState.MOUNTED:
            return True
        # Found by a restart, recorded as mounted, and still there as it was then (BR-58).
        record = self._services.journal.entry(mount.volume, mount.pod_uid) or {}
        return mount.reconstructed and record.get("state") == MOUNTED and self._is_there(mount)

    def _is_there(self, mount: MountedVolume) -> bool:
        mounter, path = self._services.host.get_mounter(), mount.mount_point or mount.path
        try:
            return mount.is_mount is not None and mounter.is_mount_point(path) is mount.is_mount
        except (OSError, VolumeHostError):
            return False

    def _not_there(self, verb: str, name: str, container: str, why: str) -> FailedPreconditionError:
        metadata = self._pod.metadata
        return FailedPreconditionError(
            f'cannot find volume "{name}" to {verb} into container "{container}"' + (f": {why}" if why else ""),
            action=f"preparing the mounts of pod {metadata.namespace}/{metadata.name}",
            subject=name,
            hint="mount the pod first",
        )
