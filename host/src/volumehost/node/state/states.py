"""The words for where a volume stands, shared by the actual state, the journal, the operations and the status."""

from __future__ import annotations

from enum import Enum


class MountState(Enum):
    """A volume of one pod (ASW-03). Absence of an entry is "not mounted"."""

    MOUNTED = "mounted"
    UNCERTAIN = "uncertain"


class DeviceState(Enum):
    """A device's global mount (ASW-02)."""

    NOT_MOUNTED = "not-mounted"
    UNCERTAIN = "uncertain"
    MOUNTED = "mounted"

    @property
    def may_be_mounted(self) -> bool:
        """Whether an unmount is owed before the device may be forgotten."""
        return self is not DeviceState.NOT_MOUNTED


class Attachability(Enum):
    """Whether a volume has to be attached to the node (ASW-01); UNCERTAIN until it is known after a restart."""

    TRUE = "true"
    FALSE = "false"
    UNCERTAIN = "uncertain"


class Need(Enum):
    """What a wanted volume of a pod lacks (ASW-30)."""

    NOTHING = "nothing"
    ATTACH = "attach"
    MOUNT = "mount"
    #: It is mounted with another SELinux label, and has to be forgotten before it can be mounted with this one.
    RELABEL = "relabel"
    REMOUNT = "remount"
    RESIZE = "resize"


class ResizeHold(Enum):
    """What keeps a mounted volume from being grown on the node, although it has not its full size."""

    NONE = "none"
    #: The claim does not allow it now; it is looked at again when the claim has changed (EXPN-33).
    CLAIM = "claim"
    #: The driver cannot grow it while it is used: until the volume's entry is made anew (ASW-25).
    IN_USE = "in-use"
