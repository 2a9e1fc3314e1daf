"""The disk is full: at the first write of a pod's life, at the second, and so on, in pages and in inodes.

No library stands between the program and the kernel: the filesystem is a tmpfs with exactly ``n`` pages, or ``n``
inodes, left. Every write that needs one more fails, whoever makes it: the manager, its journal, the store, the plugins,
the drivers.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from storm.crew import Options
from storm.place import Place
from storm.report import Findings
from storm.wishes import FAKE, Pod, Volume, claim, driver_objects
from volumehost import VolumeManager
from volumehost.errors import VolumeHostError
from volumehost.hosts.reserve import hold_reserve, spend_reserve
from volumehost_csi_kit.fake import FakeDriverProcess

#: Words by which an error tells that there is no space.
_WORDS = ("full", os.strerror(errno.ENOSPC), "no space", "RESOURCE_EXHAUSTED")
#: So often in a row must it go well before there is enough for everything.
_ENOUGH = 3
_MOST = 120

VOLUMES = (
    Volume("scratch", "scratch"),
    Volume("memory", "memory"),
    Volume("host", "host"),
    Volume("created", "created"),
    Volume("fake", "fake", "fake"),
    Volume("fake-block", "fake-block", "fake-block"),
    Volume("loop", "loop", "loop"),
)


class FullDisk:
    """One root directory that fills up again and again."""

    def __init__(self, findings: Findings, place: Place, driver: FakeDriverProcess) -> None:
        self._findings = findings
        self._place = place
        self._driver = driver
        self._pod = Pod("full", VOLUMES, fs_group=2000)
        self._told: Counter[str] = Counter()
        self.refused = 0
        self.mounted = 0

    def prepare(self) -> None:
        """Drivers, classes and claims, with all the space in the world; the pod was mounted once."""
        os.mkdir(f"{self._place.host_data}/shared")
        self._place.configure(rpc_timeout=5, create_timeout=5, attach_timeout=3, start_timeout=5)
        with self._manager() as manager:
            manager.drivers.register(FAKE, self._driver.endpoint)
            for each in (*driver_objects(), *(claim(v.name, v.kind) for v in VOLUMES if v.claim)):
                manager.api.create(each)
            manager.mount_pod(self._manifest(), timeout=60)
            manager.unmount_pod(self._pod.name, timeout=60)
        hold_reserve(self._place.root)

    def mounting(self, what: str, limits: Sequence[dict[str, int]]) -> int:
        """Mount with ever more space, until it goes well; each time take all away on a full disk. Returns the tries."""
        well = 0
        for number, limit in enumerate(limits):
            problem = self._life(limit)
            if problem:
                self._findings.broken.append(f"mounting with {what} {number} left: {problem}")
                self._place.limit()
                return number + 1
            well = well + 1 if self._went_well else 0
            if well == _ENOUGH:
                return number + 1
        return len(limits)

    def _life(self, limit: dict[str, int]) -> str:
        self._place.limit(**limit)
        self._went_well = False
        error = self._attempt(self._mount)
        if error is None:
            self._went_well = True
            self.mounted += 1
        else:
            self.refused += 1
            self._told[type(error).__name__] += 1
            if not any(word in str(error) for word in _WORDS):
                return f"it does not tell why: {error}"
        self._place.limit(pages=0, inodes=0)
        spend_reserve(self._place.root)
        error = self._attempt(self._unmount)
        if error is not None:
            return f"nothing can be taken away on a full disk: {error}"
        left = [mount.path for mount in self._place.mounts()] + os.listdir(f"{self._place.root}/pods")
        self._place.limit()
        hold_reserve(self._place.root)
        return f"this is left: {left}" if left else ""

    def _mount(self, manager: VolumeManager) -> None:
        manager.mount_pod(self._manifest(), timeout=30, attempts=1)

    def _unmount(self, manager: VolumeManager) -> None:
        if any(status.name == self._pod.name for status in manager.status()):
            manager.unmount_pod(self._pod.name, timeout=30)

    def recovers(self) -> None:
        """With space again everything is as ever, and nothing is left of all that."""
        error = self._attempt(lambda manager: manager.mount_pod(self._manifest(), timeout=60))
        if error is not None:
            self._findings.broken.append(f"with space again it cannot be mounted: {error}")
        error = self._attempt(self._unmount)
        if error is not None:
            self._findings.broken.append(f"with space again it cannot be unmounted: {error}")

    def _attempt(self, action: Callable[[VolumeManager], Any]) -> BaseException | None:
        """Do it with a manager of its own, as a command would; the error, if it is one that tells."""
        try:
            with self._manager() as manager:
                action(manager)
        except VolumeHostError as error:
            return error
        return None

    def _manager(self) -> VolumeManager:
        return VolumeManager(self._place.root, node_name="here")

    def _manifest(self) -> dict[str, Any]:
        return self._pod.manifest(self._place.host_data)

    @property
    def told(self) -> str:
        """The kinds of errors and how often each came."""
        return ", ".join(f"{name} {count}" for name, count in self._told.most_common())


def run(options: Options) -> Findings:
    """Both: pages and inodes."""
    findings = Findings("Disk full at every write", options.seed)
    most = options.rounds or _MOST
    began = time.monotonic()
    with Place() as place:
        driver = FakeDriverProcess(f"unix://{place.sockets}/f.sock", f"{place.base}/fake", name=FAKE, mounts="bind",
                                   block="loop")  # fmt: skip
        with driver:
            storm = FullDisk(findings, place, driver)
            storm.prepare()
            for what, name in (("pages", "pages"), ("inodes", "inodes")):
                tries = storm.mounting(what, [{name: number} for number in range(most)])
                findings.figure(f"pod mounted with 0, 1, 2 ... {what} left until it always goes well", tries)
            storm.recovers()
            findings.figure("refused, with a reason", f"{storm.refused} ({storm.told})")
            findings.figure("mounted all the same", storm.mounted)
            findings.figure("taken away on a full disk", storm.refused + storm.mounted)
    findings.figure("seconds", f"{time.monotonic() - began:.0f}")
    return findings
