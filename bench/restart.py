"""What a restart costs: 1,000 CSI volumes that a former manager mounted, found by the directories or by the journal.

Ours is what stands between an open root directory and an actual state that has every volume with its spec, its unique
name, its device and whether it is mounted. The anchor reads what ours reads in plain Python: it lists the same
directories, loads the same records as JSON, and parses the mount table once, field by field; it keeps all of it.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from bench import bare
from bench.csi import DRIVER, tmpfs
from bench.csi_node import ManagerCycle
from bench.measuring import Figure
from volumehost.hosts.standalone_host import StandaloneHost
from volumehost.loader.events import NoProber
from volumehost.loader.manager import VolumePluginManager
from volumehost.node.execution.timers import Timers
from volumehost.node.journal.journal import Journal, read_boot_id
from volumehost.node.local_control import LocalControl
from volumehost.node.operations.common import Services
from volumehost.node.reconciler import DirtyKeys
from volumehost.node.restart.reconstruct import reconstruct
from volumehost.node.state.actual import ActualState
from volumehost.node.state.desired import DesiredState
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.fake import FakeDriverProcess

PODS, VOLUMES = 250, 4
ROUNDS = 11


class Start:
    """The parts of a manager that has just started and has found nothing yet."""

    def __init__(self, root: str, journal: str) -> None:
        plugins = VolumePluginManager()
        host = StandaloneHost(root, node_name="bench", api=None, plugin_manager=plugins)
        errors = plugins.init_plugins([CSIPlugin()], NoProber(), host)
        assert not errors, errors
        dirty = DirtyKeys()
        self.services = Services(
            plugins=plugins,
            host=host,
            desired=DesiredState(dirty.mark),
            actual=ActualState(dirty.mark),
            journal=Journal(journal, boot_id=read_boot_id()),
            timers=Timers(time.monotonic),
            clock=time.monotonic,
            wall_clock=time.time,
            control=LocalControl(host, plugins, enabled=True),
        )

    def seconds(self) -> float:
        """What finding it takes."""
        begun = time.perf_counter()
        found = reconstruct(self.services, self.services.journal.open())
        taken = time.perf_counter() - begun
        assert found.from_journal + found.from_directories == PODS * VOLUMES
        assert not found.not_rebuilt
        self.services.journal.close()
        return taken


def _plain(root: str) -> float:
    begun = time.perf_counter()
    found: dict[tuple[str, str], Any] = {}
    for uid in os.listdir(f"{root}/pods"):
        for kind in ("volumes", "volumeDevices"):
            try:
                plugins = os.listdir(f"{root}/pods/{uid}/{kind}")
            except FileNotFoundError:
                continue
            for plugin in plugins:
                base = f"{root}/pods/{uid}/{kind}/{plugin}"
                for name in os.listdir(base):
                    with open(f"{base}/{name}/vol_data.json", "rb") as file:
                        found[uid, name] = json.loads(file.read())
    staged = {
        driver: os.listdir(f"{root}/plugins/kubernetes.io/csi/{driver}")
        for driver in os.listdir(f"{root}/plugins/kubernetes.io/csi")
    }
    table = {}
    with open("/proc/self/mountinfo") as file:
        for line in file:
            fields = line.rstrip("\n").split(" ")
            end = fields.index("-", 6)
            table[fields[4]] = (
                *(int(fields[0]), int(fields[1]), fields[2], fields[3], fields[5].split(",")),
                *(fields[6:end], fields[end + 1], fields[end + 2], fields[end + 3].split(",")),
            )
    mounted = [key for key in found if f"{root}/pods/{key[0]}/volumes/kubernetes.io~csi/{key[1]}/mount" in table]
    taken = time.perf_counter() - begun
    assert len(found) == len(mounted) == sum(map(len, staged.values())) == PODS * VOLUMES
    return taken


def _samplers(base: str, root: str, killed: str) -> list[Callable[[], float]]:
    """By directories, the anchor, by the journal of a manager that ended, by that of one that was killed."""
    copies = iter(range(10_000))

    def by_directories() -> float:
        return Start(root, f"{base}/none-{next(copies)}").seconds()

    def by_journal(journal: str) -> Callable[[], float]:
        def sample() -> float:
            shutil.copy(journal, copy := f"{base}/copy-{next(copies)}")
            return Start(root, copy).seconds()

        return sample

    return [by_directories, lambda: _plain(root), by_journal(f"{root}/volumes.journal"), by_journal(killed)]


def figures() -> list[Figure]:
    """Both witnesses, taking turns."""
    with tmpfs() as base, ExitStack() as stack:
        endpoint = f"unix://{base}/csi.sock"
        driver = stack.enter_context(FakeDriverProcess(endpoint, f"{base}/driver", null=True, name=DRIVER))
        manager = ManagerCycle(base, endpoint, PODS, volumes=VOLUMES)
        manager.mount_all()
        manager.tidy_journal()  # as by itself a tenth of a second later
        killed = f"{base}/killed.journal"
        shutil.copy(f"{manager.root}/volumes.journal", killed)
        manager.close()
        readings: list[list[float]] = []
        for _ in range(ROUNDS + 1):
            gc.collect()
            readings.append([sample() for sample in _samplers(base, manager.root, killed)])
        directories, plain, journal, after_kill = (
            statistics.median(column) for column in zip(*readings[1:], strict=True)
        )
        del driver
        bare.unmount_below(f"{manager.root}/pods")
    count = f"{PODS * VOLUMES:,} CSI volumes"
    return [
        Figure(f"{count} from directories, mounts verified", directories, plain, "same files, plain Python", 2.0, 1.2),
        Figure("the same with the journal, nothing changed", journal, directories, "from directories", 0.3, 0.1),
        Figure("the same, the manager was killed", after_kill, directories, "from directories", 0.3, 0.1),
    ]
