"""What the host does once a driver has published a volume: SELinux relabelling, the pod's group.

From here on the mount exists, so every failure is uncertain: a teardown must follow (CSI-ERR-15).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import UncertainProgressError, VolumeHostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from volumehost.api.objects import Pod
    from volumehost.volumes import MounterArgs
    from volumehost_csi.mounter import CSIMounter
    from volumehost_csi.services import Services


def needs_relabel(services: Services, target: str, label: str) -> bool:
    """Whether a container runtime is to relabel the content: not when the whole mount has a label (CSI-SEL-06).

    :raises UncertainProgressError: it cannot be found out.
    """
    if label:
        return False
    try:
        return services.host_util.get_selinux_support(target)
    except (VolumeHostError, OSError) as error:
        raise UncertainProgressError(
            f"the volume is mounted, but whether it carries SELinux labels cannot be found out: {error}",
            action=f"mounting {target}",
            subject=target,
        ) from error


def apply_group(
    mounter: CSIMounter, directory: str, pod: Pod, args: MounterArgs, count: Callable[[Exception | None], None]
) -> None:
    """Give the volume to the pod's group (CSI-FSG-08, -09).

    :param count: called with the error, or None, of a walk that nobody else counts: a host's applicator does so itself.
    :raises UncertainProgressError: it failed; mount and record stay.
    """
    from volumehost.sdk import apply_ownership

    try:
        apply_ownership(mounter, directory, args, pod=pod, on_complete=count)
    except (VolumeHostError, OSError) as error:
        raise UncertainProgressError(
            f"the volume is mounted, but was not given to group {args.fs_group}: {error}",
            action=f"mounting {directory}",
            subject=directory,
        ) from error
