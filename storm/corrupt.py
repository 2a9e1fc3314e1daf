"""Every file that is read rots, in every way, while pods are mounted: the host starts, tells, and takes nothing away.

A lived-in root directory is made whole again after each case, so that each has only its own trouble. After the last one
of a world all pods end, and nothing of them may be left.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from storm.crew import Options, keep_evidence, side_by_side
from storm.invariants import problems, rest
from storm.kept import KeptMounts
from storm.place import until
from storm.report import Findings
from storm.rotting import ROTS, VICTIM, Snapshot, whole_again
from storm.wishes import CLAIMED, FAKE, KINDS, Pod, Volume
from storm.world import World, run_command
from volumehost.errors import StoreError

#: Users' data, logs, and what serves only while a process runs, are no records.
_NO_RECORDS = re.compile(r"/log(\.\d)?$|\.img$|/reserve|lock$|/volumes/kubernetes\.io~empty-dir/[^/]+/")
#: Seconds until an agent that starts has brought about what it can, and until it has at least told what it cannot.
_SETTLE, _PATIENCE = 8.0, 30.0
#: What says something else than that it has rotted: the manifest of a static pod that is gone ends the pod.
_WORDS = {("manifests/pod*.json", "gone")}
#: Where the host may refuse to start: it can neither write down what it does nor move what is in the way.
_MAY_REFUSE = {("r/volumes.journal", "cannot be changed"), ("r/volumes.journal", "cannot be read")}
#: Cases of one world.
_CASES = 6
#: So much is told of what waits for somebody.
_WIDTH = 240

#: Class of file, and way to rot.
Case = tuple[str, str]


@dataclass
class CorruptCounts:
    """What a storm did. ``cases`` counts by kind of rot, ``healed`` those after which all was as wanted at once."""

    cases: Counter[str] = field(default_factory=Counter)
    healed: Counter[str] = field(default_factory=Counter)
    files: set[str] = field(default_factory=set)
    not_healed: list[str] = field(default_factory=list)
    cleaned: int = 0
    skipped: int = 0
    broken: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)


class CorruptStorm:
    """One world whose files rot, one after the other."""

    def __init__(self, world: World, counts: CorruptCounts, evidence: str) -> None:
        self._world = world
        self._counts = counts
        self._evidence = evidence
        self._kept = KeptMounts()
        self._rotten = ""
        self._log_begins = 0
        self._victim = f"{world.place.base}/victim"
        self._settle_in()
        self._paths = dict(world.expected().paths)
        self._stop()
        roots = (world.place.root, world.place.manifests)
        self._snapshot = Snapshot(roots, lambda path: _NO_RECORDS.search(path) is not None)

    def cases(self) -> list[Case]:
        """All that there are."""
        return [(name, rot) for name in sorted(self._snapshot.files()) for rot in ROTS if (name, rot) not in _WORDS]

    def run(self, cases: Sequence[Case], deadline: float) -> None:
        """Play these, and take everything away with the last one."""
        for number, case in enumerate(cases):
            if time.monotonic() > deadline:
                self._counts.skipped += len(cases) - number
                return
            if not self._play(case, last=number == len(cases) - 1):
                self._counts.skipped += len(cases) - number - 1
                return  # what follows would suffer from it

    # --- one case ---------------------------------------------------------------------------------------------------

    def _play(self, case: Case, *, last: bool) -> bool:
        """Whether the world can be used for another one."""
        name, rot = case
        world, counts, files = self._world, self._counts, self._snapshot.files()
        if name not in files:  # made by chance in another world only
            return True
        path = self._rotten = files[name]
        with open(self._victim, "wb") as file:
            file.write(VICTIM)
        self._log_begins = os.path.getsize(world.agent.log_file)
        ROTS[rot](path, self._snapshot.entries[path].content, self._victim, world.random)
        broken, healed = self._live_with_it(case)
        tail = self._news()
        if not healed and not broken and not _tells(tail):
            broken = ["nothing is told of what is amiss"]
        if last and not broken:
            if rot in ("cannot be changed", "cannot be read") or name == "r/config.toml":
                self._repair(path)
            elif name.endswith("/registered.json"):
                if os.path.isdir(path):
                    shutil.rmtree(path)
                run_command(world.place.root, "drivers", "register", FAKE, world.fake.endpoint)
            broken = self._clean_up()
        counts.cases[rot] += 1
        counts.files.add(name)
        if broken:
            counts.broken += [f"{name} {rot}: {each}" for each in broken]
            where = f"{self._evidence}/{os.path.basename(world.place.base)}"
            counts.evidence.append(keep_evidence(where, world.place.base, tail, [f"{name} {rot}", *broken]))
        self._stop()
        whole_again(path)
        if not last:
            self._snapshot.restore()
        return not broken

    def _live_with_it(self, case: Case) -> tuple[list[str], bool]:
        """Start, and see what comes of it: the harm that was done, and whether all was as wanted at once."""
        world = self._world
        world.start_agent()
        began = time.monotonic()
        with contextlib.suppress(TimeoutError):
            until(lambda: not world.agent.running or self._is_well(), "all is well", _SETTLE)
        healed = time.monotonic() - began < _SETTLE
        if not healed and not _tells(self._news()):  # a busy machine, perhaps
            with contextlib.suppress(TimeoutError):
                until(lambda: self._is_well() or _tells(self._news()), "all is well", _PATIENCE)
            healed = self._is_well()
        if not world.agent.running:
            last_words = " ".join(world.agent.log.splitlines()[-3:])
            refusal = [] if case in _MAY_REFUSE and "error: " in last_words else [f"does not start: {last_words}"]
            return [*refusal, *self._harm()], False
        harm = self._harm()
        if healed:
            self._counts.healed[case[1]] += 1
        elif not harm:
            self._counts.not_healed.append(f"{case[0]} {case[1]}: {self._worst()}")
        return harm, healed

    def _news(self) -> list[str]:
        """What the agent has told since the case began."""
        with open(self._world.agent.log_file, encoding="utf-8", errors="replace") as log:
            log.seek(self._log_begins)
            return log.read().splitlines()

    def _is_well(self) -> bool:
        try:
            return not self._problems()
        except Exception:  # noqa: BLE001 - the store may be what has rotted
            return False

    def _problems(self) -> list[str]:
        """What is not as wanted, what stands in the rotten place itself aside."""
        return [each for each in problems(self._world) if self._rotten not in each]

    def _worst(self) -> str:
        try:
            volumes = [volume for status in self._world.status() for volume in status.volumes if not volume.ready]
            return "; ".join([*(volume.explain() for volume in volumes[:1]), *self._problems()[:1]])
        except Exception as error:  # noqa: BLE001 - the store may be what has rotted
            return str(error)

    def _harm(self) -> list[str]:
        """What must never be: a mount taken away, data lost, another's file touched."""
        found = self._kept.problems(self._world.place.mount_ids())
        for pod in self._world.pods.values():
            for volume in pod.volumes:
                key = self._world.storage(pod, volume)
                found += self._world.ledger.problems(key, self._paths[pod.name, volume.name])
        with open(self._victim, "rb") as file:
            if file.read() != VICTIM:
                found.append("a link was followed: somebody else's file has changed")
        return found

    def _repair(self, path: str) -> None:
        """What somebody has to see to first: a disk that cannot be read or written, a wrong configuration."""
        world = self._world
        world.kill_agent()
        whole_again(path)
        kept = self._snapshot.entries[path]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with open(path, "wb") as file:
            file.write(kept.content)
        world.start_agent()
        world.agent.wait_ready()

    def _clean_up(self) -> list[str]:
        """All pods end: nothing of them may be left, whatever has rotted."""
        world = self._world
        uids = [pod.uid for pod in world.pods.values() if not pod.static]  # those end with their manifests
        try:
            known = {pod.metadata.uid for pod in world.objects.pods().values()}
        except StoreError:
            self._put_store_aside()
            known = set()
        for name in list(world.pods):
            self._kept.forget(name)
            world.end(name)
        try:
            for uid in uids:
                if uid not in known and os.path.exists(f"{world.place.root}/pods/{uid}"):
                    run_command(world.place.root, "unmount", uid)  # no store knows it any more
            until(lambda: not world.place.mounts(), "nothing is mounted", 20)
        except (TimeoutError, RuntimeError) as error:
            left = [mount.path for mount in world.place.mounts()]
            return [f"cannot be cleaned up: {error}: {' '.join(left)}"] if left else []
        self._counts.cleaned += 1
        return []

    def _put_store_aside(self) -> None:
        """As the error of a damaged store says. What is mounted stays, since the next store knows nothing of it."""
        world, path = self._world, f"{self._world.place.root}/store.sqlite3"
        world.kill_agent()
        world.let_go_of_store()
        whole_again(path)
        for suffix in ("", "-wal", "-shm"):
            if os.path.lexists(f"{path}{suffix}"):
                os.rename(f"{path}{suffix}", f"{world.place.root}/aside{suffix}")
        world.start_agent()
        world.agent.wait_ready()

    # --- the world --------------------------------------------------------------------------------------------------

    def _settle_in(self) -> None:
        """Two pods with volumes of every kind, and data on all of them."""
        world = self._world
        for number in range(2):
            volumes = [Volume(kind, kind, f"c{number}-{kind}" if kind in CLAIMED else "") for kind in KINDS]
            world.want(Pod(f"pod{number}", tuple(volumes), static=number == 1, fs_group=2000 if number else None))
        rest(world)
        world.write(list(world.pods.values()))
        self._kept.learn(world.expected().mounts_of, world.place.mount_ids())

    def _stop(self) -> None:
        """Nobody works on the root directory, and nobody has its store open."""
        world = self._world
        world.kill_agent()
        for which in ("keeper", "driver"):
            world.kill_driver(which)
        until(lambda: not world.driver_processes("driver"), "the driver is dead")
        world.let_go_of_store()


def _tells(lines: Sequence[str]) -> bool:
    """Whether something was told that somebody should look at."""
    return any(line.startswith(("WARNING", "ERROR", "error: ")) for line in lines)


def rage(seed: int, cases: Sequence[Case], deadline: float, evidence: str) -> CorruptCounts:
    """One world's storm."""
    counts = CorruptCounts()
    if time.monotonic() > deadline:
        counts.skipped += len(cases)
        return counts
    try:
        with World(seed) as world:
            CorruptStorm(world, counts, evidence).run(cases, deadline)
    except Exception:  # noqa: BLE001 - a storm that cannot go on is told as a broken promise
        counts.broken.append(traceback.format_exc())
    return counts


def list_cases(seed: int) -> list[Case]:
    """All cases, as a lived-in root directory has them."""
    with World(seed) as world:
        return CorruptStorm(world, CorruptCounts(), "").cases()


def run(options: Options) -> Findings:
    """All cases, shuffled, some worlds at a time."""
    began = time.monotonic()
    deadline = began + 60 * options.minutes
    (cases,) = side_by_side(list_cases, [(options.seed,)], 1)
    random.Random(options.seed).shuffle(cases)
    chosen = cases[: options.rounds]
    parts = [chosen[start : start + _CASES] for start in range(0, len(chosen), _CASES)]
    jobs = [(options.seed + number, part, deadline, options.evidence) for number, part in enumerate(parts)]
    found = side_by_side(rage, jobs, options.workers)
    findings = Findings("Files that rot", options.seed)
    findings.broken += [each for counts in found for each in counts.broken]
    findings.evidence += [each for counts in found for each in counts.evidence]
    total = sum((counts.cases for counts in found), Counter[str]())
    healed = sum((counts.healed for counts in found), Counter[str]())
    findings.figure("kinds of files", len(set[str]().union(*(counts.files for counts in found))))
    findings.figure("cases, in each the host started and took nothing away", f"{total.total()} of {len(cases)}")
    findings.figure("  after which all was as wanted at once", healed.total())
    findings.figure("  after which all pods could be taken away", sum(counts.cleaned for counts in found))
    findings.figure("not played for want of time", sum(counts.skipped for counts in found))
    findings.figure("seconds", f"{time.monotonic() - began:.0f}")
    rows: list[Sequence[str]] = [("way to rot", "cases", "as wanted at once")]
    rows += [(rot, str(total[rot]), str(healed[rot])) for rot in ROTS]
    findings.tables.append(("", rows))
    told = [each for counts in found for each in counts.not_healed]
    findings.tables.append(("waits for somebody", [("file, rot", "what is not as wanted"), *map(_split, told)]))
    return findings


def _split(text: str) -> tuple[str, str]:
    name, _, rest_of = text.partition(": ")
    return name, rest_of if len(rest_of) < _WIDTH else f"{rest_of[: _WIDTH // 4]} ... {rest_of[-3 * _WIDTH // 4 :]}"
