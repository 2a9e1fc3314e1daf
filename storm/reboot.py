"""The machine reboots: everything is unmounted, loop devices are gone, the boot id is another one, and pods come back.

Nobody may write on a bare directory meanwhile: writers ask status which volumes are mounted, and before each write look
in the kernel's table whether the path is a mount, and whether what they wrote before is there (BR-58).
"""

from __future__ import annotations

import os
import threading
import time
import traceback
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from storm.crew import Options, keep_evidence, side_by_side
from storm.invariants import BrokenPromiseError, problems, rest
from storm.place import until
from storm.report import Findings, percentile
from storm.wishes import CLAIMED, KINDS, Pod, Volume
from storm.world import World
from volumehost.errors import VolumeHostError
from volumehost.mount import syscalls

_BOOT_ID = "/proc/sys/kernel/random/boot_id"

#: How a machine can come back. Each is played with the agent at rest and in the middle of its work.
REBOOT, BEHIND_ITS_BACK, WITHOUT_JOURNAL = "reboot", "unmounted, same boot", "reboot, journal lost"
KINDS_OF_REBOOT = (REBOOT, BEHIND_ITS_BACK, WITHOUT_JOURNAL)


@dataclass
class RebootCounts:
    """What one world's storm did."""

    reboots: dict[str, int] = field(default_factory=dict)
    volumes: int = 0
    writes: int = 0
    looks: int = 0
    seconds: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    evidence: str = ""


class Writers:
    """Containers that write whenever status says that their volume is mounted. Runs on a thread of its own."""

    def __init__(self, world: World, counts: RebootCounts, marked: set[str]) -> None:
        """:param marked: storage that carries a mark since an earlier boot."""
        self._world = world
        self._counts = counts
        self._marked = marked
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writers", daemon=True)
        self.broken: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.02) and not self.broken:
            self.broken += self._look()

    def _look(self) -> list[str]:
        """For each volume that is told to be mounted: a mount, with the mark that was left on it. Then write."""
        try:
            told = {status.name: status for status in self._world.status()}
        except VolumeHostError:
            return []  # the agent is not there yet
        mounts = {mount.path for mount in self._world.place.mounts()}
        found: list[str] = []
        for pod, volume, path, is_mount in self._volumes():
            status = told.get(pod.stored_name)
            states = {each.volume: each for each in status.volumes} if status is not None else {}
            if volume.name not in states or not states[volume.name].ready:
                continue
            self._counts.looks += 1
            if is_mount and path not in mounts:
                found.append(f"{pod.name}/{volume.name} is told to be mounted, and {path} is a bare directory")
            elif not volume.is_block and volume.kind != "memory":
                self._write(pod, volume, path, found)
        return found

    def _write(self, pod: Pod, volume: Volume, path: str, found: list[str]) -> None:
        mark, key = f"{path}/mark", self._world.storage(pod, volume)
        if key in self._marked and not os.path.exists(mark):
            found.append(f"{pod.name}/{volume.name}: what was written before is not in {path}")
            return
        with open(mark, "a", encoding="ascii") as file:
            file.write("written\n")
        self._marked.add(key)
        self._counts.writes += 1

    def _volumes(self) -> Iterator[tuple[Pod, Volume, str, bool]]:
        wanted = self._world.expected()
        for pod in self._world.pods.values():
            for volume in pod.volumes:
                path = wanted.paths.get((pod.name, volume.name))
                if path is not None:
                    yield pod, volume, path, path in wanted.mounts


class RebootStorm:
    """Reboots one world again and again. Its process has a mount namespace of its own, where the boot id is its own."""

    def __init__(self, world: World, counts: RebootCounts) -> None:
        self._world = world
        self._counts = counts
        self._marked: set[str] = set()
        self._boot_file = f"{world.place.base}/boot_id"
        self._boots()

    def run(self, rounds: int) -> None:
        """Each kind of reboot, in turn, from rest or from the middle of the work.

        :raises BrokenPromiseError: a promise was broken.
        """
        world = self._world
        for number in range(3):
            volumes = [Volume(kind, kind, f"c{number}-{kind}" if kind in CLAIMED else "") for kind in KINDS]
            world.want(Pod(f"pod{number}", tuple(volumes), static=number == 1, fs_group=2000 if number else None))
        rest(world)
        self._mark()
        for number in range(rounds):
            kind = KINDS_OF_REBOOT[number % len(KINDS_OF_REBOOT)]
            if number >= len(KINDS_OF_REBOOT):
                self._get_to_work(number)
            self._reboot(kind)
            self._counts.reboots[kind] = self._counts.reboots.get(kind, 0) + 1

    def _mark(self) -> None:
        """Every volume carries something that the mount of nothing does not."""
        world = self._world
        paths = world.expected().paths
        for pod in world.pods.values():
            for volume in pod.volumes:
                if not volume.is_block:
                    with open(f"{paths[pod.name, volume.name]}/mark", "a", encoding="ascii") as file:
                        file.write("first\n")
                    self._marked.add(world.storage(pod, volume))
        world.write(list(world.pods.values()))

    def _get_to_work(self, number: int) -> None:
        """Pods come and go just when the machine goes down."""
        world = self._world
        extra = f"extra{number}"
        world.want(Pod(extra, (Volume("a", "loop", f"{extra}-a"), Volume("b", "fake", f"{extra}-b"))))
        if number % 2:
            rest(world)
            world.end(extra)
        time.sleep(world.random.uniform(0.0, 0.3))  # any moment will do

    def _reboot(self, kind: str) -> None:
        world = self._world
        world.tell(kind)
        world.kill_agent()
        for which in ("keeper", "driver"):
            world.kill_driver(which)
        world.fake.kill()
        world.place.unmount_all()
        world.place.detach_loop_devices()
        for pod in world.pods.values():
            for volume in pod.volumes:
                if volume.kind == "memory":  # memory does not outlive a reboot
                    world.ledger.forget(world.storage(pod, volume))
        world.prepared.clear()
        if kind != BEHIND_ITS_BACK:
            self._boots()
        if kind == WITHOUT_JOURNAL:
            os.unlink(f"{world.place.root}/volumes.journal")
        began = time.monotonic()
        with Writers(world, self._counts, self._marked) as writers:
            world.start_agent()
            world.agent.wait_ready()
            time.sleep(world.random.uniform(0.0, 0.5))  # some drivers are late
            world.fake.start()
            until(lambda: writers.broken or not problems(world), "all is as wanted", 60)
        self._counts.seconds.append(time.monotonic() - began)
        self._counts.volumes += len(world.expected().paths)
        pods = list(world.pods.values())
        broken = writers.broken or [*problems(world), *world.data_problems(pods)]
        if broken:
            raise BrokenPromiseError(*(f"after {kind}: {each}" for each in broken))
        world.write(pods)

    def _boots(self) -> None:
        """Another boot id from now on, for all that look in this mount namespace."""
        first = not os.path.exists(self._boot_file)
        with open(self._boot_file, "w", encoding="ascii") as file:
            file.write(f"{uuid.uuid4()}\n")
        if first:
            syscalls.mount(self._boot_file, _BOOT_ID, "", syscalls.MS_BIND, "")


def rage(seed: int, rounds: int, evidence: str) -> RebootCounts:
    """One world's storm."""
    counts = RebootCounts()
    syscalls.unshare(syscalls.CLONE_NEWNS)  # other worlds have their own boot id
    with World(seed) as world:
        try:
            RebootStorm(world, counts).run(rounds)
        except BrokenPromiseError as error:
            counts.broken += error.args
        except Exception:  # noqa: BLE001 - a storm that cannot go on is told as a broken promise
            counts.broken += [traceback.format_exc(), *problems(world)]
        if counts.broken:
            counts.evidence = keep_evidence(f"{evidence}/reboot-{seed}", world.place.base, world.story, counts.broken)
    return counts


def run(options: Options) -> Findings:
    """Two worlds."""
    began = time.monotonic()
    rounds = options.rounds or 12
    jobs = [(options.seed + number, rounds // 2 or 1, options.evidence) for number in range(2)]
    findings = Findings("Reboots", options.seed)
    found = side_by_side(rage, jobs, options.workers)
    for counts in found:
        findings.broken += counts.broken
        findings.evidence += [counts.evidence] if counts.evidence else []
    for kind in KINDS_OF_REBOOT:
        findings.figure(kind, sum(counts.reboots.get(kind, 0) for counts in found))
    seconds = [each for counts in found for each in counts.seconds]
    findings.figure("volumes that came back", sum(counts.volumes for counts in found))
    findings.figure("looks at volumes told to be mounted, none a bare directory", sum(c.looks for c in found))
    findings.figure("writes that were there each time", sum(counts.writes for counts in found))
    findings.figure(
        "until all was as wanted: median, worst",
        f"{percentile(seconds, 0.5):.1f} s, {max(seconds, default=0.0):.1f} s",
    )
    findings.figure("seconds", f"{time.monotonic() - began:.0f}")
    return findings
