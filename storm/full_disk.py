"""The disk is full: at the first write of a pod's life, at the second, and so on, in pages and in inodes.

No library stands between the program and the kernel: the filesystem is a tmpfs with exactly ``n`` pages, or ``n``
inodes, left. Every write that needs one more fails, whoever makes it: the manager, its journal, the store, the plugins,
the drivers. Whatever came of it, all is then taken away on a disk with nothing left at all.
"""

from __future__ import annotations

import errno
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from storm.crew import Options, keep_evidence, side_by_side
from storm.invariants import rest
from storm.place import Place, until
from storm.report import Findings
from storm.wishes import FAKE, Pod, Volume, claim, driver_objects
from storm.world import World, run_command
from volumehost import VolumeManager
from volumehost.errors import VolumeHostError
from volumehost.hosts.reserve import hold_reserve, spend_reserve
from volumehost_csi_kit.fake import FakeDriverProcess

#: Words by which an error tells that there is no space.
_WORDS = ("full", os.strerror(errno.ENOSPC), "no space", "RESOURCE_EXHAUSTED")
#: So often in a row must it go well before there is enough for everything.
_ENOUGH = 3
_MOST = 150
#: Seconds of the CSI plugin's deadlines: what waits for somebody who has no space waits in vain.
_TIMES = {"rpc_timeout": 3.0, "create_timeout": 3.0, "attach_timeout": 2.0, "start_timeout": 5.0}

VOLUMES = (
    Volume("scratch", "scratch"),
    Volume("memory", "memory"),
    Volume("host", "host"),
    Volume("created", "created"),
    Volume("fake", "fake", "fake"),
    Volume("fake-block", "fake-block", "fake-block"),
    Volume("loop", "loop", "loop"),
)


@dataclass
class DiskCounts:
    """What came of it. ``told`` counts the kinds of refusals."""

    what: str
    tries: int = 0
    mounted: int = 0
    enough: bool = False
    told: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)


class FullDisk:
    """One root directory that fills up again and again, used by managers that come and go, as with commands."""

    def __init__(self, place: Place, driver: FakeDriverProcess, counts: DiskCounts) -> None:
        self._place = place
        self._driver = driver
        self._counts = counts
        self._pod = Pod("full", VOLUMES, fs_group=2000)

    def run(self, most: int) -> None:
        """Mount with ever more space, until it goes well; each time take all away on a full disk."""
        self._prepare()
        well = 0
        while well < _ENOUGH and self._counts.tries < most:
            limit = {self._counts.what: self._counts.tries}
            before = self._counts.mounted
            problem = self._life(limit)
            self._counts.tries += 1
            if problem:
                self._counts.broken.append(f"with {limit} left: {problem}")
                return
            well = well + 1 if self._counts.mounted > before else 0
        self._counts.enough = well == _ENOUGH
        self._recover()

    def _prepare(self) -> None:
        """Drivers, classes and claims, with all the space in the world; the pod was mounted once."""
        os.mkdir(f"{self._place.host_data}/shared")
        self._place.configure(**_TIMES)
        with self._manager() as manager:
            manager.drivers.register(FAKE, self._driver.endpoint)
            for each in (*driver_objects(), *(claim(v.name, v.kind) for v in VOLUMES if v.claim)):
                manager.api.create(each)
            manager.mount_pod(self._manifest(), timeout=60)
            manager.unmount_pod(self._pod.name, timeout=60)
        hold_reserve(self._place.root)

    def _life(self, limit: dict[str, int]) -> str:
        """What was broken, "" for nothing."""
        self._place.limit(**limit)
        error = self._attempt(self._mount)
        if error is None:
            self._counts.mounted += 1
        else:
            self._counts.told[type(error).__name__] += 1
            if not any(word in str(error) for word in _WORDS):
                return f"it does not tell why: {error}"
        self._place.limit(pages=0, inodes=0)
        spend_reserve(self._place.root)  # as the command does
        error = self._attempt(self._unmount)
        if error is not None:
            return f"nothing can be taken away on a full disk: {error}"
        left = [mount.path for mount in self._place.mounts()] + os.listdir(f"{self._place.root}/pods")
        self._place.limit()
        hold_reserve(self._place.root)
        return f"this is left: {left}" if left else ""

    def _recover(self) -> None:
        """With space again everything is as ever, and nothing is left of all that."""
        self._place.limit()
        for action in (lambda manager: manager.mount_pod(self._manifest(), timeout=60), self._unmount):
            error = self._attempt(action)
            if error is not None:
                self._counts.broken.append(f"with space again: {error}")

    def _mount(self, manager: VolumeManager) -> None:
        manager.mount_pod(self._manifest(), timeout=20, attempts=1)

    def _unmount(self, manager: VolumeManager) -> None:
        if any(status.name == self._pod.name for status in manager.status()):
            manager.unmount_pod(self._pod.name, timeout=30)

    def _attempt(self, action: Callable[[VolumeManager], Any]) -> BaseException | None:
        """Do it with a manager of its own, as a command would; the error, if it is one that tells."""
        try:
            with self._manager() as manager:
                action(manager)
        except VolumeHostError as error:
            return error
        return None

    def _manager(self) -> VolumeManager:
        return VolumeManager(self._place.root, node_name="here", exit_grace=30)

    def _manifest(self) -> dict[str, Any]:
        return self._pod.manifest(self._place.host_data)


def rage(what: str, most: int, evidence: str) -> DiskCounts:
    """One of both: pages, inodes."""
    counts = DiskCounts(what)
    with Place() as place:
        driver = FakeDriverProcess(f"unix://{place.sockets}/f.sock", f"{place.base}/fake", name=FAKE, mounts="bind",
                                   block="loop")  # fmt: skip
        with driver:
            try:
                FullDisk(place, driver, counts).run(most)
            except Exception:  # noqa: BLE001 - a storm that cannot go on is told as a broken promise
                counts.broken.append(traceback.format_exc())
            if counts.broken:
                where = f"{evidence}/full-disk-{what}"
                counts.evidence.append(keep_evidence(where, place.base, [], counts.broken))
    return counts


# --- the agent ------------------------------------------------------------------------------------------------------


def rage_with_agent(seed: int, rounds: int, evidence: str) -> DiskCounts:
    """An agent is killed and starts again with 0, 1, 2 ... pages and inodes left; pods come and go all the same."""
    counts = DiskCounts("agent")
    with World(seed, times=_TIMES) as world:
        try:
            for number in range(rounds):
                _start_on_full_disk(world, number, counts)
                counts.tries += 1
        except Exception:  # noqa: BLE001 - a storm that cannot go on is told as a broken promise
            counts.broken.append(f"round {counts.tries}: {traceback.format_exc()}")
        if counts.broken:
            where = f"{evidence}/full-disk-agent"
            counts.evidence.append(keep_evidence(where, world.place.base, world.story, counts.broken))
    return counts


def _start_on_full_disk(world: World, number: int, counts: DiskCounts) -> None:
    world.want(
        Pod(f"pod{number}", tuple(Volume(v.name, v.kind, f"{v.claim}-{number}" * bool(v.claim)) for v in VOLUMES))
    )
    rest(world, 60)
    world.write(list(world.pods.values()))
    kept = world.place.mount_ids()
    until(lambda: os.path.isdir(f"{world.place.root}/reserve"), "space is held back")
    world.kill_agent()
    world.let_go_of_store()
    world.place.limit(pages=number, inodes=number)
    world.start_agent()
    world.agent.wait_ready()
    if world.place.mount_ids() != kept:
        raise AssertionError("a start on a full disk changed mounts")
    problem = world.data_problems(list(world.pods.values()))
    if problem:
        raise AssertionError(problem)
    run_command(world.place.root, "unmount", f"pod{number}", "--timeout", "60s")
    counts.mounted += 1
    del world.pods[f"pod{number}"]
    until(lambda: not world.place.mounts(), "all is unmounted on the full disk", 30)
    world.place.limit()
    for name in list(world.claims):
        world.forget_claim(name)
    rest(world, 60)
    world.kill_agent()
    world.start_agent()
    world.agent.wait_ready()


def run(options: Options) -> Findings:
    """Pages, inodes, and the agent."""
    findings = Findings("Disk full at every write", options.seed)
    began = time.monotonic()
    most = options.rounds or _MOST
    found = side_by_side(rage, [("pages", most, options.evidence), ("inodes", most, options.evidence)], options.workers)
    for counts in found:
        enough = "" if counts.enough else " (there was never enough)"
        findings.figure(
            f"a pod of {len(VOLUMES)} volumes, 0, 1, 2 ... {counts.what} left", f"{counts.tries} times{enough}"
        )
        findings.figure("  refused, with a reason", ", ".join(f"{n} {kind}" for kind, n in counts.told.most_common()))
        findings.figure("  mounted all the same", counts.mounted)
        findings.figure("  taken away with nothing left at all", counts.tries)
    (agent,) = side_by_side(rage_with_agent, [(options.seed, min(most, 8), options.evidence)], 1)
    findings.figure("an agent started on a full disk, and took a pod away there", agent.mounted)
    for counts in (*found, agent):
        findings.broken += counts.broken
        findings.evidence += counts.evidence
    findings.figure("seconds", f"{time.monotonic() - began:.0f}")
    return findings
