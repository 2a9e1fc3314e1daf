"""Where a thread is: in the kernel, in a program, in whose code; asked about threads that really hang there (BR-52)."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner
from volumehost.mount.programs import Programs
from volumehost.mount.whereabouts import MARK, whereabouts
from volumehost.testing.hung import hung_filesystem

HERE = Path(__file__).stem


@contextlib.contextmanager
def hanging(function: Callable[[], object]) -> Iterator[threading.Thread]:
    """A thread that is at it, until the end of the block."""
    begun = threading.Event()

    def run() -> None:
        begun.set()
        with contextlib.suppress(Exception):
            function()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert begun.wait(30)
    yield thread


def test_a_thread_that_ended_or_never_began_is_nowhere() -> None:
    thread = threading.Thread(target=int)
    assert whereabouts(thread) == ""
    thread.start()
    thread.join()
    assert whereabouts(thread) == ""


def test_code_that_waits_is_named_with_its_line(until: Callable) -> None:
    gate = threading.Event()

    def set_up() -> None:
        gate.wait(30)

    with hanging(set_up) as thread:
        try:
            until(lambda: whereabouts(thread).endswith(" set_up"))
            line = set_up.__code__.co_firstlineno + 1
            assert whereabouts(thread) == f"in {__name__.replace('.', '/')}.py:{line} set_up"
        finally:
            gate.set()


def test_what_the_code_says_that_it_waits_for_comes_first_in_one_line(until: Callable) -> None:
    gate = threading.Event()

    def call() -> None:
        __waits_for__ = "NodeStageVolume of\nthe driver x" + "y" * 1000  # noqa: F841 - read from outside
        gate.wait(30)

    assert MARK in call.__code__.co_varnames
    with hanging(call) as thread:
        try:
            until(lambda: "NodeStageVolume" in whereabouts(thread))
            told = whereabouts(thread)
            assert told.startswith("in NodeStageVolume of the driver xyyy")
            assert ", called by " in told
            assert len(told) < 400
        finally:
            gate.set()


@pytest.mark.root
def test_br52_a_call_that_hangs_in_the_kernel_is_named_with_where_it_waits(area: Path, until: Callable) -> None:
    (area / "m").mkdir()

    def look() -> None:
        os.stat(area / "m")

    with hung_filesystem(area / "m") as hung, hanging(look) as thread:
        until(lambda: "of the kernel" in whereabouts(thread))
        told = whereabouts(thread)
        assert re.fullmatch(r"in (new)?f?stata?t?\(\) of the kernel \([DS], \w+\), called by \S+:\d+ look", told)
        hung.die()
        thread.join(30)


@pytest.mark.root
def test_br52_who_waits_under_a_deadline_is_where_the_helper_is(area: Path, until: Callable) -> None:
    (area / "m").mkdir()
    runner = DeadlineRunner()

    def tear_down() -> None:
        with contextlib.suppress(DeadlineExceededError):
            runner.run(os.statvfs, str(area / "m"), timeout=30)

    with hung_filesystem(area / "m") as hung, hanging(tear_down) as thread:
        until(lambda: "of the kernel" in whereabouts(thread))
        told = whereabouts(thread)
        assert "statfs() of the kernel" in told
        assert told.endswith(" tear_down")
        hung.die()
        thread.join(30)


def test_a_program_that_does_not_end_is_named_with_its_process(until: Callable) -> None:
    def mount() -> None:
        Programs().run(["sleep", "600"], timeout=600)

    with hanging(mount) as thread:
        until(lambda: "the program sleep" in whereabouts(thread))
        told = whereabouts(thread)
        assert told.startswith("in the program sleep (process ")
        assert told.endswith(" mount")
        number = told.partition("(process ")[2].partition(",")[0]
        subprocess.run(["kill", "-9", number], check=True)
        thread.join(30)


def test_the_collector_does_not_run_while_the_interpreter_lists_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold the list's lock, and may run what lets others go on who need it: the process would stand still."""
    seen = []
    frames = sys._current_frames
    monkeypatch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()) or frames())
    whereabouts(threading.main_thread())
    gc.disable()
    try:
        whereabouts(threading.main_thread())
        assert not gc.isenabled(), "it stays as it was"
    finally:
        gc.enable()
    assert seen == [False, False]
