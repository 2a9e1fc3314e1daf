"""Checks of path texts that come from manifests or from disk; nothing here touches the filesystem."""

from __future__ import annotations

import os
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


def path_within_base(path: str, base: str) -> bool:
    """Whether ``path`` is ``base`` or lies below it, by text alone (MOUNT-39).

    Both are cleaned first. ``/a/..b`` is within ``/a``; everything absolute is within ``/``. Links are not resolved:
    resolve both before, or open by descriptors, where somebody else can write.
    """
    relative = os.path.relpath(path, base)
    return relative != ".." and not relative.startswith("../")


def get_path(volume: Volume) -> str:
    """The volume's path, for a caller that needs one (UTIL-02).

    :raises VolumeHostError: the volume has no path.
    """
    path = volume.get_path()
    if not path:
        raise VolumeHostError(f"path is empty {type(volume).__name__}", action="asking a volume for its path")
    return path
