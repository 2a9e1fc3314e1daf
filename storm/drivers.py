"""The driver storm: each call fails with each code, hangs, is late or kills its driver, and pods come and go meanwhile.

Every combination with pods that stay, go before, while or after it, or go and come again: through the agent, with many
at the same time; some of them with the agent killed again and again.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from storm.crew import Options, keep_evidence, side_by_side
from storm.driver_world import DriverWorld
from storm.faults import CALLS, OPPOSITE, Fault, faults_of
from storm.lives import Life, fates_of
from storm.place import until
from storm.report import Findings, percentile

#: Call, fault and fate of one life.
Chosen = tuple[str, Fault, str]
#: Lives of one world, and how often the agent is killed where it is, in seconds.
_LIVES = 200
_KILL_SECONDS = 3.0

WELL = "well.example.com"
#: Drivers that die: each has some lives, which all feel it when one of them kills it.
DYING = tuple(f"dying{number}.example.com" for number in range(4))


@dataclass
class DriverCounts:
    """What one world's storm did."""

    lives: Counter[tuple[str, str]] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    deaths: int = 0
    kills: int = 0
    seconds: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    evidence: str = ""

    def add(self, other: DriverCounts) -> None:
        """Take in those of another world."""
        self.lives.update(other.lives)
        self.fates.update(other.fates)
        self.calls += other.calls
        self.deaths += other.deaths
        self.kills += other.kills
        self.seconds += other.seconds
        self.broken += other.broken
        self.evidence = self.evidence or other.evidence


def combinations(seed: int) -> list[Chosen]:
    """Every call with every fault and every fate, shuffled."""
    found = [(call, fault, fate) for call in CALLS for fault in faults_of(call) for fate in fates_of(call)]
    random.Random(seed).shuffle(found)
    return found


def lives_of(world: DriverWorld, chosen: Sequence[Chosen]) -> list[Life]:
    """A life for each; every third one has a volume that is a raw device."""
    found = []
    for number, (call, fault, fate) in enumerate(chosen):
        driver = DYING[number % len(DYING)] if fault.dies else WELL
        mode = "Block" if number % 3 == 0 else "Filesystem"
        found.append(Life(world, number, driver, call, fault, fate, mode))
    return found


def rage(number: int, chosen: Sequence[Chosen], kill_every: float, evidence: str) -> DriverCounts:
    """Live all of these lives in a world of their own."""
    counts = DriverCounts()
    with DriverWorld((WELL, *DYING)) as world:
        lives = lives_of(world, chosen)
        world.live(lives, kill_every=kill_every)
        counts.broken += [problem for life in lives for problem in life.problems]
        world.be_well()
        try:
            until(lambda: not world.left(), "nothing is left", 30)
        except TimeoutError:
            counts.broken += [f"left: {each}" for each in world.left()]
        counts.broken += world.call_problems(lives, serial=not kill_every)
        if not kill_every:
            counts.broken += [problem for life in lives for problem in opposite_problems(world, life)]
        for life in lives:
            counts.lives[life.call, life.fault.kind] += 1
            counts.fates[life.fate] += 1
            counts.seconds.append(life.seconds)
        counts.calls, counts.deaths, counts.kills = world.call_count, world.deaths, world.kills
        if counts.broken:
            base = world.place.base
            counts.evidence = keep_evidence(f"{evidence}/drivers-{number}", base, map(str, lives), counts.broken)
    return counts


def run(options: Options) -> Findings:
    """All combinations, in several worlds; a part of them once more while the agent is killed again and again."""
    began = time.monotonic()
    chosen = combinations(options.seed)[: options.rounds]
    # A call that is late and whose caller is dead would work beside those of the next one: no driver lets it.
    chosen_again = [each for each in chosen if each[1].kind != "late"][: len(chosen) // 6]
    parts = [(chosen[start : start + _LIVES], 0.0) for start in range(0, len(chosen), _LIVES)]
    parts += [(chosen_again[start : start + _LIVES], _KILL_SECONDS) for start in range(0, len(chosen_again), _LIVES)]
    jobs = [(number, part, every, options.evidence) for number, (part, every) in enumerate(parts)]
    total = DriverCounts()
    for counts in side_by_side(rage, jobs, options.workers):
        total.add(counts)
    findings = Findings("Driver storm", options.seed, broken=total.broken)
    findings.evidence += [total.evidence] if total.evidence else []
    findings.figure("lives of a volume in which a call goes wrong", total.lives.total())
    findings.figure("  of them while the agent was killed", f"{len(chosen_again)}, {total.kills} kills")
    findings.figure("calls that the drivers had", total.calls)
    findings.figure("drivers that died and came back", total.deaths)
    findings.figure("a life: median, worst", f"{percentile(total.seconds, 0.5):.1f} s, {max(total.seconds):.1f} s")
    findings.figure("the pod", ", ".join(f"{fate} {count}" for fate, count in total.fates.most_common()))
    findings.figure("left on the node, in the store, at the drivers", "nothing" if not total.broken else "see below")
    findings.figure("seconds", f"{time.monotonic() - began:.0f}")
    kinds = sorted({kind for _, kind in total.lives})
    rows: list[Sequence[str]] = [("lives by call and fault", *kinds)]
    rows += [(call, *(str(total.lives[call, kind]) for kind in kinds)) for call in CALLS]
    findings.tables.append(("", rows))
    return findings


def opposite_problems(world: DriverWorld, life: Life) -> list[str]:
    """The opposite call was made for what may be there, and not where certainly nothing can be."""
    opposite = OPPOSITE.get(life.call)
    if opposite is None or life.problems:
        return []
    calls = life.calls(world.view())
    began = [call for call in calls if call.name == life.call]
    worked = any(call.code == "OK" for call in began)
    undone = any(call.name == opposite for call in calls)
    if began and (worked or life.fault.worked or life.fault.is_uncertain(life.call)) and not undone:
        return [f"{life}: {opposite} was never called: {[(call.name, call.code) for call in calls]}"]
    certain = not (worked or life.fault.worked or life.fault.is_uncertain(life.call) or life.fault.dies)
    if certain and undone and life.call in ("NodeStageVolume", "NodePublishVolume", "CreateVolume"):
        return [f"{life}: {opposite} was called for nothing: {[(call.name, call.code) for call in calls]}"]
    return []
