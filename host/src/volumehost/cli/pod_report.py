"""Pods and their volumes as text and as plain data: what ``mount``, ``status`` and ``describe`` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from volumehost.cli.tables import format_table

if TYPE_CHECKING:
    from volumehost.node.status.records import PodStatus, VolumeStatus

_WORDS = {"unused": "unused: no container uses it"}


def pod_label(status: PodStatus) -> str:
    """``default/web``; the uid of a pod whose name nobody knows."""
    return f"{status.namespace}/{status.name}" if status.name else status.uid


def volume_table(pods: Sequence[PodStatus], *, with_pod: bool) -> str:
    """A line for each volume of each pod; a pod without volumes has a line too when pods are shown."""
    headers = ("volume", "plugin", "state", "path")
    rows: list[tuple[str, ...]] = []
    for pod in pods:
        cells = [(volume.volume, volume.plugin, _state(volume), volume.path) for volume in pod.volumes]
        if with_pod:
            rows += [(pod_label(pod), *row) for row in cells or [("", "", pod.state, "")]]
        else:
            rows += cells
    return format_table(("pod", *headers) if with_pod else headers, rows)


def _state(volume: VolumeStatus) -> str:
    return _WORDS.get(volume.state, volume.state)


def unready_lines(pods: Sequence[PodStatus]) -> list[str]:
    """One line for each volume that is not ready: why, and when it is tried again (BR-83)."""
    return [
        f"{pod_label(pod)}: {volume.explain()}"
        for pod in pods
        for volume in pod.volumes
        if not volume.ready and volume.state != "unused" and not _is_gone(pod, volume)
    ]


def _is_gone(pod: PodStatus, volume: VolumeStatus) -> bool:
    """Of a pod that ends, a volume of which nothing is left waits for nobody."""
    return pod.state == "unmounting" and volume.state == "not-mounted"


def pod_data(status: PodStatus) -> dict[str, Any]:
    """The documented shape of a pod in JSON and YAML; times in seconds."""
    return {
        "namespace": status.namespace,
        "name": status.name,
        "uid": status.uid,
        "state": status.state,
        "ready": status.ready,
        "note": status.note,
        "volumes": [_volume_data(volume) for volume in status.volumes],
    }


def _volume_data(volume: VolumeStatus) -> dict[str, Any]:
    return {
        "volume": volume.volume,
        "state": volume.state,
        "ready": volume.ready,
        "plugin": volume.plugin,
        "distribution": volume.distribution,
        "version": volume.version,
        "path": volume.path,
        "mounted": volume.mounted,
        "uniqueName": volume.unique_name,
        "operation": volume.operation,
        "step": volume.step,
        "age": volume.age,
        "attempts": volume.attempts,
        "error": volume.error,
        "retryIn": volume.retry_in,
        "progress": volume.progress,
        "where": volume.where,
        "selinux": volume.selinux,
        "failedStep": volume.failed_step,
    }
