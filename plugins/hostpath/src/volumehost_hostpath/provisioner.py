"""Makes hostPath PersistentVolumes for claims: a new directory each, for single-node use and tests (HOSTPATH-46)."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from volumehost.errors import OperationNotSupportedError, UnsafePathError, VolumeHostError
from volumehost_hostpath.settings import VOLUMES_DIRECTORY, base_directory, require_provisioning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volumehost.api.objects import Node, PersistentVolume, TopologySelectorTerm
    from volumehost.spec import VolumeConfig
    from volumehost.volumes import VolumeOptions

logger = logging.getLogger(__name__)

CREATED_BY_ANNOTATION = "kubernetes.io/createdby"
CREATED_BY = "hostpath-dynamic-provisioner"

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o750
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_CONTAINER_LABEL = b"system_u:object_r:container_file_t:s0\0"
_LABEL_ATTRIBUTE = "security.selinux"
_SELINUX = "/sys/fs/selinux/enforce"


class HostPathProvisioner:
    """Provisions one volume.

    :raises OperationNotSupportedError: provisioning is disabled, or the claim asks for a block volume (HOSTPATH-45).
    """

    def __init__(self, options: VolumeOptions, config: VolumeConfig) -> None:
        require_provisioning(config)
        self._options = options
        self._base = base_directory(config)

    def provision(
        self,
        selected_node: Node | None = None,  # noqa: ARG002 - the directory is on this node
        allowed_topologies: Sequence[TopologySelectorTerm] = (),  # noqa: ARG002 - the same
    ) -> PersistentVolume:
        """Create the directory (0750) and describe it.

        :raises VolumeHostError: the directory cannot be created; nothing is left behind then.
        """
        claim = self._options.pvc.spec
        if claim.volume_mode == "Block":
            raise OperationNotSupportedError(
                "kubernetes.io/host-path does not support block volume provisioning",
                action="provisioning a hostPath volume",
                subject=self._options.pv_name,
            )
        return self._describe(self._make_directory())

    def _make_directory(self) -> str:
        name = _random_uuid()
        path = f"{self._base}/{VOLUMES_DIRECTORY}/{name}"
        try:
            parent = self._open_parent()
            try:
                os.mkdir(name, _MODE, dir_fd=parent)
                try:
                    self._label(parent, name)
                except OSError:
                    os.rmdir(name, dir_fd=parent)
                    raise
            finally:
                os.close(parent)
        except OSError as error:
            raise VolumeHostError(
                f"{error.strerror}", action=f"creating the directory {path} of a volume", subject=path
            ) from error
        return path

    def _open_parent(self) -> int:
        """The directory of all provisioned volumes: below ``/tmp`` anybody could have put it there before."""
        from volumehost.sdk import make_directories

        make_directories(self._base)
        base = os.open(self._base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with suppress(FileExistsError):
                os.mkdir(VOLUMES_DIRECTORY, _MODE, dir_fd=base)
            parent = os.open(VOLUMES_DIRECTORY, _DIRECTORY, dir_fd=base)
        finally:
            os.close(base)
        status = os.fstat(parent)
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
            os.close(parent)
            path = f"{self._base}/{VOLUMES_DIRECTORY}"
            raise UnsafePathError(
                f"uid {status.st_uid} owns it, mode {stat.S_IMODE(status.st_mode):#o}: others can change it",
                action=f"using the directory {path} for volumes",
                subject=path,
                hint="remove it, or give another base_dir in the plugin's VolumeConfig",
            )
        return parent

    @staticmethod
    def _label(parent: int, name: str) -> None:
        """Let containers use the directory where SELinux is on."""
        if not os.path.exists(_SELINUX):
            return
        directory = os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            set_container_label(directory)
        finally:
            os.close(directory)

    def _describe(self, path: str) -> PersistentVolume:
        from volumehost.api.objects import HostPathVolumeSource, ObjectMeta, PersistentVolume, PersistentVolumeSpec

        claim = self._options.pvc.spec
        return PersistentVolume(
            metadata=ObjectMeta(name=self._options.pv_name, annotations={CREATED_BY_ANNOTATION: CREATED_BY}),
            spec=PersistentVolumeSpec(
                capacity={"storage": claim.resources.requests.get("storage", "0")},
                host_path=HostPathVolumeSource(path=path),
                access_modes=list(claim.access_modes) or ["ReadWriteOnce"],
                persistent_volume_reclaim_policy=self._options.persistent_volume_reclaim_policy,
                mount_options=list(self._options.mount_options),
                volume_mode=claim.volume_mode,
            ),
        )


def set_container_label(fd: int) -> None:
    """Give the directory the SELinux label that all containers may use."""
    os.setxattr(fd, _LABEL_ATTRIBUTE, _CONTAINER_LABEL)


def _random_uuid() -> str:
    with open("/proc/sys/kernel/random/uuid", encoding="ascii") as file:
        return file.read().strip()
