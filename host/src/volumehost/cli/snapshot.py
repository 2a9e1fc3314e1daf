"""``volumehost snapshot``: snapshots of volumes, taken, listed, restored and deleted."""

from __future__ import annotations

from volumehost.cli.command import LazyGroup
from volumehost.cli.options import shared_params

COMMANDS = {
    "create": ("volumehost.cli.snapshot_create:create", "Take a snapshot of a claim's volume."),
    "list": ("volumehost.cli.snapshot_list:list_snapshots", "List snapshots, or what a storage driver has."),
    "restore": ("volumehost.cli.snapshot_restore:restore", "Make a claim whose volume begins as a snapshot was."),
    "delete": ("volumehost.cli.snapshot_delete:delete", "Delete snapshots."),
}

snapshot = LazyGroup(
    "snapshot",
    table=COMMANDS,
    params=shared_params("root-dir", "node-name", "output", "namespace"),
    help="""Take snapshots of volumes, and make volumes of them.

The storage driver of the volume takes them. How it does so, and whether they go with their objects, is what a
VolumeSnapshotClass says.""",
    examples=(
        ("Keep what is there, and get it back beside it", "volumehost snapshot create monday --from data"),
        ("", "volumehost snapshot restore monday data-of-monday"),
        ("", "volumehost snapshot list"),
    ),
)
