"""What a volume goes through on its way to a pod and back, in order: the one description of it.

``explain`` finds in it where a volume is, ``plan`` tells from it what would be done. Each phase names the steps of the
operations (``steps.enter(...)``) that belong to it; a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from volumehost.node.operations.common import MAP_VOLUME, MOUNT_VOLUME

#: Names of the phases that several modules speak of.
CLAIM, PROVISION, BIND, PLUGIN, ATTACH, CHECK = "claim", "provision", "bind", "plugin", "attach", "check"
WAIT_FOR_DEVICE, MOUNT_DEVICE, SET_UP, EXPAND, MOUNTED = (
    "wait-for-device",
    "mount-device",
    "set-up",
    "expand",
    "mounted",
)
SUBPATHS, TEAR_DOWN, UNMOUNT_DEVICE, DETACH, REMOVE = "subpaths", "tear-down", "unmount-device", "detach", "remove"

_ATTACH, _DETACH, _GROW = "volume_attach", "volume_detach", "volume_fs_resize"
_VERIFY = "verify_controller_attached_volume"
_UNMOUNT, _UNMAP, _UNMOUNT_DEVICE, _UNMAP_DEVICE = "volume_unmount", "unmap_volume", "unmount_device", "unmap_device"

#: Every operation that brings a volume to a pod; the others take it away.
MOUNTING_OPERATIONS = frozenset({_ATTACH, _VERIFY, MOUNT_VOLUME, MAP_VOLUME, _GROW})

Step = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Phase:
    """One thing that is done for a volume. ``text`` says what, to what, by whom: "stage it at /...".

    ``steps`` are the (operation, step) that it consists of; what has none is the populator's or the controllers' doing.
    """

    name: str
    text: str
    steps: frozenset[Step] = frozenset()


@dataclass(frozen=True, slots=True)
class VolumeKind:
    """What decides which phases a volume goes through, and what their texts speak of; "" is not known, or none.

    ``claim`` is namespace and name; ``provisioner`` who makes a volume for it where none is bound yet. ``by`` is the
    storage driver behind the plugin. ``grow_to`` is a quantity, "" where nothing has to grow. ``stage_path`` is the
    device's global mount, of a block volume its map path. ``group`` is the group that is to own the files.
    """

    claim: str = ""
    made_for_pod: bool = False
    provisioner: str = ""
    storage_class: str = ""
    size: str = ""
    persistent_volume: str = ""
    plugin: str = ""
    origin: str = ""
    by: str = ""
    node: str = ""
    block: bool = False
    attaches: bool = False
    mounts_device: bool = False
    device_path: str = ""
    stage_path: str = ""
    path: str = ""
    group: int | None = None
    group_policy: str = ""
    grow_to: str = ""
    shared_with: tuple[str, ...] = ()


def mount_sequence(kind: VolumeKind) -> tuple[Phase, ...]:
    """From the claim to the mount, for a volume of this kind."""
    phases = [*_claim_phases(kind), Phase(PLUGIN, _plugin_text(kind))]
    if kind.attaches:
        phases.append(Phase(ATTACH, _by(f"attach it to {_node(kind)}", kind), _ATTACHES))
    phases += _block_phases(kind) if kind.block else _filesystem_phases(kind)
    return tuple(phases)


def unmount_sequence(kind: VolumeKind) -> tuple[Phase, ...]:
    """From the pod back to where the volume came from. What other pods still use stays on the node."""
    if kind.block:
        phases = [
            Phase(TEAR_DOWN, _by(_at("take the device from the pod (unmap, unpublish)", kind.path), kind), _UNMAPS)
        ]
        device = Phase(
            UNMOUNT_DEVICE, _by(_at("take it from the node (unstage)", kind.stage_path), kind), _UNMAPS_DEVICE
        )
    else:
        phases = [
            Phase(SUBPATHS, "take away the subPath mounts of its containers", _CLEANS),
            Phase(TEAR_DOWN, _by(_at("unmount it from the pod (unpublish)", kind.path), kind), _UNMOUNTS),
        ]
        text = _by(_at("unmount its device from the node (unstage)", kind.stage_path), kind)
        device = Phase(UNMOUNT_DEVICE, text, _UNMOUNTS_DEVICE)
    if not kind.shared_with:
        if kind.mounts_device or kind.block:
            phases.append(device)
        if kind.attaches:
            phases.append(Phase(DETACH, _by(f"detach it from {_node(kind)}", kind), _DETACHES))
    return (*phases, Phase(REMOVE, "remove the pod's directory, then let its object go"))


def phase_at(sequence: Sequence[Phase], operation: str, step: str) -> int | None:
    """Index of the phase that the step of the operation belongs to; None for one that the sequence does not have."""
    if not step:  # it is about to begin
        return next((index for index, phase in enumerate(sequence) if _has_operation(phase, operation)), None)
    return next((index for index, phase in enumerate(sequence) if (operation, step) in phase.steps), None)


def index_of(sequence: Sequence[Phase], name: str) -> int:
    """Index of the phase of that name; of one that the sequence does not have, 0."""
    return next((index for index, phase in enumerate(sequence) if phase.name == name), 0)


# --- the parts --------------------------------------------------------------------------------------------------


def _claim_phases(kind: VolumeKind) -> list[Phase]:
    if not kind.claim:
        return []
    details = ", ".join(part for part in (kind.size, kind.storage_class and f"class {kind.storage_class}") if part)
    shown = f"claim {kind.claim} ({details})" if details else f"claim {kind.claim}"
    phases = [Phase(CLAIM, f"make {shown} for the pod" if kind.made_for_pod else f"find {shown}")]
    if kind.provisioner:
        phases.append(Phase(PROVISION, f"provision a volume for it, by {kind.provisioner}"))
    volume = f"persistent volume {kind.persistent_volume}" if kind.persistent_volume else "a persistent volume"
    return [*phases, Phase(BIND, f"bind it to {volume}")]


def _filesystem_phases(kind: VolumeKind) -> list[Phase]:
    phases = [Phase(CHECK, _check_text(kind), _steps(MOUNT_VOLUME, "plugin", "check", "journal"))]
    if kind.attaches:
        phases.append(Phase(WAIT_FOR_DEVICE, _WAIT, _steps(MOUNT_VOLUME, "wait-for-attach")))
    if kind.mounts_device:
        text = _by(_at("mount its device on the node (stage)", kind.stage_path), kind)
        undoing = ("undo-lost-device", "undo-lost-mount", "undo-other-device")
        steps = _steps(MOUNT_VOLUME, *undoing, "mount-device", "mark-device-mounted")
        phases.append(Phase(MOUNT_DEVICE, text, steps))
    words = "set it up for the pod (publish)" if kind.mounts_device else "set it up for the pod"
    text = _by(_at(words, kind.path), kind)
    if kind.group is not None:
        policy = f", {kind.group_policy}" if kind.group_policy else ""
        text = f"{text}; its files are given to group {kind.group} (fsGroup{policy})"
    return [*phases, Phase(SET_UP, text, _steps(MOUNT_VOLUME, "set-up")), *_last_phases(kind, MOUNT_VOLUME)]


def _block_phases(kind: VolumeKind) -> list[Phase]:
    phases = [Phase(CHECK, _check_text(kind), _steps(MAP_VOLUME, "plugin", "check", "journal"))]
    if kind.attaches:
        phases.append(Phase(WAIT_FOR_DEVICE, _WAIT, _steps(MAP_VOLUME, "wait-for-attach")))
    staging = _by(_at("set the device up on the node (stage)", kind.stage_path), kind)
    mapping = _by(_at("map the device for the pod (publish, bind, link)", kind.path), kind)
    return [
        *phases,
        Phase(MOUNT_DEVICE, staging, _steps(MAP_VOLUME, "set-up-device", "mark-device-mounted")),
        Phase(SET_UP, mapping, _steps(MAP_VOLUME, "map-pod-device", "undo-lost-mount", "map")),
        *_last_phases(kind, MAP_VOLUME),
    ]


def _last_phases(kind: VolumeKind, operation: str) -> list[Phase]:
    done = Phase(MOUNTED, "record it as mounted", _steps(operation, "mark-mounted"))
    if not kind.grow_to:
        return [done]
    steps = _steps(operation, "expand") | _steps(_GROW, "expand")
    return [Phase(EXPAND, _by(f"grow it to {kind.grow_to}", kind), steps), done]


def _plugin_text(kind: VolumeKind) -> str:
    if not kind.plugin:
        return "find its volume plugin"
    return f"find its volume plugin, {kind.plugin}{f' ({kind.origin})' if kind.origin else ''}"


def _check_text(kind: VolumeKind) -> str:
    if not (kind.claim or kind.persistent_volume):
        return "check what the pod asks for"
    return "check that this node and this pod may have it (node affinity, access modes, mount options)"


def _node(kind: VolumeKind) -> str:
    return f"node {kind.node}" if kind.node else "this node"


def _at(text: str, path: str) -> str:
    return f"{text} at {path}" if path else text


def _by(text: str, kind: VolumeKind) -> str:
    return f"{text}, by {kind.by}" if kind.by else text


def _has_operation(phase: Phase, operation: str) -> bool:
    return any(name == operation for name, _ in phase.steps)


def _steps(operation: str, *names: str) -> frozenset[Step]:
    return frozenset((operation, name) for name in names)


_WAIT = "wait until the attached device is there"
_ATTACHES = _steps(_ATTACH, "plugin", "journal", "attach", "detach", "mark-attached") | _steps(
    _VERIFY, "plugin", "verify", "mark-attached"
)
_DETACHES = _steps(_DETACH, "plugin", "journal", "detach", "mark-detached")
_CLEANS = _steps(_UNMOUNT, "plugin", "journal", "clean-subpaths")
_UNMOUNTS = _steps(_UNMOUNT, "tear-down", "mark-unmounted")
_UNMAPS = _steps(_UNMAP, "plugin", "journal", "unmap", "unmap-pod-device", "mark-unmounted")
_UNMOUNTS_DEVICE = _steps(
    _UNMOUNT_DEVICE, "plugin", "check-references", "journal", "unmount-device", "check-opened", "mark-unmounted"
)
_UNMAPS_DEVICE = _steps(
    _UNMAP_DEVICE, "plugin", "check-references", "journal", "tear-down-device", "check-opened", "mark-unmounted"
)
