"""AgentProcess: ``volumehost agent`` as a process of its own, for tests that restart, stop and kill it."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

#: How long a test waits for what must come, in seconds: a machine may be busy.
PATIENCE = 60.0


class AgentProcess:
    """One agent on one root directory; may be started again after it has ended. A context manager that kills it.

    :param root_dir: its root directory.
    :param options: further arguments of ``volumehost agent``.
    :param environment: variables that are set besides those of this process.
    :param log_file: where its stderr goes; ``<root_dir>.agent.log`` by default. Runs follow one another in it.
    :param verbosity: how many ``-v`` it is given.
    :param program: what Python is given before the command, for a test's own way to start the program.
    """

    def __init__(
        self,
        root_dir: str | os.PathLike[str],
        *options: str,
        environment: Mapping[str, str] | None = None,
        log_file: str | os.PathLike[str] | None = None,
        verbosity: int = 1,
        program: Sequence[str] = ("-m", "volumehost"),
    ) -> None:
        self.root_dir = os.fspath(root_dir)
        self.options = options
        self.environment = dict(environment or {})
        self.log_file = os.fspath(log_file) if log_file is not None else f"{self.root_dir}.agent.log"
        self._verbosity = verbosity
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._told: _Notifications | None = None

    def __enter__(self) -> Self:
        """Start it, and wait until it is ready."""
        self.start()
        self.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Kill it, when it is still there."""
        self.kill()

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the process; does not wait until it is ready."""
        if self.running:
            raise RuntimeError(f"the agent runs already, as process {self.pid}")
        if self._told is not None:
            self._told.close()
        self._told = _Notifications()
        command = [sys.executable, *self._program, "agent", "--root-dir", self.root_dir]
        command += ["-" + "v" * self._verbosity] * bool(self._verbosity) + [*self.options]
        variables = {**os.environ, "NOTIFY_SOCKET": self._told.address, **self.environment}
        with open(self.log_file, "ab") as log:
            self._process = subprocess.Popen(
                command, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        return self

    def wait_ready(self, timeout: float = PATIENCE) -> None:
        """Wait until it has told systemd that its start is done.

        :raises AssertionError: it ended instead, or took too long; with its log.
        """
        self.wait_told(lambda state: state.get("READY") == "1", "that it is ready", timeout)

    def wait_told(self, condition: Callable[[Mapping[str, str]], bool], what: str, timeout: float = PATIENCE) -> None:
        """Wait until it has told systemd something since its start.

        :param condition: whether these assignments, of one message, are it.
        :raises AssertionError: it ended before, or took too long; with its log.
        """
        deadline, told = time.monotonic() + timeout, self._told
        if told is None:
            raise RuntimeError("the agent was not started")
        while not told.heard(condition, 0.02):
            if not self.running and not told.heard(condition, 0.02):
                raise AssertionError(f"the agent ended ({self.returncode}) and did not tell {what}:\n{self.log}")
            if time.monotonic() > deadline:
                raise AssertionError(f"the agent did not tell {what} within {timeout:g} s:\n{self.log}")

    def stop(self, timeout: float = PATIENCE) -> int:
        """Send SIGTERM and wait for the end; returns the exit code.

        :raises AssertionError: it did not end in time; with its log.
        """
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout: float = PATIENCE) -> int:
        """Wait for the end; returns the exit code, negative for the signal that killed it.

        :raises AssertionError: it did not end in time; with its log.
        """
        process = self._started
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the agent did not end within {timeout:g} s:\n{self.log}") from None

    def kill(self) -> None:
        """``kill -9`` and wait for the end; nothing happens when it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._told is not None:
            self._told.close()

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._started.send_signal(number)

    # --- what it is -------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._started.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for the signal that killed it; None while it runs."""
        return self._started.poll()

    @property
    def log(self) -> str:
        """What all its runs have written to stderr."""
        try:
            with open(self.log_file, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    @property
    def told(self) -> list[Mapping[str, str]]:
        """What it has told systemd since its start, one mapping for each message."""
        return self._told.all() if self._told is not None else []

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the agent was not started")
        return self._process


class _Notifications:
    """Hears what one process tells systemd, on an abstract socket of its own."""

    def __init__(self) -> None:
        name = f"volumehost-agent-{secrets.token_hex(8)}"
        self.address = f"@{name}"
        self._condition = threading.Condition()
        self._messages: list[Mapping[str, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.bind(f"\0{name}")
        threading.Thread(target=self._listen, name="volumehost-agent-told", daemon=True).start()

    def heard(self, condition: Callable[[Mapping[str, str]], bool], seconds: float) -> bool:
        """Wait at most some seconds for a message; whether it was there."""
        with self._condition:
            return self._condition.wait_for(lambda: any(map(condition, self._messages)), seconds)

    def all(self) -> list[Mapping[str, str]]:
        """All messages."""
        with self._condition:
            return list(self._messages)

    def close(self) -> None:
        """Hear nothing any more; the thread ends."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> None:
        with self._socket:
            while data := self._receive():
                lines = data.decode(errors="replace").splitlines()
                with self._condition:
                    self._messages.append(dict(line.partition("=")[::2] for line in lines))
                    self._condition.notify_all()

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(65536)
        except OSError:
            return b""
