"""Takes a scratch volume away, and writes down in the plugin's directory which version did."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from acme_volumes._version import __version__
from volumehost.sdk import cleanup_mount_point

if TYPE_CHECKING:
    from volumehost import VolumeHost


def clean_up(host: VolumeHost, directory: str, made_by: str) -> None:
    """Unmount ``directory``, remove it, and add a line to the history."""
    cleanup_mount_point(directory, host.get_mounter(), extensive=True)
    history = host.get_plugin_dir("example.com/scratch")
    os.makedirs(history, mode=0o750, exist_ok=True)
    with open(f"{history}/history", "a", encoding="utf-8") as file:
        file.write(f"{directory} asked for by {made_by}, cleaned up by {__version__}\n")
