"""Which SELinux label a volume is mounted with, and what stands against it (SEL-01 to -06). Loaded where SELinux is on.

A label is given to a mount as a whole only where that cannot hurt another pod: for a PersistentVolume whose only access
mode is ReadWriteOncePod, by a plugin that can. All other volumes are relabelled by the container runtime, as ever; what
would be an error for them one day is only counted.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from volumehost.errors import SELinuxLabelError
from volumehost.node.execution.operation_metrics import full_plugin_name
from volumehost.node.state.desired import SELinuxLabels

if TYPE_CHECKING:
    from volumehost.api.objects import Pod, SELinuxOptions
    from volumehost.host_services import HostUtils
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.state.desired import VolumeUse
    from volumehost.spec import Spec

logger = logging.getLogger(__name__)

RECURSIVE: Final = "Recursive"
NO_LABELS: Final = SELinuxLabels("", "")
_MODES: Final = ("ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce", "ReadWriteOncePod")

#: What is counted (SEL-06), by the part of the metric's name.
CONTAINER, POD, VOLUME, ADMITTED = "container", "pod_context_mismatch", "volume_context_mismatch", "volumes_admitted"


class SELinuxJudge:
    """Judges the volumes of pods; safe for threads."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, str]] = Counter()
        self._lock = threading.Lock()
        self._counted: set[tuple[str, str, str]] = set()

    def labels(
        self, pod: Pod, spec: Spec, plugin: LoadedPlugin, options: Sequence[SELinuxOptions], host: HostUtils
    ) -> SELinuxLabels:
        """The labels of a volume that containers with these options mount.

        :raises SELinuxLabelError: they cannot be had, and the volume would have to be mounted with one.
        """
        part, label = "", ""
        problem: SELinuxLabelError | None = None
        try:
            label = _common_label(spec, options, host)
        except _DifferentLabelsError as error:
            part, problem = POD, error
        except SELinuxLabelError as error:
            part, problem = CONTAINER, error
        if problem is None and not label:
            return NO_LABELS
        applies = (
            _is_for_one_pod(spec) and _may_be_mounted_with_one(pod) and plugin.supports_selinux_context_mount(spec)
        )
        if problem is not None:
            self._problem(part, pod, spec, plugin, problem, blocks=applies)
            return NO_LABELS
        return SELinuxLabels(label if applies else "", label)

    def check_others(self, use: VolumeUse, others: Iterable[VolumeUse]) -> SELinuxLabelError | None:
        """What keeps the pod from having the volume beside those that want it already (SEL-04)."""
        if use.selinux is None:
            return None
        for other in others:
            known = other.selinux.original if other.selinux is not None else ""
            if known == use.selinux.original:
                continue
            error = SELinuxLabelError(
                f'conflicting SELinux labels of volume {use.inner_name}: "{known}" and "{use.selinux.original}"',
                subject=use.inner_name, hint=f"pod {other.pod.metadata.namespace}/{other.pod.metadata.name} has it",
            )  # fmt: skip
            blocks = bool(use.mount_label or other.mount_label)
            if not blocks and not use.plugin.supports_selinux_context_mount(use.spec):
                continue
            try:
                self._problem(VOLUME, use.pod, use.spec, use.plugin, error, blocks=blocks)
            except SELinuxLabelError as refused:
                return refused
        return None

    def admitted(self, use: VolumeUse) -> None:
        """The volume is to be mounted with its label."""
        if use.selinux is not None and use.selinux.mount:
            self._count(ADMITTED, "", use.pod, use.spec, use.plugin)

    def counts(self) -> dict[tuple[str, str, str, str], int]:
        """The metrics' part, ``errors`` or ``warnings``, access mode, plugin, to for how many volumes that was so.

        Each volume of a pod counts once, however often it is looked at (SEL-06).
        """
        with self._lock:
            return dict(self._counts)

    def forget(self, pod_uid: str) -> None:
        """The pod is gone."""
        with self._lock:
            self._counted = {key for key in self._counted if key[0] != pod_uid}

    # --- inside ---------------------------------------------------------------------------------------------------

    def _problem(
        self, part: str, pod: Pod, spec: Spec, plugin: LoadedPlugin, error: SELinuxLabelError, *, blocks: bool
    ) -> None:
        """SEL-03: it blocks the pod where a label would be applied to the mount; elsewhere it is only counted."""
        self._count(part, "errors" if blocks else "warnings", pod, spec, plugin)
        if blocks:
            raise error
        logger.debug("this would be an error of pod %s: %s", pod.metadata.name, error)

    def _count(self, part: str, kind: str, pod: Pod, spec: Spec, plugin: LoadedPlugin) -> None:
        once = (pod.metadata.uid, spec.name(), f"{part} {kind}")
        with self._lock:
            if once not in self._counted:
                self._counted.add(once)
                self._counts[part, kind, access_mode(spec), full_plugin_name(plugin.name, spec)] += 1


def access_mode(spec: Spec) -> str:
    """The access mode for metrics: the widest one, ``inline`` for a volume of the pod alone (DSW-21)."""
    volume = spec.persistent_volume
    if volume is None:
        return "inline"
    return next((mode for mode in _MODES if mode in volume.spec.access_modes), "")


class _DifferentLabelsError(SELinuxLabelError):
    """Containers of one pod want different labels for one volume."""


def _common_label(spec: Spec, options: Sequence[SELinuxOptions], host: HostUtils) -> str:
    """The label that all of the containers want, "" for none.

    :raises SELinuxLabelError: one cannot be made, or they differ.
    """
    found = set()
    for each in options:
        try:
            found.add(host.selinux_file_label(each))
        except OSError as error:
            raise SELinuxLabelError(f"failed to construct SELinux label from context: {error}") from error
    labels = sorted(found - {""})
    if len(labels) > 1:
        raise _DifferentLabelsError(
            f"multiple SELinux labels found: {', '.join(labels)}",
            action=f"choosing the SELinux label of volume {spec.name()}", subject=spec.name(),
            hint="give all containers that mount it the same seLinuxOptions",
        )  # fmt: skip
    return labels[0] if labels else ""


def _is_for_one_pod(spec: Spec) -> bool:
    """SEL-02."""
    volume = spec.persistent_volume
    return volume is not None and list(volume.spec.access_modes) == ["ReadWriteOncePod"]


def _may_be_mounted_with_one(pod: Pod) -> bool:
    context = pod.spec.security_context
    return context is None or context.se_linux_change_policy != RECURSIVE
