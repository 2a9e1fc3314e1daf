"""One driver that hangs, among ten: what that costs the volumes of the other nine.

Ten CSI drivers in processes of their own, each with pods of one claim. A round mounts the pods of nine a few times with
all drivers well, and a few times with the tenth stopped (SIGSTOP) while mounts of a hundred of its volumes are on their
way; which comes first alternates.
"""

from __future__ import annotations

import os
import signal
import statistics
import time
from contextlib import ExitStack
from typing import Any

from bench.csi import tmpfs
from bench.csi_node import bound_claim, pod_of
from bench.measuring import Figure
from volumehost import VolumeManager
from volumehost.api.objects import CSIDriver, CSIDriverSpec, ObjectMeta
from volumehost.loader.events import NoProber
from volumehost.node.populating.pod_objects import apply_pod
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.fake import FakeDriverProcess

DRIVERS = 10
PODS_EACH = 4
HUNG_PODS = 100
ROUNDS = 5
MOUNTS = 5
#: More operations hang than this when the time is taken.
HANGING = 15
_SECONDS = 120.0


class Node:
    """A manager with ten drivers, the last of which can be stopped."""

    def __init__(self, base: str, stack: ExitStack) -> None:
        self._manager = VolumeManager(
            f"{base}/root", plugins=[CSIPlugin()], prober=NoProber(), node_name="bench", controllers=False
        )
        stack.enter_context(self._manager)
        api = self._manager.api
        api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bench"}})
        names = [f"driver-{number}.csi.example.com" for number in range(DRIVERS)]
        self._well: list[Any] = []
        self._hung: list[Any] = []
        self._processes: list[FakeDriverProcess] = []
        for number, name in enumerate(names):
            endpoint = f"unix://{base}/{number}.sock"
            driver = stack.enter_context(FakeDriverProcess(endpoint, f"{base}/driver-{number}", null=True, name=name))
            self._processes.append(driver)
            self._manager.drivers.register(name, endpoint)
            spec = CSIDriverSpec(attach_required=False, volume_lifecycle_modes=["Persistent"])
            api.create(CSIDriver(metadata=ObjectMeta(name=name), spec=spec))
            pods, count = (self._hung, HUNG_PODS) if number == DRIVERS - 1 else (self._well, PODS_EACH)
            for each in range(count):
                claim = f"claim-{number}-{each}"
                bound_claim(api, claim, claim, name)
                pods.append(pod_of(f"pod-{number}-{each}", [claim]))

    def mount_nine(self) -> float:
        """Seconds until the volumes of nine drivers are mounted, the median of some times."""
        return statistics.median(self._mount_nine() for _ in range(MOUNTS))

    def _mount_nine(self) -> float:
        begun = [apply_pod(self._manager.api, pod) for pod in self._well]
        start = time.perf_counter()
        for pod in begun:
            self._manager.sync_pod(pod)
        for pod in begun:
            self._manager.wait_for_pod(pod, timeout=_SECONDS)
        seconds = time.perf_counter() - start
        for pod in begun:
            self._manager.unmount_pod(pod.metadata.name, timeout=_SECONDS)
        return seconds

    def mount_nine_beside_one_that_hangs(self) -> float:
        """The same, while the tenth driver does not answer and its volumes are wanted."""
        pid = self._processes[-1].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            for pod in self._hung:
                self._manager.sync_pod(apply_pod(self._manager.api, pod))
            until = time.monotonic() + _SECONDS
            while self._at_work() < HANGING:
                assert time.monotonic() < until, "the operations do not begin"
                time.sleep(0.01)
            return self.mount_nine()
        finally:
            os.kill(pid, signal.SIGCONT)
            for pod in self._hung:
                self._manager.unmount_pod(pod["metadata"]["name"], timeout=_SECONDS)

    def _at_work(self) -> int:
        return sum(entry.thread is not None for entry in self._manager.parts.pending.running())


def figures() -> list[Figure]:
    """Time to mount the volumes of nine drivers."""
    with tmpfs() as base, ExitStack() as stack:
        node = Node(base, stack)
        node.mount_nine()  # warm
        beside: list[float] = []
        alone: list[float] = []
        for number in range(ROUNDS):
            if number % 2:
                alone.append(node.mount_nine())
            beside.append(node.mount_nine_beside_one_that_hangs())
            if not number % 2:
                alone.append(node.mount_nine())
        ours, anchor = statistics.median(beside), statistics.median(alone)
    name = f"mounting {PODS_EACH * (DRIVERS - 1)} volumes of nine drivers, the tenth hangs with {HUNG_PODS}"
    return [Figure(name, ours, anchor, "the same, the tenth is well", 1.1, 1.0)]
