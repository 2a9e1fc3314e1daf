"""Checks of path texts that come from manifests or from disk; nothing here touches the filesystem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import UnsafePathError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.volumes import Volume


def validate_path_no_backsteps(path: str) -> None:
    """Refuse a path with a ``..`` component; ``..a`` and ``a..b`` are fine (UTIL-23).

    :raises UnsafePathError: the text contains ``must not contain '..'``.
    """
    if ".." in path.split("/"):
        raise UnsafePathError("must not contain '..'", action=f"checking the path {path!r}", subject=path)


def get_path(volume: Volume) -> str:
    """The volume's path, for a caller that needs one (UTIL-02).

    :raises VolumeHostError: the volume has no path.
    """
    path = volume.get_path()
    if not path:
        raise VolumeHostError(f"path is empty {type(volume).__name__}", action="asking a volume for its path")
    return path
