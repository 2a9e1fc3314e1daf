"""How figures are taken: ours and the anchor in turn, so that both meet the same machine; medians of the rounds."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROUNDS = 9


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: seconds for ours and for the anchor, and what the ratio is to be at most (and the aim).

    ``unit`` "" is for what is counted instead of timed.
    """

    name: str
    ours: float
    anchor: float
    anchor_name: str
    at_most: float | None = None
    aim: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """Ours over the anchor's."""
        return self.ours / self.anchor

    @property
    def verdict(self) -> str:
        """Whether the ratio keeps the bound."""
        if self.at_most is None:
            return ""
        return "ok" if self.ratio <= self.at_most else "MISSED"


def once(function: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _batch(function: Callable[[], object], loops: int) -> float:
    repeat = range(loops)
    start = time.perf_counter()
    for _ in repeat:
        function()
    return (time.perf_counter() - start) / loops


def _loops(function: Callable[[], object], batch_seconds: float) -> int:
    function()
    single = max(once(function), 1e-8)
    return max(1, int(batch_seconds / single))


def interleaved(
    ours: Callable[[], object],
    anchor: Callable[[], object],
    *,
    rounds: int = ROUNDS,
    batch_seconds: float = 0.02,
) -> tuple[float, float]:
    """Median seconds per call of both, in batches of about ``batch_seconds`` that take turns."""
    our_loops, anchor_loops = _loops(ours, batch_seconds), _loops(anchor, batch_seconds)
    our_times: list[float] = []
    anchor_times: list[float] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            our_times.append(_batch(ours, our_loops))
            anchor_times.append(_batch(anchor, anchor_loops))
    finally:
        gc.enable()
    return statistics.median(our_times), statistics.median(anchor_times)


def alternating(samplers: Sequence[Callable[[], float]], *, rounds: int = ROUNDS) -> list[float]:
    """Median of each sampler's own reading (seconds), all samplers taking turns."""
    readings: list[list[float]] = [[] for _ in samplers]
    for _ in range(rounds):
        for sampler, values in zip(samplers, readings, strict=True):
            values.append(sampler())
    return [statistics.median(values) for values in readings]


def environment(**extra: str) -> dict[str, str]:
    """This environment with byte code cached, as an installed program has it."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **extra}


def whole_process(arguments: Sequence[str], **extra: str) -> Callable[[], float]:
    """A sampler: seconds from starting the Python process with these arguments to its end."""
    command = [sys.executable, *arguments]

    def sample() -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment(**extra))
        return time.perf_counter() - start

    sample()
    return sample


def reported_by_process(code: str, *arguments: str, flags: Sequence[str] = (), **extra: str) -> Callable[[], float]:
    """A sampler: the seconds that the code itself prints as a JSON number, in a fresh process each time."""
    command = [sys.executable, *flags, "-c", code, *arguments]

    def sample() -> float:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment(**extra))
        return float(json.loads(done.stdout.splitlines()[-1]))

    sample()
    return sample
