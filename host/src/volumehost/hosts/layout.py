"""The directory layout under a root directory, the kubelet's byte for byte; used by hosts, node and command line.

Nothing here touches the disk: a returned path may not exist (LAYOUT-04).
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from volumehost.errors import UnsafePathError
from volumehost.sdk.names import escape_qualified_name

#: Longest name of one directory entry on Linux filesystems, in bytes.
NAME_MAX = 255


# The same few names are asked for again and again while a pod is worked with.
@functools.lru_cache(maxsize=1024)
def path_component(name: str, what: str) -> str:
    """``name`` itself when it is safe as one directory entry below the root directory.

    :param what: what the name is, for the error: ``pod UID``, ``volume name``.
    :raises UnsafePathError: empty, ``.``, ``..``, with a slash or NUL byte, not encodable, or longer than 255 bytes.
    """
    reason = ""
    if not name:
        reason = "is empty"
    elif name in (".", ".."):
        reason = f"{name!r} leads out of its directory"
    elif "/" in name or "\0" in name:
        reason = f"{shorten(name)!r} contains a slash or a NUL byte"
    elif len(name) * 4 > NAME_MAX:
        reason = _length_problem(name)
    if reason:
        raise UnsafePathError(
            f"the {what} {reason}",
            action=f"building a path from the {what}",
            subject=shorten(name),
            hint="use a name of at most 255 bytes without slashes",
        )
    return name


def _length_problem(name: str) -> str:
    try:
        length = len(os.fsencode(name))
    except UnicodeEncodeError:
        return f"{shorten(name)!r} cannot be encoded as a file name"
    return f"{shorten(name)!r} is {length} bytes long, more than {NAME_MAX}" if length > NAME_MAX else ""


def shorten(name: str, limit: int = 60) -> str:
    """A hostile name cut to what fits an error message."""
    return name if len(name) <= limit else f"{name[:limit]}..."


@dataclass(frozen=True, slots=True)
class Layout:
    """All paths of LAYOUT-01 under ``root_dir``, which is taken as it is: canonical, links resolved (BR-69).

    Plugin names are escaped here; a name that was escaped before stays as it is (LAYOUT-03, improved).

    :raises UnsafePathError: from every method, when a name would lead out of its directory.
    """

    root_dir: str

    # --- of the host --------------------------------------------------------------------------------------

    def pods_dir(self) -> str:
        """``<root>/pods``."""
        return f"{self.root_dir}/pods"

    def plugins_dir(self) -> str:
        """``<root>/plugins``."""
        return f"{self.root_dir}/plugins"

    def plugins_registry_dir(self) -> str:
        """``<root>/plugins_registry``, where CSI drivers put their registration sockets."""
        return f"{self.root_dir}/plugins_registry"

    def drivers_dir(self) -> str:
        """``<root>/drivers``: records, logs and data of the drivers that this host knows or supervises."""
        return f"{self.root_dir}/drivers"

    def pod_resources_dir(self) -> str:
        """``<root>/pod-resources`` (LAYOUT-02)."""
        return f"{self.root_dir}/pod-resources"

    def lock_file(self) -> str:
        """The file that a volume manager locks while it works on this root directory."""
        return f"{self.root_dir}/manager.lock"

    def agent_lock_file(self) -> str:
        """The file that an agent locks for as long as it lives, also while it waits for the root directory."""
        return f"{self.root_dir}/agent.lock"

    def journal_file(self) -> str:
        """The volume manager's journal."""
        return f"{self.root_dir}/volumes.journal"

    def store_file(self) -> str:
        """The embedded API store."""
        return f"{self.root_dir}/store.sqlite3"

    def node_name_file(self) -> str:
        """The name of the node that the root directory is used with."""
        return f"{self.root_dir}/node-name"

    def store_identity_file(self) -> str:
        """Which store was used last."""
        return f"{self.root_dir}/store.identity"

    def config_file(self) -> str:
        """The host's configuration, which may be absent."""
        return f"{self.root_dir}/config.toml"

    # --- of a plugin --------------------------------------------------------------------------------------

    def plugin_dir(self, plugin_name: str) -> str:
        """``<root>/plugins/<name>``: the name not escaped, so ``kubernetes.io/csi`` is two levels."""
        for part in plugin_name.split("/"):
            path_component(part, "plugin name")
        return f"{self.root_dir}/plugins/{plugin_name}"

    def volume_device_plugin_dir(self, plugin_name: str) -> str:
        """``<root>/plugins/<name>/volumeDevices``: global block maps."""
        return f"{self.plugin_dir(plugin_name)}/volumeDevices"

    # --- of a pod -----------------------------------------------------------------------------------------

    def pod_dir(self, pod_uid: str) -> str:
        """``<root>/pods/<uid>``."""
        return _pod_dir(self.root_dir, pod_uid)

    def pod_volumes_dir(self, pod_uid: str) -> str:
        """``<pod dir>/volumes``."""
        return f"{self.pod_dir(pod_uid)}/volumes"

    def pod_volume_dir(self, pod_uid: str, plugin_name: str, volume_name: str) -> str:
        """``<pod dir>/volumes/<escaped plugin>/<volume>``."""
        return _pod_volume_dirs(self.root_dir, pod_uid, plugin_name) + path_component(volume_name, "volume name")

    def pod_plugins_dir(self, pod_uid: str) -> str:
        """``<pod dir>/plugins``."""
        return f"{self.pod_dir(pod_uid)}/plugins"

    def pod_plugin_dir(self, pod_uid: str, plugin_name: str) -> str:
        """``<pod dir>/plugins/<escaped plugin>``."""
        return _pod_plugin_dir(self.root_dir, pod_uid, plugin_name)

    def pod_volume_devices_dir(self, pod_uid: str) -> str:
        """``<pod dir>/volumeDevices``."""
        return f"{self.pod_dir(pod_uid)}/volumeDevices"

    def pod_volume_device_dir(self, pod_uid: str, plugin_name: str) -> str:
        """``<pod dir>/volumeDevices/<escaped plugin>``."""
        return f"{self.pod_volume_devices_dir(pod_uid)}/{escaped(plugin_name)}"

    def pod_subpaths_dir(self, pod_uid: str) -> str:
        """``<pod dir>/volume-subpaths``."""
        return f"{self.pod_dir(pod_uid)}/volume-subpaths"

    def pod_containers_dir(self, pod_uid: str) -> str:
        """``<pod dir>/containers``."""
        return f"{self.pod_dir(pod_uid)}/containers"


# Asked for a dozen times for each volume of the pod.
@functools.lru_cache(maxsize=256)
def _pod_dir(root_dir: str, pod_uid: str) -> str:
    return f"{root_dir}/pods/{path_component(pod_uid, 'pod UID')}"


@functools.lru_cache(maxsize=256)
def _pod_volume_dirs(root_dir: str, pod_uid: str, plugin_name: str) -> str:
    """Where the volumes of the plugin lie in the pod, with a slash at the end."""
    return f"{_pod_dir(root_dir, pod_uid)}/volumes/{escaped(plugin_name)}/"


@functools.lru_cache(maxsize=256)
def _pod_plugin_dir(root_dir: str, pod_uid: str, plugin_name: str) -> str:
    return f"{_pod_dir(root_dir, pod_uid)}/plugins/{escaped(plugin_name)}"


@functools.lru_cache(maxsize=256)
def escaped(plugin_name: str) -> str:
    """The plugin name as one directory entry (LAYOUT-05)."""
    return path_component(escape_qualified_name(plugin_name), "plugin name")
