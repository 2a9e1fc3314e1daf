"""What is left of a volume on the machine: mounts that were not there before, directories and files of a pod's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.mount.mountinfo import read_mount_table
from volumehost.sdk.names import escape_qualified_name

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint
    from volumehost.testing.plugin_host import PluginTestHost


class Remains:
    """Remembers the mounts of the moment at which it is made."""

    def __init__(self, host: PluginTestHost) -> None:
        self._host = host
        self._before = frozenset(_key(mount) for mount in read_mount_table())

    def new_mounts(self) -> list[str]:
        """What is mounted now and was not then, in words that begin with the place."""
        return [
            f"{mount.path} ({mount.fs_type} from {mount.source})"
            for mount in read_mount_table()
            if _key(mount) not in self._before
        ]

    def of_volume(self, pod_uid: str, plugin_name: str, volume_name: str) -> list[str]:
        """The volume's directory, and files that the plugin keeps for this pod, in words."""
        directory = self._host.get_pod_volume_dir(pod_uid, plugin_name, volume_name)
        found = [f"the directory {directory}"] if os.path.lexists(directory) else []
        plugins = f"{self._host.layout.pod_dir(pod_uid)}/plugins/{escape_qualified_name(plugin_name)}"
        for base in (os.path.dirname(directory), plugins):
            for parent, _, files in os.walk(base):
                if not parent.startswith(directory):
                    found += [f"the file {parent}/{name}" for name in files]
        return found


def _key(mount: MountPoint) -> tuple[int, str]:
    """What stays the same while something is mounted, whatever becomes of its options."""
    return mount.mount_id, mount.path
