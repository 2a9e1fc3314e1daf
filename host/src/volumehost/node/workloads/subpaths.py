"""A container's subpaths: their text from the manifest, and the part of a volume bound where nobody can change it."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final

from volumehost.errors import UnsafePathError, VolumeHostError, error_chain
from volumehost.host_services import Subpath
from volumehost.mount.safe_path import check_relative
from volumehost.node.workloads.environment import expand_subpath

if TYPE_CHECKING:
    from volumehost.api.objects import Container, Pod, VolumeMount
    from volumehost.hosts.node_host import NodeHost
    from volumehost.node.state.records import MountedVolume

logger = logging.getLogger(__name__)

#: Reasons that say nothing about the host's filesystem: a link in the volume could otherwise ask what is outside.
_TOLD: Final = {
    errno.EROFS: "the volume is read-only",
    errno.ENOSPC: "the volume is full",
    errno.EDQUOT: "the volume's quota is used up",
    errno.ETIMEDOUT: "the volume does not answer",
}

#: Says no more either: the same for whatever stands in the way.
_ADVICE: Final = (
    "no part of a subPath may be a link that leads out of the volume, or anything but a directory before the last; "
    "the log tells details from -vv on"
)


class Subpaths:
    """The subpaths of one container of a pod."""

    def __init__(self, host: NodeHost, pod: Pod, container: Container) -> None:
        self._host = host
        self._pod = pod
        self._container = container

    def text_of(self, wanted: VolumeMount) -> str:
        """``subPath``, or ``subPathExpr`` expanded; "" when the whole volume is mounted (SUBPATH-01).

        :raises SpecError: a variable has no value.
        :raises UnsafePathError: it does not lie within the volume by its text alone.
        """
        if not wanted.sub_path_expr:
            return _checked(wanted.sub_path, wanted.sub_path)
        text = expand_subpath(wanted.sub_path_expr, self._container, self._pod, self._host)
        return _checked(text, wanted.sub_path_expr)

    def prepare(self, name: str, mount: MountedVolume, volume_path: str, index: int, sub_path: str) -> str:
        """Make the directory where it is missing, and bind it; returns the path to mount (SUBPATH-02, -03).

        :param name: what the container calls the volume.
        :param index: of the mount in the container's list.
        :raises UnsafePathError: it cannot be. The text hides details, which could disclose the host's filesystem;
            they are in the log, for who may read that.
        """
        where = f'for volumeMount "{name}" of container "{self._container.name}"'
        try:
            self._make(volume_path, sub_path)
        except (OSError, VolumeHostError) as error:
            raise _hidden(f"failed to create subPath directory {where}", name, error) from error
        wanted = Subpath(
            volume_mount_index=index,
            path=f"{volume_path}/{sub_path}",
            volume_name=mount.inner_name,
            volume_path=volume_path,
            pod_dir=self._host.layout.pod_dir(mount.pod_uid),
            container_name=self._container.name,
        )
        try:
            return self._host.get_subpather().prepare_safe_subpath(wanted)
        except (OSError, VolumeHostError) as error:
            raise _hidden(f"failed to prepare subPath {where}", name, error) from error

    def _make(self, volume_path: str, sub_path: str) -> None:
        host_util = self._host.get_host_util()
        try:
            if host_util.path_exists(f"{volume_path}/{sub_path}"):
                return
        except OSError:
            return  # the next step finds out
        self._host.get_subpather().safe_make_dir(sub_path, volume_path, host_util.get_mode(volume_path))


def _checked(text: str, shown: str) -> str:
    """The text.

    :param shown: what errors quote: an expanded text may come from a secret.
    """
    if text.startswith("/"):
        raise UnsafePathError(f"error SubPath `{shown}` must not be an absolute path", subject=shown)
    try:
        check_relative(text)
    except UnsafePathError as error:
        raise UnsafePathError(error.reason, action=f"use the subPath {shown}", subject=shown) from None
    return text


def _hidden(message: str, volume: str, error: Exception) -> UnsafePathError:
    logger.debug("%s: %s", message, error)
    numbers = [number for each in error_chain(error) if (number := getattr(each, "errno", None)) in _TOLD]
    if numbers:
        return UnsafePathError(f"{message}: {_TOLD[numbers[0]]}", subject=volume)
    return UnsafePathError(message, subject=volume, hint=_ADVICE)
