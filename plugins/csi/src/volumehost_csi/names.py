"""Names and paths of CSI volumes: keys, hashes, handles, and where everything lies on disk (CSI-NAME, CSI-PATH).

Hashes and paths are the kubelet's, byte for byte. Names from manifests and drivers are hostile: whatever becomes a
path component is checked here.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, Final

from volumehost.errors import SpecError, UnsafePathError
from volumehost.sdk import escape_qualified_name
from volumehost_csi.plugin import PLUGIN_NAME

if TYPE_CHECKING:
    from volumehost.volume_host import VolumeHost

#: Separates driver and handle in the host's key of a volume (CSI-NAME-03).
VOLUME_NAME_SEPARATOR: Final = "^"

_DRIVER_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?")
_NAME_MAX: Final = 255

#: Names that would share a directory with the staging and publish paths of every block volume (CSI-PATH-11).
_RESERVED_BLOCK_NAMES: Final = frozenset({"staging", "publish"})


def check_driver_name(name: str) -> str:
    """The name itself when a driver can have it (CSI-NAME-12, -14 improved).

    :raises SpecError: it is empty, too long, or not made of alphanumerics, ``-`` and ``.``.
    """
    if not _DRIVER_NAME.fullmatch(name):
        raise SpecError(
            f"{shorten(name)!r} is not the name of a CSI driver",
            action="reading a CSI volume",
            subject=shorten(name),
            hint="it has at most 63 characters: letters, digits, '-' and '.', with a letter or digit at both ends",
        )
    return name


def volume_name(driver: str, handle: str) -> str:
    """The host's key of a volume: the same for two PersistentVolumes with one driver and handle (CSI-NAME-03, -04)."""
    return f"{driver}{VOLUME_NAME_SEPARATOR}{handle}"


def split_volume_name(name: str) -> tuple[str, str]:
    """(driver, handle) of such a key, split at the first ``^``: a handle may hold more (CSI-NAME-05, improved).

    :raises SpecError: it is empty, or a part is missing.
    """
    driver, _, handle = name.partition(VOLUME_NAME_SEPARATOR)
    if not driver or not handle:
        raise SpecError(
            "the volume name is empty" if not name else f"{shorten(name)!r} is not <driver>^<volume handle>",
            action="reading the name of a CSI volume",
            subject=shorten(name),
        )
    return driver, handle


def attachment_name(handle: str, driver: str, node_name: str) -> str:
    """Name of the VolumeAttachment (CSI-NAME-06)."""
    return f"csi-{_sha256(handle + driver + node_name)}"


def ephemeral_handle(pod_uid: str, name: str) -> str:
    """Handle of an inline volume: the same for one pod and volume at each try (CSI-NAME-09, CSI-EPH-04)."""
    return f"csi-{_sha256(pod_uid + name)}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --- paths of filesystem volumes ------------------------------------------------------------------------------


def target_path(host: VolumeHost, pod_uid: str, name: str) -> str:
    """Where the pod sees the volume (CSI-PATH-01); its record lies beside it."""
    return f"{host.get_pod_volume_dir(pod_uid, PLUGIN_NAME, escape_qualified_name(name))}/mount"


def staging_path(host: VolumeHost, driver: str, handle: str) -> str:
    """The global mount of a volume (CSI-PATH-03); its record lies beside it."""
    return f"{host.get_plugin_dir(PLUGIN_NAME)}/{staging_component(driver, handle)}/globalmount"


def staging_component(driver: str, handle: str) -> str:
    """The directory of a staged volume below the plugin's own."""
    return f"{check_driver_name(driver)}/{_sha256(handle)}"


def driver_of_staging_path(host: VolumeHost, path: str) -> str:
    """The driver whose global mount the path is, "" when it is none."""
    base = f"{host.get_plugin_dir(PLUGIN_NAME)}/"
    parts = path.removeprefix(base).split("/") if path.startswith(base) else []
    return parts[0] if len(parts) == 3 and parts[2] == "globalmount" else ""


# --- paths of block volumes -----------------------------------------------------------------------------------


class BlockPaths:
    """Every path of one block volume (CSI-PATH-05 to -12).

    :raises UnsafePathError: the name is reserved, or cannot be a file name (CSI-PATH-10, -11 improved).
    """

    def __init__(self, host: VolumeHost, name: str) -> None:
        component = block_component(name)
        root = host.get_volume_device_plugin_dir(PLUGIN_NAME)
        self.volume_dir = f"{root}/{component}"
        self.data_dir = f"{root}/{component}/data"
        self.global_map_dir = f"{root}/{component}/dev"
        self.staging_dir = f"{root}/staging/{component}"
        self.publish_dir = f"{root}/publish/{component}"

    def publish_path(self, pod_uid: str) -> str:
        """Where the driver puts the device for a pod."""
        return f"{self.publish_dir}/{file_name(pod_uid, 'pod UID')}"


def block_component(name: str) -> str:
    """The volume's name as one path component."""
    if name in _RESERVED_BLOCK_NAMES:
        raise UnsafePathError(
            f"a block volume cannot be named {name!r}: its directory is that of other volumes",
            action="building the paths of a CSI block volume",
            subject=name,
            hint="give the PersistentVolume another name",
        )
    return file_name(escape_qualified_name(name), "volume name")


def file_name(name: str, what: str) -> str:
    """The name itself when it can be one directory entry.

    :raises UnsafePathError: it is empty, leads elsewhere, or is too long.
    """
    try:
        usable = name not in {"", ".", ".."} and not {"/", "\0"} & set(name) and len(os.fsencode(name)) <= _NAME_MAX
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise UnsafePathError(
            f"the {what} {shorten(name)!r} cannot be a file name",
            action=f"building a path from the {what}",
            subject=shorten(name),
            hint=f"use a name of at most {_NAME_MAX} bytes without slashes",
        )
    return name


def shorten(name: str) -> str:
    """A hostile name or handle, cut to what fits an error message."""
    return name if len(name) <= 80 else f"{name[:80]}..."
