"""Tells pods whose volume a controller cannot attach because the node is full (VM-07, CSI-PLUG-24).

Looked at now and then for volumes that have waited for a while; begun with the attachments of a node in a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from volumehost.node.populating.attach_limit import LIMIT_EXCEEDED, is_exhausted, limit_message

if TYPE_CHECKING:
    from volumehost.node.assembly import NodeParts

#: How often it is looked, and how long a volume has to have waited, in seconds. A look costs a request for each volume
#: that waits.
LOOK_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 10.0


class AttachLimits:
    """One event for each pod and volume, until the volume is attached."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._told: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """Look from now on, until the manager ends."""
        self._parts.later(LOOK_SECONDS, self._look_and_go_on)

    def _look_and_go_on(self) -> None:
        try:
            self.look()
        finally:
            self._parts.later(LOOK_SECONDS, self._look_and_go_on)

    def look(self) -> None:
        """Ask the plugins of the volumes that wait, and tell the pods."""
        services, recorder = self._parts.services, self._parts.services.recorder()
        attachments = services.attachments
        waiting: set[tuple[str, str]] = set()
        for volume in services.desired.attachable_volumes() if attachments is not None else ():
            if attachments is None or not attachments.waits_for(volume):
                continue
            for uid in services.desired.pods_of_volume(volume):
                use = services.desired.get(volume, uid)
                if use is None or services.clock() - use.requested_at < PATIENCE_SECONDS:
                    continue
                waiting.add((volume, uid))
                if (volume, uid) in self._told or not is_exhausted(use):
                    continue
                self._told.add((volume, uid))
                if recorder is not None:
                    recorder.event(use.pod, "Warning", LIMIT_EXCEEDED, limit_message(use))
        self._told &= waiting
