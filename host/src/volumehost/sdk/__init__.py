"""What authors of plugins may rely on beside the contract; each name loads its module when it is first used.

Ownership (fsGroup), atomic payloads, metrics, safe removal and clean-up, names, quantities, mount options, the
recycler's pod template.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from volumehost.mount.cleanup import cleanup_mount_point
    from volumehost.mount.refs import path_within_base
    from volumehost.mount.removal import remove_all_at, remove_all_one_filesystem, remove_dirs_one_filesystem
    from volumehost.sdk.atomic_writer import AtomicWriter
    from volumehost.sdk.directories import make_directories
    from volumehost.sdk.file_replacement import replace_file
    from volumehost.sdk.filesystem import HUGETLBFS_MAGIC, TMPFS_MAGIC, filesystem_magic
    from volumehost.sdk.metrics import (
        BlockMetrics,
        CachedMetrics,
        DiskUsage,
        DuMetrics,
        NilMetrics,
        StatFsMetrics,
        disk_usage,
    )
    from volumehost.sdk.mount_options import join_mount_options, mount_options_from_spec
    from volumehost.sdk.names import escape_qualified_name, unescape_qualified_name
    from volumehost.sdk.nested_mounts import make_nested_mount_points, nested_mount_points
    from volumehost.sdk.ownership import OwnershipReport, apply_ownership, set_volume_ownership
    from volumehost.sdk.paths import get_path, validate_path_no_backsteps
    from volumehost.sdk.payload import FileProjection, clean_payload
    from volumehost.sdk.quantity import Quantity, parse_quantity
    from volumehost.sdk.ready import is_ready, set_ready
    from volumehost.sdk.recycler import recycler_pod_manifest, recycler_timeout, validate_recycler_pod_template

_HOME = {
    "AtomicWriter": "volumehost.sdk.atomic_writer",
    "BlockMetrics": "volumehost.sdk.metrics",
    "CachedMetrics": "volumehost.sdk.metrics",
    "DiskUsage": "volumehost.sdk.metrics",
    "DuMetrics": "volumehost.sdk.metrics",
    "FileProjection": "volumehost.sdk.payload",
    "HUGETLBFS_MAGIC": "volumehost.sdk.filesystem",
    "NilMetrics": "volumehost.sdk.metrics",
    "OwnershipReport": "volumehost.sdk.ownership",
    "Quantity": "volumehost.sdk.quantity",
    "StatFsMetrics": "volumehost.sdk.metrics",
    "TMPFS_MAGIC": "volumehost.sdk.filesystem",
    "apply_ownership": "volumehost.sdk.ownership",
    "clean_payload": "volumehost.sdk.payload",
    "cleanup_mount_point": "volumehost.mount.cleanup",
    "disk_usage": "volumehost.sdk.metrics",
    "escape_qualified_name": "volumehost.sdk.names",
    "filesystem_magic": "volumehost.sdk.filesystem",
    "get_path": "volumehost.sdk.paths",
    "is_ready": "volumehost.sdk.ready",
    "join_mount_options": "volumehost.sdk.mount_options",
    "make_directories": "volumehost.sdk.directories",
    "make_nested_mount_points": "volumehost.sdk.nested_mounts",
    "mount_options_from_spec": "volumehost.sdk.mount_options",
    "nested_mount_points": "volumehost.sdk.nested_mounts",
    "parse_quantity": "volumehost.sdk.quantity",
    "path_within_base": "volumehost.mount.refs",
    "recycler_pod_manifest": "volumehost.sdk.recycler",
    "recycler_timeout": "volumehost.sdk.recycler",
    "remove_all_at": "volumehost.mount.removal",
    "remove_all_one_filesystem": "volumehost.mount.removal",
    "remove_dirs_one_filesystem": "volumehost.mount.removal",
    "replace_file": "volumehost.sdk.file_replacement",
    "set_ready": "volumehost.sdk.ready",
    "set_volume_ownership": "volumehost.sdk.ownership",
    "unescape_qualified_name": "volumehost.sdk.names",
    "validate_path_no_backsteps": "volumehost.sdk.paths",
    "validate_recycler_pod_template": "volumehost.sdk.recycler",
}

__all__ = [
    "HUGETLBFS_MAGIC",
    "TMPFS_MAGIC",
    "AtomicWriter",
    "BlockMetrics",
    "CachedMetrics",
    "DiskUsage",
    "DuMetrics",
    "FileProjection",
    "NilMetrics",
    "OwnershipReport",
    "Quantity",
    "StatFsMetrics",
    "apply_ownership",
    "clean_payload",
    "cleanup_mount_point",
    "disk_usage",
    "escape_qualified_name",
    "filesystem_magic",
    "get_path",
    "is_ready",
    "join_mount_options",
    "make_directories",
    "make_nested_mount_points",
    "mount_options_from_spec",
    "nested_mount_points",
    "parse_quantity",
    "path_within_base",
    "recycler_pod_manifest",
    "recycler_timeout",
    "remove_all_at",
    "remove_all_one_filesystem",
    "remove_dirs_one_filesystem",
    "replace_file",
    "set_ready",
    "set_volume_ownership",
    "unescape_qualified_name",
    "validate_path_no_backsteps",
    "validate_recycler_pod_template",
]


def __getattr__(name: str) -> Any:
    """Load a name's module at its first use (PEP 562)."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
