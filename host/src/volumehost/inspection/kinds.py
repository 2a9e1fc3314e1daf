"""The kinds of findings: their stable names, what each means, and what repair does about it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """``meaning`` and ``repair`` are sentences for people; ``repair`` is "" where nothing is to be done."""

    meaning: str
    repair: str


ORPHANED_POD: Final = "orphaned-pod"
GONE_POD: Final = "record-of-gone-pod"
UNKNOWN_POD: Final = "unknown-pod"
LEAKED_MOUNT: Final = "leaked-mount"
LEAKED_DEVICE_MOUNT: Final = "leaked-device-mount"
LEAKED_LOOP_DEVICE: Final = "leaked-loop-device"
OTHER_NAMESPACE: Final = "mount-in-other-namespace"
HALF_REMOVED: Final = "half-removed-volume"
BARE_DIRECTORY: Final = "bare-directory"
FILES_UNDER_MOUNT: Final = "files-under-mount-point"
CORRUPTED_MOUNT: Final = "corrupted-mount"
HUNG_MOUNT: Final = "hung-mount"
STACKED_MOUNTS: Final = "stacked-mounts"
DAMAGED_RECORD: Final = "damaged-record"
STALE_RECORD: Final = "stale-record"
ATTACHMENT: Final = "attachment-without-volume"
UNFINISHED: Final = "unfinished-operation"
STALE_SOCKET: Final = "stale-socket"
STALE_PROCESS: Final = "stale-driver-process"
SUBPATH_LEFTOVER: Final = "subpath-leftover"
TEMPORARY_FILE: Final = "temporary-file"
KEPT_COPY: Final = "kept-copy"
UNEXPECTED_ENTRY: Final = "unexpected-entry"
UNREADABLE: Final = "unreadable"

KINDS: Final[dict[str, Kind]] = {
    ORPHANED_POD: Kind(
        "a pod's directory is left although no source of pods knows the pod",
        "unmounts what is mounted below it, through the volume's plugin where that is there, then removes the "
        "directories; files are never removed",
    ),
    GONE_POD: Kind(
        "the journal tells of volumes of a pod that is in the API no more",
        "tears the volumes down through their plugins, removes the pod's directory and ends the records",
    ),
    UNKNOWN_POD: Kind(
        "there is a pod's directory, and no source of pods was there that would know the pod",
        "",
    ),
    LEAKED_MOUNT: Kind(
        "something is mounted below the root directory that is no volume of any pod, and no record tells of it",
        "unmounts it, deepest first, unless something uses it",
    ),
    LEAKED_DEVICE_MOUNT: Kind(
        "a volume is mounted for the node (staged), and no pod has it",
        "unmounts it through its plugin, so that the driver hears of it, or plainly where the plugin is not there",
    ),
    LEAKED_LOOP_DEVICE: Kind(
        "a loop device is attached to a file below the root directory, and nothing uses it",
        "detaches it",
    ),
    OTHER_NAMESPACE: Kind(
        "a process in another mount namespace still has a mount of this root directory that is gone here; the volume "
        "below stays busy until that process ends",
        "",
    ),
    HALF_REMOVED: Kind(
        "what is left of a volume: an empty directory, or a record, without a mount",
        "tells the driver, which may have the volume staged, then removes the empty directories and the record",
    ),
    BARE_DIRECTORY: Kind(
        "a mount is promised here and there is none: what a pod writes goes to the disk below",
        "",
    ),
    FILES_UNDER_MOUNT: Kind(
        "there are files in the directory below a mount that is gone: somebody wrote them when nothing was mounted",
        "",
    ),
    CORRUPTED_MOUNT: Kind(
        "the server or daemon behind the mount is gone: every use of it fails",
        "unmounts it if its pod is gone; that of a pod which is wanted is mounted again by whoever manages the pod",
    ),
    HUNG_MOUNT: Kind(
        "the mount did not answer in time; its server or daemon may come back",
        "",
    ),
    STACKED_MOUNTS: Kind(
        "several mounts lie on one another at one place: only the uppermost is seen",
        "",
    ),
    DAMAGED_RECORD: Kind("a record cannot be read, or makes no sense", ""),
    STALE_RECORD: Kind(
        "a record tells of a volume of which nothing is left",
        "ends the record",
    ),
    ATTACHMENT: Kind("a volume is attached to this node, or recorded as such, and no pod here has it", ""),
    UNFINISHED: Kind("an operation was begun, and whoever was at it is gone", ""),
    STALE_SOCKET: Kind("nobody listens on the socket any more", "removes the socket"),
    STALE_PROCESS: Kind("a driver's process has outlived the host that it was started for", ""),
    SUBPATH_LEFTOVER: Kind(
        "the subpath of a container is left although its volume, or its pod, is gone",
        "unmounts it and removes its place",
    ),
    TEMPORARY_FILE: Kind("a file of a write that was cut short", "removes the file"),
    KEPT_COPY: Kind("a copy of a damaged or newer file that was kept as evidence", ""),
    UNEXPECTED_ENTRY: Kind("there is something that does not belong here; it was not looked into", ""),
    UNREADABLE: Kind("something could not be looked at, so nothing is known of what is in it", ""),
}
