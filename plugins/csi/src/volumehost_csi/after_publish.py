"""What the host does once a driver has published a volume: SELinux relabelling, the pod's group.

From here on the mount exists, so every failure is uncertain: a teardown must follow (CSI-ERR-15).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.errors import UncertainProgressError, VolumeHostError

if TYPE_CHECKING:
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


def apply_group(mounter: CSIMounter, directory: str, pod: Pod, args: MounterArgs) -> None:
    """Give the volume to the pod's group (CSI-FSG-08, -09).

    :raises UncertainProgressError: it failed; mount and record stay.
    """
    from volumehost.sdk import set_volume_ownership

    try:
        if args.volume_ownership_applicator is not None:
            args.volume_ownership_applicator(mounter, directory, args)
        else:
            set_volume_ownership(
                mounter, directory, args.fs_group, args.fs_group_change_policy, pod=pod, recorder=args.recorder
            )
    except (VolumeHostError, OSError) as error:
        raise UncertainProgressError(
            f"the volume is mounted, but was not given to group {args.fs_group}: {error}",
            action=f"mounting {directory}",
            subject=directory,
        ) from error
