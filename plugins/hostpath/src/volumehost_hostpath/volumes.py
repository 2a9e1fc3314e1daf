"""What the plugin returns for a pod's hostPath volume: a mounter that checks, and an unmounter that does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import NotSupportedMetricsError, OperationNotSupportedError, UnsafePathError
from volumehost_hostpath.type_check import check_type

if TYPE_CHECKING:
    from volumehost.api.objects import HostPathVolumeSource
    from volumehost.host_services import HostUtils
    from volumehost.volumes import Attributes, MounterArgs, VolumeMetrics


class _WithoutMetrics:
    """A path of the host is shared with everything else on it: its usage says nothing about the pod (METRICS-02)."""

    metric_source = ""

    def get_metrics(self) -> VolumeMetrics:
        """:raises NotSupportedMetricsError: always."""
        raise NotSupportedMetricsError("metrics are not supported for hostPath volumes")


class HostPathMounter(_WithoutMetrics):
    """Checks that the path is what its type says, each time that it is asked to set up (HOSTPATH-20 to -27)."""

    def __init__(self, source: HostPathVolumeSource, read_only: bool, host_util: HostUtils) -> None:
        self._path = source.path
        self._type = source.type
        self._read_only = read_only
        self._host_util = host_util

    def get_path(self) -> str:
        """The path of the host."""
        return self._path

    def get_attributes(self) -> Attributes:
        """Not managed: neither ownership nor labels are the host's to change (HOSTPATH-06)."""
        from volumehost import Attributes

        return Attributes(read_only=self._read_only, managed=False, selinux_relabel=False)

    def set_up(self, args: MounterArgs) -> None:  # noqa: ARG002 - nothing of a host path depends on the pod
        """Check the path; create it where the type says so and it is missing.

        :raises UnsafePathError: the path is relative or has a ``..`` component.
        :raises SpecError: the type is not one of Kubernetes' eight.
        :raises MountError: the path is missing, of another kind, or cannot be examined or created.
        """
        validate_path(self._path)
        check_type(self._path, self._type, self._host_util)

    def set_up_at(self, directory: str, args: MounterArgs) -> None:  # noqa: ARG002 - it never works
        """:raises OperationNotSupportedError: always (HOSTPATH-09)."""
        raise OperationNotSupportedError("SetUpAt() does not make sense for host paths", subject=self._path)


class HostPathUnmounter(_WithoutMetrics):
    """Leaves the host's files alone (HOSTPATH-08)."""

    def get_path(self) -> str:
        """There is nothing to take away."""
        return ""

    def tear_down(self) -> None:
        """Nothing."""

    def tear_down_at(self, directory: str) -> None:
        """:raises OperationNotSupportedError: always (HOSTPATH-09)."""
        raise OperationNotSupportedError("TearDownAt() does not make sense for host paths", subject=directory)


def validate_path(path: str) -> None:
    """Refuse what could mean another place than it says (HOSTPATH-20).

    :raises UnsafePathError: relative, or with a ``..`` component.
    """
    reason = ""
    if ".." in path.split("/"):
        reason = "must not contain '..'"
    elif not path.startswith("/"):
        reason = "must be absolute"
    if reason:
        raise UnsafePathError(reason, action=f"invalid HostPath `{path}`", subject=path)
