"""Plays a page of the documentation as it is written: writes the files that it shows, runs its commands in one shell,
and compares what they print.

In a page, a fenced ``{code-block}`` with a caption is a file of that name, and a ``console`` block is a session: lines
that begin with ``$ `` (or ``# ``, for root) are commands, lines that begin with ``> `` continue them, all others are
output. ``...`` in the output stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FENCE = re.compile(r"^(?P<fence>`{3,}|:{3,})(?:\{code-block\} *)?(?P<language>[\w-]+)\s*$")
PROMPT = re.compile(r"^[$#] (?P<command>.*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``file`` is the name in its caption, "" without one."""

    language: str
    text: str
    line: int
    file: str = ""


@dataclass(frozen=True)
class Command:
    """A command of a console block and the output that the page shows for it."""

    text: str
    expected: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """The code blocks of a page in order."""
    lines = page.splitlines()
    number = 0
    while number < len(lines):
        opened = FENCE.match(lines[number])
        number += 1
        if not opened:
            continue
        options: dict[str, str] = {}
        while number < len(lines) and (option := re.match(r"^:([\w-]+):\s*(.*)$", lines[number])):
            options[option[1]] = option[2]
            number += 1
        if options and lines[number] == "":
            number += 1
        first = number + 1
        body: list[str] = []
        while lines[number] != opened["fence"]:
            body.append(lines[number])
            number += 1
        number += 1
        yield Block(opened["language"], "\n".join(body) + "\n", first, options.get("caption", "").strip("`"))


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
    text, at = "", 0
    expected: list[str] = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        prompt = PROMPT.match(line)
        if prompt:
            if text:
                yield Command(text, "\n".join(expected), at)
            text, expected, at = prompt["command"], [], number
        elif line.startswith("> ") and not expected:
            text += "\n" + line[2:]
        else:
            expected.append(line)
    if text:
        yield Command(text, "\n".join(expected), at)


class Shell:
    """One bash that runs a page's commands, so that ``cd``, ``export`` and an activated environment stay."""

    def __init__(self, directory: Path, environment: Mapping[str, str], *, wrapper: tuple[str, ...] = ()) -> None:
        self._process = subprocess.Popen(
            [*wrapper, "bash", "--noprofile", "--norc"],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("no pipes")
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._count = 0
        self._code = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            # What a page that is not true any more has left running: nobody would ever end it.
            self._stdin.write(b"kill -9 $(jobs -p) 2>/dev/null\n")
            self._stdin.close()
        try:
            self._process.wait(timeout=0 if kind else 10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=30)
        self._stdout.close()

    def run(self, command: str, *, timeout: float = 90) -> tuple[str, int]:
        """The command's output, both streams in one, and its exit code.

        :raises TimeoutError: it did not end in time; the text has the output so far.
        """
        self._count += 1
        mark = f"=== end of command {self._count}: "
        script = f"(exit {self._code})\n{{ {command}\n}} </dev/null\nprintf '\\n%s%s\\n' '{mark}' $?\n"
        self._stdin.write(script.encode())
        self._stdin.flush()
        output, deadline = b"", time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while True:
                ended = re.search(rb"\n" + re.escape(mark.encode()) + rb"(\d+)\n", output)
                if ended:
                    self._code = int(ended[1])
                    return output[: ended.start()].decode(errors="replace"), self._code
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"{command!r} did not end in {timeout} s: {output.decode(errors='replace')}")
                piece = os.read(self._stdout.fileno(), 65536)
                if not piece:
                    raise EOFError(f"the shell ended during {command!r}: {output.decode(errors='replace')}")
                output += piece


def matches(expected: str, got: str) -> bool:
    """Whether the output is what the page shows: ``...`` stands for anything, the amount of white space for nothing."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected.strip() + "\n", got.strip() + "\n", flags)


def play(page: str, shell: Shell, directory: Path) -> Iterator[str]:
    """Write each file and run each command in the order of the page; a report of every difference."""
    for block in blocks(page):
        if block.file:
            path = directory / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.language == "console":
            for command in commands(block):
                got, code = shell.run(command.text)
                if not matches(command.expected, got):
                    yield (
                        f"line {command.line}: $ {command.text}\n(exit code {code})\n"
                        f"--- the page shows\n{command.expected}\n--- the command printed\n{got}"
                    )
