"""Worlds side by side, each in a process of its own, and the evidence that is kept of those that ended badly."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

T = TypeVar("T")

_PR_SET_PDEATHSIG = 1
#: Names below a world's directory that tell what happened in it.
_TELLING = ("logs", "fake/calls.jsonl", "fake/log", "n/r/volumes.journal", "n/r/config.toml", "n/r/drivers")


@dataclass(frozen=True)
class Options:
    """What a run is asked for: ``rounds`` of the storm's own kind (None for its own number), and at most so many
    ``minutes`` for each storm. ``evidence`` is where to keep what tells of broken promises.
    """

    seed: int
    rounds: int | None = None
    minutes: float = 10.0
    evidence: str = "/tmp/volumehost-storm"
    workers: int = 2


def side_by_side(function: Callable[..., T], jobs: Sequence[tuple[Any, ...]], workers: int) -> list[T]:
    """Call the function, which must be importable, with each of these arguments; the results in the same order.

    Whatever ends this, the calls are told to end in good order too, and waited for.
    """
    context = get_context("spawn")
    results: dict[int, T] = {}
    running: dict[Connection, tuple[int, SpawnProcess]] = {}
    waiting = list(enumerate(jobs))
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                number, arguments = waiting.pop(0)
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_call, args=(theirs, os.getpid(), function, arguments))
                process.start()
                theirs.close()
                running[ours] = number, process
            wait(list(running))
            for connection in [each for each in running if each.poll()]:
                number, process = running[connection]
                try:
                    results[number] = connection.recv()
                except EOFError:
                    process.join()
                    raise RuntimeError(f"job {number} has ended before its time: {process.exitcode}") from None
                process.join()
                del running[connection]
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()
    return [results[number] for number in range(len(jobs))]


def _call(connection: Connection, parent: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """A process of its own. It ends in good order when it is told to, or when whoever started it is gone."""
    logging.getLogger().addHandler(logging.NullHandler())  # findings are told; of managers in this process too
    end_in_good_order()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # gone already
        return
    connection.send(function(*arguments))


def end_in_good_order() -> None:
    """Let SIGTERM unwind, so that worlds are taken away; the first one."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


def keep_evidence(directory: str, base: str, story: Iterable[str], broken: Iterable[str]) -> str:
    """Copy what tells of a world, before it is taken away; where that is."""
    os.makedirs(directory, exist_ok=True)
    for name in _TELLING:
        source, target = f"{base}/{name}", f"{directory}/{os.path.basename(name)}"
        with contextlib.suppress(OSError, shutil.Error):
            if os.path.isdir(source):
                shutil.copytree(source, target, ignore=_only_small, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
    for name, lines in (("story", story), ("broken", broken)):
        with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    with contextlib.suppress(OSError):
        shutil.copy("/proc/self/mountinfo", f"{directory}/mountinfo")
    return directory


def _only_small(directory: str, names: list[str]) -> list[str]:
    """What is not copied: images of volumes, and what is no file."""
    kept = [n for n in names if os.path.isdir(f"{directory}/{n}") or os.path.isfile(f"{directory}/{n}")]
    return [name for name in names if name not in kept or name.endswith(".img")]
