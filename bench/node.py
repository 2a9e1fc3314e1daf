"""The volume manager against the bare calls for the same work: mkdir, mount, umount, rmdir and one fdatasync."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import bare
from bench.measuring import Figure
from volumehost import VolumeManager

VOLUMES = 4
ROUNDS = 9


def _pod(number: int) -> dict[str, Any]:
    names = [f"scratch-{index}" for index in range(VOLUMES)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"bench-{number}", "namespace": "default"},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in names],
                }
            ],
            "volumes": [{"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}} for name in names],
        },
    }


def _bare_cycle(base: Path, journal: int) -> float:
    start = time.perf_counter()
    for index in range(VOLUMES):
        target = base / f"bare-{index}"
        target.mkdir()
        bare.mount("tmpfs", str(target), "tmpfs", data="size=1048576")
        os.write(journal, b"x" * 200)
        os.fdatasync(journal)
        bare.umount(str(target))
        target.rmdir()
    return (time.perf_counter() - start) / VOLUMES


def _measure(base: Path) -> tuple[float, float]:
    ours: list[float] = []
    anchor: list[float] = []
    journal = os.open(base / "bare-journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        with VolumeManager(base / "root") as manager:
            for number in range(ROUNDS + 1):
                pod = _pod(number)
                start = time.perf_counter()
                manager.mount_pod(pod)
                manager.unmount_pod(pod["metadata"]["name"])
                seconds = (time.perf_counter() - start) / VOLUMES
                bare_seconds = _bare_cycle(base, journal)
                if number:  # the first round warms both up
                    ours.append(seconds)
                    anchor.append(bare_seconds)
    finally:
        os.close(journal)
    return statistics.median(ours), statistics.median(anchor)


def figures() -> list[Figure]:
    """A pod of four in-memory volumes, mounted and unmounted, per volume, the journal synced."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        ours, anchor = _measure(base)
        rows.append(
            Figure("pod of four volumes, per volume, root on disk", ours, anchor, "bare calls, fdatasync", 4, 2)
        )
    with tempfile.TemporaryDirectory() as directory:
        bare.mount("bench", directory, "tmpfs")
        try:
            ours, anchor = _measure(Path(directory))
        finally:
            bare.umount(directory)
        rows.append(Figure("the same, root on tmpfs", ours, anchor, "bare calls, fdatasync", 4, 2))
    return rows
