"""What the host's VolumeConfig says to this plugin: whether it may provision and delete, and where."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.errors import OperationNotSupportedError, SpecError

if TYPE_CHECKING:
    from volumehost.spec import VolumeConfig

#: Key of ``VolumeConfig.other_attributes``: the directory below which volumes are made and may be deleted.
BASE_DIRECTORY = "base_dir"
#: Upstream's literal safety prefix (HOSTPATH-43).
DEFAULT_BASE_DIRECTORY = "/tmp"  # noqa: S108 - a prefix that deletion is confined to, not a file
#: Provisioned volumes lie in this directory of the base (HOSTPATH-46).
VOLUMES_DIRECTORY = "hostpath_pv"


def require_provisioning(config: VolumeConfig) -> None:
    """Creating and deleting directories of the node is only done where an administrator asked for it (HOSTPATH-44).

    :raises OperationNotSupportedError: provisioning is not enabled.
    """
    if not config.provisioning_enabled:
        raise OperationNotSupportedError(
            'provisioning in volume plugin "kubernetes.io/host-path" is disabled',
            subject="kubernetes.io/host-path",
            hint="enable it in the plugin's VolumeConfig (provisioning_enabled)",
        )


def base_directory(config: VolumeConfig) -> str:
    """The directory below which everything happens, cleaned.

    :raises SpecError: the configured one is relative, has a ``..`` component, or is the root directory.
    """
    base = config.other_attributes.get(BASE_DIRECTORY, DEFAULT_BASE_DIRECTORY)
    clean = os.path.normpath(base)
    if not base.startswith("/") or ".." in base.split("/") or clean.strip("/") == "":
        raise SpecError(
            f"{base!r} is not an absolute directory below the root",
            action=f"reading the setting {BASE_DIRECTORY} of kubernetes.io/host-path",
            subject=BASE_DIRECTORY,
        )
    return "/" + clean.lstrip("/")
