"""Gives a volume to its pod's group while it is set up: told as it goes on, and ended when nobody waits any more.

The mount operation hands it to plugins (``MounterArgs.volume_ownership_applicator``). A walk over millions of files
takes hours, on one worker of the plugin's lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from volumehost.errors import OperationStoppedError
from volumehost.sdk import set_volume_ownership

if TYPE_CHECKING:
    from volumehost.node.operations.common import Services, Steps
    from volumehost.node.state.desired import VolumeUse
    from volumehost.volumes import Mounter, MounterArgs

#: Its name in metrics (METRIC-02, FSGRP-09).
APPLY_OWNERSHIP: Final = "volume_apply_access_control"


class OwnershipApplicator:
    """Applies the group for one run of a mount."""

    def __init__(self, services: Services, steps: Steps, use: VolumeUse) -> None:
        self._services = services
        self._steps = steps
        self._use = use

    def __call__(self, mounter: Mounter, directory: str, args: MounterArgs) -> None:
        """Make everything below the directory belong to the group.

        :raises OwnershipError: a directory could not be read.
        :raises OperationStoppedError: the pod no longer wants the volume, or the manager stops. The root is not done
            then, so that the next set-up does all of it again.
        """
        clock = self._services.clock
        started = clock()
        set_volume_ownership(
            mounter,
            directory,
            args.fs_group,
            args.fs_group_change_policy,
            lambda error: self._steps.count(APPLY_OWNERSHIP, clock() - started, error),
            pod=self._use.pod,
            recorder=args.recorder,
            between=self._between,
        )
        self._steps.report("")

    def _between(self, processed: int, failed: int) -> None:
        use = self._use
        if self._steps.stopping:
            raise _stopped(use, "the host stops")
        if not self._services.desired.wants(use.volume, use.pod_uid):
            raise _stopped(use, "the pod no longer wants the volume")
        refused = f", {failed:,} refused" if failed else ""
        self._steps.report(f"ownership, {processed:,} entries{refused}")


def _stopped(use: VolumeUse, reason: str) -> OperationStoppedError:
    return OperationStoppedError(
        reason, action=f"giving volume {use.inner_name} to group {use.fs_group}", subject=use.inner_name
    )
