"""Removing the directories of a block volume that no pod uses any more (CSI-BLK-14, -20)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.errors import RemovalError

if TYPE_CHECKING:
    from volumehost_csi.names import BlockPaths


def remove_block_volume(paths: BlockPaths) -> None:
    """Remove the publish and staging directories, which must be empty, then the volume's own; the first failure stops.

    :raises RemovalError: one is not empty or cannot be removed.
    :raises StillMountedError: something is mounted below the volume's directory.
    """
    from volumehost.sdk import remove_all_one_filesystem

    for directory in (paths.publish_dir, paths.staging_dir):
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RemovalError(
                error.strerror or str(error), action=f"removing {directory}", subject=directory, paths=[directory]
            ) from error
    remove_all_one_filesystem(paths.volume_dir)
