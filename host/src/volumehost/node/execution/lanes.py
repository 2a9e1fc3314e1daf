"""Which task the next worker takes: tasks are grouped into lanes, and what hangs in one lane holds up no other (BR-52).

A lane is one storage driver, or one volume plugin. The worker pool asks here, under its own lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from volumehost.node.state.identity import driver_in_name

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.node.operations.common import Operation
    from volumehost.node.state.actual import ActualState

Task = Callable[[], None]

#: The lane of what a manager does besides operations.
UPKEEP: Final = ""

#: A task that has run for this many seconds is not a quick one.
QUICK_SECONDS = 0.003
#: One that has run for this many waits for somebody, and does not use the interpreter.
SLOW_SECONDS = 0.1
#: What is left of the threads is divided by this to see how many of them one lane may hold.
_PART = 4


def lane_of(operation: Operation, actual: ActualState) -> str:
    """The lane of an operation: its storage driver where it has one, else its plugin.

    A teardown that a restart began may know no more than the plugin.
    """
    spec = operation.spec
    if spec is None:
        driver = driver_in_name(operation.plugin_name, operation.key.volume)
        if driver:
            return driver
        volume = actual.get_volume(operation.key.volume)
        spec = volume.spec if volume is not None else None
    if spec is None or spec.source() != "csi":
        return operation.plugin_name
    holder: Any = spec.volume if spec.volume is not None else spec.persistent_volume
    source = holder.csi if spec.volume is not None else holder.spec.csi
    return source.driver or operation.plugin_name


def lane_of_pod(pod: Pod) -> str:
    """The lane in which it is found out what the volumes of a pod lead to: a plugin may never answer that.

    It is that of all pods with volumes of the same kinds.
    """
    from volumehost.spec import Spec

    return f"pods with {', '.join(sorted({Spec.from_volume(volume).source() for volume in pod.spec.volumes}))}"


class Taken(NamedTuple):
    """A task for a worker; ``alone`` when those before it in its lane took long, so that it may take long as well."""

    task: Task
    alone: bool


class Lane:
    """The tasks of one lane that wait, and since when each worker is at one of its tasks."""

    __slots__ = ("busy", "slow", "tasks")

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()
        self.busy: dict[int, float] = {}
        #: Whether its last task took long, or one that runs now has been running long already.
        self.slow = False


class Lanes:
    """All lanes. Not safe for threads. Times are in seconds, of the clock that the caller reads.

    :param share: how many tasks of one lane may run at a time that are not stuck.
    :param limit: how many tasks may run at a time in all. One lane may hold, whatever else it would be allowed, at
        most a fourth as many as are free besides: 51 of 256 when it is the only one that hangs, and the twentieth lane
        that hangs still leaves some to the others.
    :param stuck_after: how long a task has run when it counts as stuck.
    """

    def __init__(self, *, share: int, limit: int, stuck_after: float) -> None:
        self._share = share
        self._limit = limit
        self._stuck_after = stuck_after
        self._lanes: dict[str, Lane] = {}
        #: Of those whose task is at its end, whatever lane that was in.
        self._ending = Lane()
        #: The lanes with tasks that wait, whose turn is next first.
        self._waiting: deque[Lane] = deque()
        #: The lane that each busy worker is at.
        self._at: dict[int, Lane] = {}

    def put(self, name: str, *tasks: Task) -> None:
        """Have tasks wait in the lane of that name."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane()
        if not lane.tasks:
            self._waiting.append(lane)
        lane.tasks += tasks

    def take(self, worker: int, now: float) -> Taken | None:
        """The next task for the worker, of the next lane in turn that may have another run; None when there is none."""
        for _ in range(len(self._waiting)):
            lane = self._waiting.popleft()
            if not self._has_room(lane, now):
                self._waiting.append(lane)
                continue
            alone = self._is_slow(lane, now)
            task = lane.tasks.popleft()
            if lane.tasks:
                self._waiting.append(lane)
            lane.busy[worker] = now
            self._at[worker] = lane
            return Taken(task, alone)
        return None

    def go_on(self, worker: int, now: float) -> Task | None:
        """The next task of the lane that the worker is at, where :meth:`end` and :meth:`take` would come to that.

        It is so while one worker is busy, in a lane that is quick, and nothing waits in another: a third of the price.
        """
        if len(self._waiting) != 1 or len(self._at) != 1:
            return None
        lane = self._waiting[0]
        if lane.slow or self._at.get(worker) is not lane or now - lane.busy[worker] > SLOW_SECONDS:
            return None
        lane.busy[worker] = now
        task = lane.tasks.popleft()
        if not lane.tasks:
            self._waiting.clear()
        return task

    def end(self, worker: int, now: float) -> None:
        """The worker has ended the task that it was at, if it was at one."""
        lane = self._at.pop(worker, None)
        if lane is not None:
            lane.slow = now - lane.busy.pop(worker) > SLOW_SECONDS

    def nearly_end(self, worker: int, now: float) -> None:
        """The worker's task is at its end: its lane has room again, and the worker is soon free."""
        if worker in self._at:
            self.end(worker, now)
            self._ending.slow = False
            self._ending.busy[worker] = now
            self._at[worker] = self._ending

    def clear(self) -> None:
        """Drop all that waits."""
        for lane in self._waiting:
            lane.tasks.clear()
        self._waiting.clear()

    # --- questions --------------------------------------------------------------------------------------------------

    def can_take(self, now: float) -> bool:
        """Whether a task waits that another worker could take."""
        return any(self._has_room(lane, now) for lane in self._waiting)

    @property
    def busy(self) -> int:
        """How many workers are at a task."""
        return len(self._at)

    def slow(self, now: float) -> int:
        """How many of them have been at theirs for long."""
        return sum(now - lane.busy[worker] > SLOW_SECONDS for worker, lane in self._at.items())

    def somebody_is_quick(self, now: float) -> bool:
        """Whether a worker is at a task that it began just now, in a lane that is quick: it will soon take the next."""
        return any(
            now - since < QUICK_SECONDS
            for lane in (self._ending, *self._lanes.values())
            if lane.busy and not lane.slow
            for since in lane.busy.values()
        )

    def _has_room(self, lane: Lane, now: float) -> bool:
        if not lane.busy:
            return True
        busy = len(lane.busy)
        if busy >= max(1, (self._limit - len(self._at)) // _PART):
            return False
        return busy < self._share or busy - self._older_than(self._stuck_after, lane, now) < self._share

    def _is_slow(self, lane: Lane, now: float) -> bool:
        if not lane.slow and lane.busy:
            lane.slow = self._older_than(SLOW_SECONDS, lane, now) > 0
        return lane.slow

    @staticmethod
    def _older_than(seconds: float, lane: Lane, now: float) -> int:
        return sum(now - since > seconds for since in lane.busy.values())
