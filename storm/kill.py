"""The kill storm: ``kill -9`` of the agent at each named step of each operation and at random, while pods come and go.

After each batch, and at the end when nothing is wanted any more, the world is compared with what was wished.
"""

from __future__ import annotations

import contextlib
import random
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from storm.actions import Actions
from storm.crew import Options, keep_evidence, side_by_side
from storm.dying import variable_for
from storm.invariants import BrokenPromiseError, rest
from storm.kept import KeptMounts
from storm.place import until
from storm.recipes import Cook, Recipe
from storm.report import Findings, percentile
from storm.steps import Step, steps_to_die_at
from storm.wishes import KINDS, Pod
from storm.world import World

#: Seconds until an agent that is to die has come to its step, at most.
DEATH_SECONDS = 30.0
#: So many kills between two looks at everything.
BATCH = 8
#: Up to so many seconds after its start a random kill comes.
_LONGEST_LIFE = 1.2


@dataclass
class KillCounts:
    """What one world's storm did."""

    steps: Counter[Step] = field(default_factory=Counter)
    random: int = 0
    commands: int = 0
    missed: list[str] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)
    rests: list[float] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    files: int = 0
    bytes: int = 0
    broken: list[str] = field(default_factory=list)
    evidence: str = ""

    @property
    def kills(self) -> int:
        """Of the agent."""
        return self.steps.total() + self.random

    def add(self, other: KillCounts) -> None:
        """Take in those of another world."""
        self.steps.update(other.steps)
        self.actions.update(other.actions)
        self.random += other.random
        self.commands += other.commands
        self.looks += other.looks
        self.files += other.files
        self.bytes += other.bytes
        self.missed += other.missed
        self.restarts += other.restarts
        self.rests += other.rests
        self.broken += other.broken
        self.evidence = self.evidence or other.evidence


class KillStorm:
    """Rages in one world, until its tasks are done or its time is over."""

    def __init__(self, world: World, counts: KillCounts) -> None:
        self._world = world
        self._counts = counts
        self._kept = KeptMounts()
        self._actions = Actions(world, self._kept)
        self._cook = Cook(world, self._actions, self._kept)

    def run(self, tasks: Sequence[tuple[Step, int] | None], deadline: float) -> None:
        """Each task is a step and its number, or None for a kill at random.

        :raises BrokenPromiseError: a promise was broken; the rest is not done.
        """
        for number in range(2):
            pod = self._actions.new_pod(*KINDS, static=bool(number), sub_path="kept/deep")
            self._actions.staying.add(pod.name)
        self._rest()
        since = 0
        for task in tasks:
            if time.monotonic() > deadline:
                break
            before = self._counts.kills
            if task is None:
                self._kill_at_random()
            else:
                self._kill_at(*task)
            since += self._counts.kills - before
            self._glance()
            if since >= BATCH:
                since = 0
                self._rest()
                self._actions.thin_out()
        self._end()

    # --- kills ------------------------------------------------------------------------------------------------------

    def _kill_at_random(self) -> None:
        """At any moment of a life in which this and that happens."""
        world, random = self._world, self._world.random
        for _ in range(random.randint(0, 2)):
            self._actions.act()
        began = time.monotonic()
        if not world.agent.running:
            world.start_agent()
        life = random.uniform(0.05, _LONGEST_LIFE)
        while (left := began + life - time.monotonic()) > 0:
            time.sleep(min(left, random.uniform(0.02, 0.3)))
            if random.random() < 0.5:
                self._actions.act()
        self._kill()

    def _kill(self) -> None:
        self._world.tell("kill agent")
        self._world.kill_agent()
        self._counts.random += 1
        self._counts.commands += self._actions.kill_commands()

    def _kill_at(self, step: Step, count: int) -> None:
        """Have it die before it takes the step for the count-th time."""
        world = self._world
        recipe = self._cook.recipe(step, count)
        if recipe.prepare is not None:
            if not world.agent.running:
                world.start_agent()
            recipe.prepare()
            if recipe.rests:
                self._rest()
        if world.agent.running:
            self._kill()
        early = recipe.before or world.random.random() < 0.5
        if early:
            recipe.trigger()
        world.tell(f"start, to die at {step} number {count}")
        world.start_agent(variable_for(step, count))
        if not early:
            with contextlib.suppress(AssertionError):  # it died already: something else was due
                world.agent.wait_ready()
            recipe.trigger()
        if self._has_died():
            self._counts.steps[step] += 1
        else:
            self._counts.missed.append(f"{step} number {count}")
            self._kill()
        self._after(recipe)

    def _has_died(self) -> bool:
        with contextlib.suppress(TimeoutError):
            until(lambda: not self._world.agent.running, "the agent is dead", DEATH_SECONDS)
            self._world.tell(f"it is dead ({self._world.agent.returncode})")
            return self._world.agent.returncode == -9
        return False

    def _after(self, recipe: Recipe) -> None:
        if recipe.after is not None:
            if not self._world.agent.running:
                self._world.start_agent()
            recipe.after()

    # --- looks ------------------------------------------------------------------------------------------------------

    def _glance(self) -> None:
        """With the agent dead: what pods use is where it was, and so is what they wrote."""
        self._require(self._kept.problems(self._world.place.mount_ids()))
        staying = [self._world.pods[name] for name in self._actions.staying]
        self._require(self._world.data_problems([self._world.random.choice(staying)]))

    def _rest(self) -> None:
        """Let an agent bring everything about, then look at everything."""
        world = self._world
        self._counts.commands += self._actions.kill_commands()
        began = time.monotonic()
        if not world.agent.running:
            world.start_agent()
        world.agent.wait_ready()
        self._counts.restarts.append(time.monotonic() - began)
        rest(world)
        self._counts.rests.append(time.monotonic() - began)
        self._require(self._kept.problems(world.place.mount_ids()))
        pods = list(world.pods.values())
        self._require(world.data_problems(pods))
        self._prepare_subpaths(pods)
        self._kept.learn(world.expected().mounts_of, world.place.mount_ids())
        world.write(pods)
        world.tell(f"rest: {len(pods)} pods, {len(world.claims)} claims")

    def _prepare_subpaths(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            if pod.name not in self._world.prepared and any(volume.has_sub_path for volume in pod.volumes):
                self._world.prepare_subpaths(pod)

    def _end(self) -> None:
        """Nothing is wanted any more: nothing may be left."""
        for name in list(self._world.pods):
            self._actions.end(name)
        self._actions.drop_unused_claims()
        self._rest()
        self._world.tell("stop")
        self._world.agent.stop()
        until(lambda: not self._world.driver_processes("driver"), "the drivers have ended")
        self._require([f"process left: {command}" for command in self._leftover_processes()])

    def _leftover_processes(self) -> list[str]:
        return [text for pid, text in self._world.place.processes().items() if pid != self._world.fake.pid]

    def _require(self, broken: Sequence[str]) -> None:
        if broken:
            raise BrokenPromiseError(*broken)

    def figures(self) -> None:
        """Add up what is counted elsewhere."""
        self._counts.looks = self._kept.looks
        self._counts.files = self._world.ledger.files_checked
        self._counts.bytes = self._world.ledger.bytes_checked
        self._counts.actions.update(self._actions.done)


# --- the whole storm ------------------------------------------------------------------------------------------------

Task = tuple[Step, int] | None

#: So often a step is taken in one life before the agent dies at it.
_COUNTS = (1, 2, 3)
#: So many kills of the agent a whole storm aims at, and has at least.
KILLS, ENOUGH = 540, 500
#: Tasks of one world; then another one, with nothing behind it, goes on.
_TASKS = 44


def tasks_for(seed: int, kills: int) -> list[Task]:
    """Each step, and each of its numbers; between them, and after them, kills at random until there are enough."""
    once = Step("volume_attach", "detach")  # one driver can change its mind in one way
    steps: list[Task] = [(step, count) for step in steps_to_die_at() for count in _COUNTS if count == 1 or step != once]
    random.Random(seed).shuffle(steps)
    # Most of what goes has to be there first, and the agent that made it is killed too.
    by_chance = max(0, kills - int(1.5 * len(steps)))
    paired: list[Task] = [task for step in steps for task in (step, None)]
    return [*paired, *[None] * (by_chance - len(steps))]


def rage(seed: int, tasks: Sequence[Task], deadline: float, evidence: str) -> KillCounts:
    """One world's storm."""
    counts = KillCounts()
    with World(seed) as world:
        storm = KillStorm(world, counts)
        try:
            storm.run(tasks, deadline)
        except BrokenPromiseError as error:
            counts.broken += error.args
        except Exception:  # noqa: BLE001 - a storm that cannot go on is told as a broken promise
            counts.broken.append(traceback.format_exc())
        storm.figures()
        if counts.broken:
            counts.evidence = keep_evidence(f"{evidence}/kill-{seed}", world.place.base, world.story, counts.broken)
    return counts


def run(options: Options) -> Findings:
    """All worlds, some at a time."""
    began = time.monotonic()
    tasks = tasks_for(options.seed, options.rounds or KILLS)
    parts = [tasks[start : start + _TASKS] for start in range(0, len(tasks), _TASKS)]
    deadline = began + 60 * options.minutes
    jobs = [(options.seed + number, part, deadline, options.evidence) for number, part in enumerate(parts)]
    found = side_by_side(rage, jobs, options.workers)
    total = KillCounts()
    for counts in found:
        total.add(counts)
    return _findings(options, total, len(parts), time.monotonic() - began)


def _findings(options: Options, total: KillCounts, worlds: int, seconds: float) -> Findings:
    findings = Findings("Kill storm", options.seed, broken=total.broken)
    findings.evidence += [total.evidence] if total.evidence else []
    reached = {step for step in total.steps if total.steps[step]}
    unreached = [str(step) for step in steps_to_die_at() if step not in reached]
    if unreached and not total.broken and options.rounds is None:
        findings.broken.append(f"the agent did not die at: {', '.join(unreached)}")
    if total.kills < ENOUGH and not total.broken and options.rounds is None:
        findings.broken.append(f"{total.kills} kills in the time that there was: {ENOUGH} are wanted")
    findings.figure("kill -9 of the agent", total.kills)
    findings.figure(
        "  before a named step", f"{total.steps.total()} ({len(reached)} of {len(steps_to_die_at())} steps)"
    )
    findings.figure("  at random", total.random)
    findings.figure("kill -9 of commands", total.commands)
    findings.figure("worlds", worlds)
    findings.figure("looks at all that there is, with nothing amiss", len(total.rests))
    findings.figure("looks at mounts of pods that stay, all the same ones", total.looks)
    findings.figure("files read again after kills", f"{total.files}, {total.bytes / 1e6:.1f} MB, none lost or changed")
    for name, values in (("until ready again", total.restarts), ("until all was as wanted", total.rests)):
        median, worst = percentile(values, 0.5), max(values, default=0.0)
        findings.figure(f"{name}: median, worst", f"{median:.2f} s, {worst:.2f} s")
    findings.figure("between kills", ", ".join(f"{name} {count}" for name, count in total.actions.most_common()))
    findings.figure("not reached in time", ", ".join(total.missed) or "none")
    findings.figure("seconds", f"{seconds:.0f}")
    return findings
