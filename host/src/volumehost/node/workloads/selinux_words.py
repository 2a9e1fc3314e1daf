"""What status says of the SELinux options of containers: which label a volume has, or why none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from volumehost.node.operations.common import Services
    from volumehost.node.populating.pods import UsedVolumes
    from volumehost.node.status.records import VolumeStatus

NOT_APPLICABLE: Final = "not applicable: this kernel has no SELinux"
BY_RUNTIME: Final = "left to the container runtime"
_OTHER_LABEL: Final = "it is mounted with another SELinux label, and is unmounted before it is mounted with this one"


def with_selinux_live(
    volumes: Iterable[VolumeStatus], used: UsedVolumes, services: Services, pod_uid: str
) -> list[VolumeStatus]:
    """The volumes of a pod as the manager at work knows them."""

    def told(volume: VolumeStatus) -> VolumeStatus:
        use = services.desired.get(volume.unique_name, pod_uid)
        if use is None or use.selinux is None:
            return replace(volume, selinux=BY_RUNTIME)
        waits = services.actual.has_other_label(volume.unique_name, use.mount_label)
        words = mounted_with(use.mount_label)
        if not use.mount_label and use.selinux.original:
            words = f"{BY_RUNTIME}: {use.selinux.original}"
        return replace(volume, selinux=words, error=volume.error or (_OTHER_LABEL if waits else ""))

    return with_selinux(volumes, used, told, enabled=services.host.has_selinux())


def with_selinux(
    volumes: Iterable[VolumeStatus],
    used: UsedVolumes,
    told: Callable[[VolumeStatus], VolumeStatus],
    *,
    enabled: bool,
) -> list[VolumeStatus]:
    """The volumes of a pod; those that containers with SELinux options mount say what is made of these.

    :param told: says it where the kernel has SELinux on.
    """
    return [
        volume if not used.selinux.get(volume.volume)
        else told(volume) if enabled
        else replace(volume, selinux=NOT_APPLICABLE)
        for volume in volumes
    ]  # fmt: skip


def mounted_with(label: str) -> str:
    """What is said of a volume that is mounted with the label, "" for none of its own."""
    return f"mounted with the label {label}" if label else BY_RUNTIME
