"""``volumehost status --watch``: a block for each change, in place on a terminal, until it is interrupted."""

from __future__ import annotations

import itertools
import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

pytestmark = pytest.mark.root

SECONDS = 60.0


@pytest.fixture
def watching(volumehost) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a watch; it is killed in the end should it still run."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = volumehost.start("status", "--watch", *arguments)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Output:
    """What comes out of a process, line by line as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._descriptor = process.stdout.fileno()
        self._text = ""

    def line(self) -> str:
        """The next line."""
        deadline = time.monotonic() + SECONDS
        while "\n" not in self._text:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no line came after {self._text!r}"
            self._text += os.read(self._descriptor, 65536).decode()
        line, _, self._text = self._text.partition("\n")
        return line


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, "")


def test_a_block_for_each_change_and_none_without_one(volumehost, watching, manifest, pod_manifest) -> None:
    process = watching()
    output = Output(process)
    nothing = f"No pods under {volumehost.root_dir}."
    assert output.line() == nothing
    assert volumehost("mount", "-f", manifest(pod_manifest(a="emptyDir: {medium: Memory, sizeLimit: 1Mi}"))).code == 0
    lines = [output.line()]
    while "mounted" not in lines[-1]:
        lines.append(output.line())
    assert volumehost("unmount", "web").code == 0
    while lines[-1] != nothing:
        lines.append(output.line())
    _end(process)
    blocks = "\n".join(lines).strip("\n").split("\n\n")
    assert all(one != other for one, other in itertools.pairwise(blocks)), "a block for nothing"


def test_a_pod_that_is_not_there_yet_as_documents(volumehost, watching, manifest, pod_manifest, mounts_below) -> None:
    process = watching("web", "-o", "json")
    output = Output(process)
    assert json.loads(output.line())["pods"] == []
    assert volumehost("mount", "-f", manifest(pod_manifest(a="emptyDir: {}"))).code == 0
    while not (pods := json.loads(output.line())["pods"]) or not pods[0]["ready"]:
        pass
    assert pods[0]["name"] == "web"
    _end(process)
    mounts_below(volumehost.root_dir)


def test_names_alone_are_nothing_to_watch(volumehost) -> None:
    done = volumehost("status", "--watch", "-o", "name")
    assert done.code == 2
    assert "--watch goes with" in done.err


@pytest.fixture
def on_a_terminal(volumehost) -> Iterator[Callable[[int], tuple[int, subprocess.Popen[bytes]]]]:
    """Starts a watch on a terminal with so many columns; gives the terminal and the process."""
    started: list[tuple[int, subprocess.Popen[bytes]]] = []

    def start(columns: int) -> tuple[int, subprocess.Popen[bytes]]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [volumehost.start.__globals__["PROGRAM"], "status", "--watch"],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={**volumehost.variables(), "TERM": "xterm", "COLUMNS": str(columns)},
            cwd=volumehost.cwd,
        )
        os.close(theirs)
        started.append((ours, process))
        return ours, process

    yield start
    for ours, process in started:
        process.kill()
        process.communicate()
        os.close(ours)


def test_on_a_terminal_it_is_drawn_in_place(volumehost, on_a_terminal, manifest, pod_manifest, mounts_below) -> None:
    terminal, process = on_a_terminal(200)
    _shown(terminal, "No pods under")
    assert volumehost("mount", "-f", manifest(pod_manifest(a="emptyDir: {}"))).code == 0
    shown = _shown(terminal, "mounted")
    assert "\x1b[" in shown  # the former state is drawn over
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    mounts_below(volumehost.root_dir)


def test_a_narrow_terminal_cuts_the_table_and_no_reason(volumehost, on_a_terminal, manifest, pod_manifest) -> None:
    assert volumehost("mount", "-f", manifest(pod_manifest(a="hostPath: {path: /nowhere, type: Directory}"))).code == 1
    terminal, _ = on_a_terminal(60)
    shown = _shown(terminal, "DirectoryOrCreate)")
    rows = [line for line in shown.splitlines() if "default/web   a " in line]
    assert rows
    assert all(len(row) <= 60 for row in rows)


def _shown(terminal: int, words: str) -> str:
    text, deadline = "", time.monotonic() + SECONDS
    while words not in text:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{words!r} did not come: {text!r}"
        text += os.read(terminal, 4096).decode()
    return text
