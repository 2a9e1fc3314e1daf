"""Exactly one source: which check goes with which source of a pod's volume or a PersistentVolume."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volumehost.api.objects import PersistentVolumeSpec, Volume
from volumehost.api.validation.driver_sources import csi_persistent_source, csi_source, flex_source
from volumehost.api.validation.file_sources import (
    config_map_source,
    downward_api_source,
    projected_source,
    secret_source,
)
from volumehost.api.validation.local_sources import (
    claim_source,
    empty_dir_source,
    ephemeral_source,
    git_repo_source,
    host_path_source,
    image_source,
    local_source,
)
from volumehost.api.validation.network_sources import (
    azure_disk_source,
    fc_source,
    flocker_source,
    iscsi_source,
    nfs_source,
    quobyte_source,
    required_fields,
)
from volumehost.api.validation.problems import Problems

Check = Callable[[Any, str, Problems], None]

_COMMON: dict[str, Check] = {
    "host_path": host_path_source,
    "flex_volume": flex_source,
    "nfs": nfs_source,
    "iscsi": iscsi_source,
    "fc": fc_source,
    "flocker": flocker_source,
    "quobyte": quobyte_source,
    "azure_disk": azure_disk_source,
}
_OF_PODS: dict[str, Check] = _COMMON | {
    "empty_dir": empty_dir_source,
    "secret": secret_source,
    "config_map": config_map_source,
    "downward_api": downward_api_source,
    "projected": projected_source,
    "persistent_volume_claim": claim_source,
    "ephemeral": ephemeral_source,
    "image": image_source,
    "git_repo": git_repo_source,
    "csi": csi_source,
}
_OF_PERSISTENT_VOLUMES: dict[str, Check] = _COMMON | {"local": local_source, "csi": csi_persistent_source}


def one_source(holder: Volume | PersistentVolumeSpec, field: str, problems: Problems) -> str:
    """Check that exactly one source is set, and that one; returns its name, "" when there is none.

    A pod's volume without a source is refused too, though Kubernetes makes an emptyDir of it: it is nearly always a
    misspelled source, and what should have been kept would go with the pod.
    """
    wire_names = dict(zip(holder.__struct_fields__, holder.__struct_encode_fields__, strict=True))
    found = [name for name in holder.SOURCES if getattr(holder, name) is not None]
    if not found:
        hint = ", such as emptyDir: {}" if isinstance(holder, Volume) else ""
        problems.required(field, f"must specify a volume type{hint}")
        return ""
    for name in found[1:]:
        problems.forbidden(f"{field}.{wire_names[name]}", "may not specify more than 1 volume type")
    name = found[0]
    path = f"{field}.{wire_names[name]}"
    source = getattr(holder, name)
    required_fields(name, source, path, problems)
    check = (_OF_PODS if isinstance(holder, Volume) else _OF_PERSISTENT_VOLUMES).get(name)
    if check is not None:
        check(source, path, problems)
    return name
