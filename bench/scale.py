"""Many pods on one node: what they take while nothing happens, and how fast their volumes come.

All volumes are in memory, so that each is a mount of its own; the root directory is on tmpfs but where it is said
otherwise. Memory and idle time are taken in processes of their own, as an agent has them (``adopt``): ours holds 10,000
volumes of 2,500 pods that it has mounted. Its anchor holds, as slotted records and nothing else, what the manifests of
these pods say and one desired and one actual record for each volume.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench import bare
from bench.csi import tmpfs
from bench.measuring import Figure, interleaved
from volumehost import VolumeManager
from volumehost.api.convert import to_object
from volumehost.api.objects import Pod
from volumehost.node.upkeep import HOUSEKEEPING_SECONDS, RESYNC_SECONDS, SYNC_SECONDS
from volumehost.testing.namespaces import enter_private_mount_namespace

VOLUMES = 4
HELD_PODS = 2500
MOUNTED_PODS = 500
WORKERS = 32
ROUNDS = 5
IDLE_SECONDS = 10.0
_NAMES = [f"scratch-{index}" for index in range(VOLUMES)]
_PLUGIN = "kubernetes.io/empty-dir"
_DECODER = msgspec.json.Decoder(Pod)


def manifest(number: int) -> dict[str, Any]:
    """A pod of four volumes in memory, with a UID."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in _NAMES]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": "default", "uid": str(uuid.UUID(int=number))},
        "spec": {
            "containers": [{"name": "main", "image": "none", "volumeMounts": mounts}],
            "volumes": [{"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}} for name in _NAMES],
        },
    }


def in_api(numbers: range) -> list[bytes]:
    """Pods as an API has them, checked and complete; a watch tells of them so."""
    return [msgspec.json.encode(to_object(Pod, manifest(number))) for number in numbers]


def mount_all(manager: VolumeManager, told: list[bytes]) -> None:
    """Have the manager mount these pods, all at once; it is told of them as of pods that are in the API."""
    pods = [_DECODER.decode(text) for text in told]
    manager.mounting.begin_all(pods)
    late = manager.mounting.wait_all([pod.metadata.uid for pod in pods], 120)
    assert not late, late


# --- mounting -----------------------------------------------------------------------------------------------------


def _make_bare(base: str, numbers: range, *, tree: bool) -> None:
    """The same mounts by bare calls; with ``tree`` also what else the layout has of them, directories and markers."""
    os.mkdir(f"{base}/pods")
    for number in numbers:
        pod = f"{base}/pods/{uuid.UUID(int=number)}"
        volumes = f"{pod}/volumes/kubernetes.io~empty-dir"
        plugin = f"{pod}/plugins/kubernetes.io~empty-dir"
        for directory in (pod, f"{pod}/volumes", volumes, *((f"{pod}/plugins", plugin) if tree else ())):
            os.mkdir(directory)
        for name in _NAMES:
            if tree:
                os.mkdir(f"{plugin}/{name}")
                os.close(os.open(f"{plugin}/{name}/ready", os.O_CREAT | os.O_WRONLY, 0o640))
            os.mkdir(f"{volumes}/{name}")
            bare.mount("tmpfs", f"{volumes}/{name}", "tmpfs", data="size=1048576")


def _ours(base: str, count: int = MOUNTED_PODS) -> float:
    with VolumeManager(f"{base}/root", adopt=True) as manager:
        mount_all(manager, in_api(range(1, 3)))
        told = in_api(range(10, 10 + count))
        gc.collect()
        begun = time.perf_counter()
        mount_all(manager, told)
        return time.perf_counter() - begun


def _ours_by_threads(base: str) -> float:
    """Every pod put into the API and mounted by a call of its own, as by many commands or callers."""
    with VolumeManager(f"{base}/root", adopt=True) as manager, ThreadPoolExecutor(WORKERS) as pool:
        manager.mount_pod(manifest(1))
        pods = [manifest(number) for number in range(10, 10 + MOUNTED_PODS)]
        begun = time.perf_counter()
        list(pool.map(manager.mount_pod, pods))
        return time.perf_counter() - begun


def _anchor(base: str, count: int = MOUNTED_PODS, *, tree: bool) -> float:
    gc.collect()
    begun = time.perf_counter()
    _make_bare(base, range(10, 10 + count), tree=tree)
    return time.perf_counter() - begun


@contextmanager
def _fresh(*, on_disk: bool) -> Iterator[str]:
    """A directory for one sample, without mounts again afterwards."""
    with tempfile.TemporaryDirectory() as disk, nullcontext(disk) if on_disk else tmpfs() as base:
        try:
            yield base
        finally:
            bare.unmount_below(base)


def _median(samples: list[Callable[[str], float]], rounds: int, *, on_disk: bool = False) -> list[float]:
    readings: list[list[float]] = [[] for _ in samples]
    for _ in range(rounds):
        for sample, values in zip(samples, readings, strict=True):
            with _fresh(on_disk=on_disk) as base:
                values.append(sample(base))
    return [statistics.median(values) for values in readings]


def mounting() -> list[Figure]:
    """500 pods of four volumes."""
    pods = f"{MOUNTED_PODS} pods of {VOLUMES} volumes, mount all"
    ours, tree, alone, by_threads = _median(
        [_ours, lambda base: _anchor(base, tree=True), lambda base: _anchor(base, tree=False), _ours_by_threads], ROUNDS
    )
    figures = [
        Figure(pods, ours, tree, "bare calls for the same tree", 4, 2),
        Figure("the same", ours, alone, "only mkdir and mount"),
        Figure(f"the same by {WORKERS} threads, API included", by_threads, tree, "bare calls for the same tree"),
    ]
    few = MOUNTED_PODS // 10
    ours, tree = _median(
        [lambda base: _ours(base, few), lambda base: _anchor(base, few, tree=True)], ROUNDS, on_disk=True
    )
    return [*figures, Figure(f"{few} of them, root and journal on disk", ours, tree, "bare calls for the same tree")]


# --- holding ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Source:
    medium: str
    size_limit: str


@dataclass(slots=True)
class _Volume:
    name: str
    empty_dir: _Source


@dataclass(slots=True)
class _Mount:
    name: str
    mount_path: str
    read_only: bool


@dataclass(slots=True)
class _Container:
    name: str
    image: str
    mounts: list[_Mount]


@dataclass(slots=True)
class _Pod:
    uid: str
    name: str
    namespace: str
    phase: str
    resource_version: str
    labels: dict[str, str]
    containers: list[_Container]
    volumes: list[_Volume]


@dataclass(slots=True)
class _Desired:
    volume: str
    pod: _Pod
    source: _Volume
    outer_names: tuple[str, ...]
    plugin: str
    attachable: bool
    device_mountable: bool
    size_limit: int
    fs_group: int | None
    requested_at: float


@dataclass(slots=True)
class _Actual:
    volume: str
    pod_uid: str
    pod_name: str
    namespace: str
    plugin: str
    inner_name: str
    state: str
    mode: str
    path: str
    is_mount: bool
    remount_required: bool
    attached: bool
    device_state: str
    device_path: str
    device_mount_path: str


_Records = tuple[dict[tuple[str, str], _Desired], dict[tuple[str, str], _Actual]]


def _records(numbers: range) -> _Records:
    desired: dict[tuple[str, str], _Desired] = {}
    actual: dict[tuple[str, str], _Actual] = {}
    for number in numbers:
        said = json.loads(json.dumps(manifest(number)))
        metadata, spec = said["metadata"], said["spec"]
        pod = _Pod(
            metadata["uid"],
            metadata["name"],
            metadata["namespace"],
            "Running",
            str(number),
            {},
            [
                _Container(each["name"], each["image"],
                           [_Mount(mount["name"], mount["mountPath"], False) for mount in each["volumeMounts"]])
                for each in spec["containers"]
            ],
            [
                _Volume(each["name"], _Source(each["emptyDir"]["medium"], each["emptyDir"]["sizeLimit"]))
                for each in spec["volumes"]
            ],
        )  # fmt: skip
        for volume in pod.volumes:
            name = f"{_PLUGIN}/{pod.uid}-{volume.name}"
            desired[name, pod.uid] = _Desired(
                name, pod, volume, (volume.name,), _PLUGIN, False, False, 1 << 20, None, time.monotonic()
            )
            path = f"/tmp/bench/root/pods/{pod.uid}/volumes/kubernetes.io~empty-dir/{volume.name}"
            actual[name, pod.uid] = _Actual(
                *(name, pod.uid, pod.name, pod.namespace, _PLUGIN, volume.name, "mounted", "Filesystem", path),
                *(True, False, True, "not-mounted", "", ""),
            )
    return desired, actual


def _compare(desired: dict[tuple[str, str], Any], actual: dict[tuple[str, str], Any]) -> int:
    """What a pass over everything does at the least."""
    missing = [key for key in desired if key not in actual]
    surplus = [key for key in actual if key not in desired]
    return len(missing) + len(surplus)


def _resident() -> int:
    with open("/proc/self/status") as file:
        return int(next(line.split()[1] for line in file if line.startswith("VmRSS"))) * 1024


def _hold_records() -> dict[str, float]:
    before = _resident()
    held = _records(range(10, 10 + HELD_PODS))
    gc.collect()
    grown = _resident() - before
    assert len(held[0]) == len(held[1]) == HELD_PODS * VOLUMES
    return {"bytes": grown}


def _hold_mounts(*, idle: bool) -> dict[str, float]:
    enter_private_mount_namespace()
    with tempfile.TemporaryDirectory() as base:
        bare.mount("bench", base, "tmpfs")
        manager = VolumeManager(f"{base}/root", adopt=True)
        manager.__enter__()
        mount_all(manager, in_api(range(1, 3)))
        gc.collect()
        before = _resident()
        for first in range(10, 10 + HELD_PODS, 50):
            mount_all(manager, in_api(range(first, min(first + 50, 10 + HELD_PODS))))
        manager.parts.services.journal.arranged_flush()
        gc.collect()
        found: dict[str, float] = {"bytes": _resident() - before}
        if idle:
            found |= _idle(manager)
        print(json.dumps(found), flush=True)
        os._exit(0)  # the mounts go with the namespace, faster than anybody could unmount them


def _idle(manager: VolumeManager) -> dict[str, float]:
    """A pass with nothing to do; and what the process uses of a processor, with its share of all that comes rarely."""
    reconciler, mounting, orphans = manager.parts.reconciler, manager.mounting, manager.orphan_care
    records = _records(range(10, 10 + HELD_PODS))
    reconciler.run()
    one_pass, comparison = interleaved(reconciler.run, lambda: _compare(*records))
    full, comparison_again = interleaved(reconciler.resync, lambda: _compare(*records), rounds=ROUNDS)
    gc.collect()
    begun = time.process_time()
    time.sleep(IDLE_SECONDS)
    used = (time.process_time() - begun) / IDLE_SECONDS
    for function, period in (
        (reconciler.resync, RESYNC_SECONDS),
        (mounting.sync, SYNC_SECONDS),
        (mounting.notice_what_is_gone, SYNC_SECONDS),
        (orphans.housekeep, HOUSEKEEPING_SECONDS),
    ):
        begun = time.process_time()
        function()
        used += (time.process_time() - begun) / period
    return {"pass": one_pass, "compare": comparison, "full": full, "compare_full": comparison_again, "idle": used}


def holding() -> list[Figure]:
    """10,000 mounted volumes while nothing happens."""
    ours = [_child("mounts", "idle")] + [_child("mounts") for _ in range(ROUNDS - 1)]
    anchor = [_child("records") for _ in range(ROUNDS)]
    first, count = ours[0], f"{HELD_PODS * VOLUMES:,} volumes"
    memory, records = (statistics.median(each["bytes"] / (1 << 20) for each in side) for side in (ours, anchor))
    return [
        Figure(f"idle pass, {count}", first["pass"], first["compare"], "two dicts of records compared", 3, 0.01),
        Figure("the look at everything, every ten minutes", first["full"], first["compare_full"], "the same"),
        Figure(f"idle, {count}, in % of a core", 100 * first["idle"], 100, "one core", 0.03, 0.003, unit=""),
        Figure(f"memory of {count}, in MiB", memory, records, "slotted records", 1.8, 1.2, unit=""),
    ]


def _child(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.scale", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=Path(__file__).parents[1]
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def figures() -> list[Figure]:
    """Holding and mounting."""
    return list(itertools.chain(holding(), mounting()))


if __name__ == "__main__":
    print(json.dumps(_hold_records() if sys.argv[1] == "records" else _hold_mounts(idle="idle" in sys.argv)))
