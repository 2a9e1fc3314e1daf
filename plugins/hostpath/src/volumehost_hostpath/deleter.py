"""Deletes the directory of a hostPath PersistentVolume, and never anything outside of the base (HOSTPATH-42, -43)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.errors import NotSupportedMetricsError, SpecError, UnsafePathError, VolumeHostError
from volumehost_hostpath.settings import base_directory, require_provisioning

if TYPE_CHECKING:
    from volumehost.spec import Spec, VolumeConfig
    from volumehost.volumes import VolumeMetrics

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class HostPathDeleter:
    """Deletes one volume.

    :raises OperationNotSupportedError: provisioning, and so deletion, is disabled.
    :raises SpecError: the spec has no PersistentVolume with a hostPath source.
    """

    metric_source = ""

    def __init__(self, spec: Spec, config: VolumeConfig) -> None:
        persistent_volume = spec.persistent_volume
        if persistent_volume is None or persistent_volume.spec.host_path is None:
            raise SpecError(
                "spec.PersistentVolumeSource.HostPath is nil", action="deleting a hostPath volume", subject=spec.name()
            )
        require_provisioning(config)
        self._path = persistent_volume.spec.host_path.path
        self._base = base_directory(config)

    def get_path(self) -> str:
        """The path of the host."""
        return self._path

    def get_metrics(self) -> VolumeMetrics:
        """:raises NotSupportedMetricsError: always."""
        raise NotSupportedMetricsError("metrics are not supported for hostPath volumes")

    def delete(self) -> None:
        """Remove the directory with all content; success when it is gone already.

        The path must lie below the base, also when the links of its parent directories are resolved. A link at the
        path itself is removed, not followed, and nothing that is mounted inside is touched.

        :raises UnsafePathError: the path is not below the base.
        :raises StillMountedError: something is mounted at the path or below; what lies outside of that is removed.
        :raises VolumeHostError: it cannot be removed for another reason.
        """
        from volumehost.sdk import remove_all_at

        path = self._checked_path()
        try:
            parent = self._open_parent(path)
            try:
                remove_all_at(parent, os.path.basename(path), path)
            finally:
                os.close(parent)
        except FileNotFoundError:
            return
        except OSError as error:
            raise VolumeHostError(str(error), action=f"deleting the hostPath volume {path}", subject=path) from error

    def _checked_path(self) -> str:
        if ".." in self._path.split("/") or not self._path.startswith("/"):
            raise self._refused("")
        path = "/" + os.path.normpath(self._path).lstrip("/")
        if not path.startswith(self._base + "/"):
            raise self._refused("")
        return path

    def _open_parent(self, path: str) -> int:
        """The directory that holds the volume, opened step by step below the base so that no link can be slipped in."""
        base = os.path.realpath(self._base)
        parent = os.path.realpath(os.path.dirname(path), strict=True)
        if parent != base and not parent.startswith(base.rstrip("/") + "/"):
            raise self._refused(f", whose directory is really {parent}")
        fd = os.open(base, _DIRECTORY)
        for name in parent[len(base) :].strip("/").split("/"):
            if not name:
                continue
            try:
                below = os.open(name, _DIRECTORY, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd

    def _refused(self, detail: str) -> UnsafePathError:
        return UnsafePathError(
            f"host_path deleter only supports {self._base}/.+ but received provided {self._path}{detail}",
            action="deleting a hostPath volume",
            subject=self._path,
            hint="delete it by hand, or change the reclaim policy to Retain",
        )
