"""Mount points inside a volume for other volumes that a container mounts below it (UTIL-22).

A read-only volume cannot get them later, so plugins that fill such a volume make them beforehand.
"""

from __future__ import annotations

import os
import posixpath
import stat
from typing import TYPE_CHECKING

from volumehost.errors import SpecError, VolumeHostError
from volumehost.sdk.directories import DIRECTORY_FLAGS

if TYPE_CHECKING:
    from volumehost.api.objects import Container, Pod

_MODE = 0o755


def nested_mount_points(volume_name: str, pod: Pod) -> list[str]:
    """Relative paths inside the volume at which the pod's containers mount other volumes, sorted.

    Of two that lie one in the other only the outer counts: the inner one belongs to the volume mounted there.

    :raises SpecError: a mount path of the volume leads out of the container (UTIL-22a).
    """
    found: set[str] = set()
    spec = pod.spec
    for container in [*spec.init_containers, *spec.containers, *spec.ephemeral_containers]:
        for mount in container.volume_mounts:
            if mount.name == volume_name:
                found.update(_below(_clean(mount.mount_path), container))
    return sorted(found)


def make_nested_mount_points(volume_name: str, pod: Pod, directory: str) -> None:
    """Create those directories (0755) below ``directory``, without following a link.

    A name that is a link is left alone: it leads into a payload, and a directory made there would vanish with it.

    :raises SpecError: as :func:`nested_mount_points`.
    :raises VolumeHostError: a directory cannot be made.
    """
    for path in nested_mount_points(volume_name, pod):
        try:
            _make_beneath(directory, path)
        except OSError as error:
            raise VolumeHostError(
                f"unable to create nested volume mountpoints: {error}",
                action=f"preparing the volume {volume_name!r} for a mount at {path}",
                subject=volume_name,
            ) from error


def _below(outer: str, container: Container) -> list[str]:
    inside: list[str] = []
    prefix = "/" if outer == "/" else outer + "/"
    for path in sorted(_clean(mount.mount_path) for mount in container.volume_mounts):
        relative = path.removeprefix(prefix)
        if not path.startswith(prefix) or not relative:
            continue
        # Siblings such as nested-vol sort between nested and nested/double, so every one found so far is asked.
        if not any(relative.startswith(found + "/") for found in inside):
            inside.append(relative)
    return inside


def _clean(mount_path: str) -> str:
    path = posixpath.normpath(mount_path)
    if path == ".." or path.startswith("../"):
        raise SpecError(f"invalid container mount point {mount_path}", action="looking for nested mounts")
    return "/" + path.lstrip("/")


def _make_beneath(directory: str, path: str) -> None:
    fd = os.open(directory, DIRECTORY_FLAGS)
    try:
        for name in path.split("/"):
            try:
                os.mkdir(name, _MODE, dir_fd=fd)
            except FileExistsError:
                if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    return
            below = os.open(name, DIRECTORY_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = below
    finally:
        os.close(fd)
