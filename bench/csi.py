"""The CSI plugin against the four calls by bare grpcio, with a driver that only makes a directory and a bind mount.

A node cycle is stage, publish, unpublish and unstage of one volume. Ours writes and syncs its records besides, looks up
the CSIDriver object and makes and removes the pod's directories. The root directory is on tmpfs.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from bench import bare
from bench.measuring import Figure, interleaved
from volumehost import DeviceMounterArgs, MounterArgs, Spec
from volumehost.api.objects import (
    CSIDriver,
    CSIDriverSpec,
    CSIPersistentVolumeSource,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeSpec,
    Pod,
)
from volumehost.api.store import EmbeddedStore
from volumehost.hosts.standalone_host import StandaloneHost
from volumehost.mount.mounter import LinuxMounter
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit.endpoints import dial
from volumehost_csi_kit.fake import FakeDriverProcess

DRIVER = "null.csi.example.com"
WORKERS = 32
ROUNDS = 9
CYCLES_PER_WORKER = 4
#: What one cycle of the Go plugin takes, capabilities asked for each time.
CALLS_OF_GO, CONNECTIONS_OF_GO = 11, 11


class PluginCycle:
    """The plugin on a host of its own, with the driver registered by command."""

    def __init__(self, base: str, endpoint: str) -> None:
        root = f"{base}/root"
        os.mkdir(root)
        self._api = EmbeddedStore(f"{root}/store.sqlite3")
        spec = CSIDriverSpec(attach_required=False, volume_lifecycle_modes=["Persistent"])
        self._api.create(CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=spec))
        self._plugin = CSIPlugin()
        self._plugin.init(StandaloneHost(root, node_name="bench", api=self._api))
        self._plugin.get_storage_drivers().register(DRIVER, endpoint)
        self._uses = [(self._spec(number), self._pod(number)) for number in range(WORKERS)]

    def close(self) -> None:
        self._plugin.shutdown()
        self._api.close()

    def __call__(self, worker: int = 0) -> None:
        """One cycle, every object made anew, as a host does."""
        plugin, (spec, pod) = self._plugin, self._uses[worker]
        device = plugin.new_device_mounter()
        path = device.get_device_mount_path(spec)
        device.mount_device(spec, "", path, DeviceMounterArgs())
        plugin.new_mounter(spec, pod).set_up(MounterArgs())
        plugin.new_unmounter(spec.name(), pod.metadata.uid).tear_down()
        plugin.new_device_unmounter().unmount_device(path)

    @staticmethod
    def _spec(number: int) -> Spec:
        source = CSIPersistentVolumeSource(driver=DRIVER, volume_handle=f"volume-{number}")
        volume = PersistentVolume(
            metadata=ObjectMeta(name=f"pv-{number}"),
            spec=PersistentVolumeSpec(csi=source, access_modes=["ReadWriteOnce"]),
        )
        return Spec.from_persistent_volume(volume, read_only=False)

    @staticmethod
    def _pod(number: int) -> Pod:
        return Pod(metadata=ObjectMeta(name=f"pod-{number}", namespace="default", uid=f"uid-{number}"))


class BareCycle:
    """The four calls on one channel, and nothing else."""

    def __init__(self, base: str, endpoint: str) -> None:
        self._base = f"{base}/bare"
        for number in range(WORKERS):
            os.makedirs(f"{self._base}/{number}")
        self._channel = dial(endpoint)
        self._node = stubs.NodeStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def __call__(self, worker: int = 0) -> None:
        """One cycle, every request made anew."""
        staging, target = f"{self._base}/{worker}", f"{self._base}/target-{worker}"
        mode: Any = csi.VolumeCapability.AccessMode
        capability = csi.VolumeCapability(
            access_mode=mode(mode=mode.SINGLE_NODE_WRITER), mount=csi.VolumeCapability.MountVolume()
        )
        volume = f"volume-{worker}"
        self._node.NodeStageVolume(
            csi.NodeStageVolumeRequest(volume_id=volume, staging_target_path=staging, volume_capability=capability),
            timeout=120,
        )
        self._node.NodePublishVolume(
            csi.NodePublishVolumeRequest(
                volume_id=volume, staging_target_path=staging, target_path=target, volume_capability=capability
            ),
            timeout=120,
        )
        self._node.NodeUnpublishVolume(
            csi.NodeUnpublishVolumeRequest(volume_id=volume, target_path=target), timeout=120
        )
        self._node.NodeUnstageVolume(
            csi.NodeUnstageVolumeRequest(volume_id=volume, staging_target_path=staging), timeout=120
        )


@contextmanager
def tmpfs() -> Iterator[str]:
    """A directory in memory."""
    with tempfile.TemporaryDirectory() as directory:
        bare.mount("bench", directory, "tmpfs")
        try:
            yield directory
        finally:
            # Waits for who only looks in, and else tells who keeps it busy.
            LinuxMounter().unmount(directory)


def crowd(pool: ThreadPoolExecutor, cycle: Callable[[int], None]) -> float:
    """Seconds per volume, all workers at once."""

    def work(worker: int) -> None:
        for _ in range(CYCLES_PER_WORKER):
            cycle(worker)

    start = time.perf_counter()
    for _ in pool.map(work, range(WORKERS)):
        pass
    return (time.perf_counter() - start) / (WORKERS * CYCLES_PER_WORKER)


def _times(base: str) -> Iterator[Figure]:
    endpoint = f"unix://{base}/csi.sock"
    with FakeDriverProcess(endpoint, f"{base}/driver", null=True, name=DRIVER), ExitStack() as stack:
        ours, anchor = PluginCycle(base, endpoint), BareCycle(base, endpoint)
        stack.callback(ours.close)
        stack.callback(anchor.close)
        for _ in range(20):
            ours()
            anchor()
        ours_alone, anchor_alone = interleaved(ours, anchor, rounds=15, batch_seconds=0.1)
        yield Figure("node cycle through the plugin, 1 worker", ours_alone, anchor_alone, "bare grpcio", 1.7, 1.4)
        pool = stack.enter_context(ThreadPoolExecutor(WORKERS))
        crowds = [(crowd(pool, ours), crowd(pool, anchor)) for _ in range(ROUNDS + 1)][1:]
        ours_many, anchor_many = (statistics.median(column) for column in zip(*crowds, strict=True))
        yield Figure(f"the same, {WORKERS} workers", ours_many, anchor_many, f"{WORKERS} threads of bare grpcio")


def _counts(base: str) -> Iterator[Figure]:
    endpoint = f"unix://{base}/counted.sock"
    with FakeDriverProcess(endpoint, f"{base}/counted", name=DRIVER) as driver:
        ours = PluginCycle(f"{base}/counted", endpoint)
        try:
            ours()
            calls, connections = len(driver.calls()), driver.connections()
            ours()
            made, opened = len(driver.calls()) - calls, driver.connections() - connections
        finally:
            ours.close()
    yield Figure("calls in a cycle, capabilities known", made, CALLS_OF_GO, "Go plugin", 4 / 11, unit="")
    yield Figure("new connections in a cycle", opened, CONNECTIONS_OF_GO, "Go plugin", 0, unit="")


def figures() -> list[Figure]:
    """One worker and many, then what the driver counted."""
    with tmpfs() as base:
        return [*_times(base), *_counts(base)]
