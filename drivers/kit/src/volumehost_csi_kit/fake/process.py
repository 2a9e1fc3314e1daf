"""A fake driver in a process of its own, which a test can kill and start again."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any, Self

from volumehost_csi_kit.fake.control import ControlClient
from volumehost_csi_kit.fake.recording import Call, read_calls
from volumehost_csi_kit.fake.rules import Rule


class FakeDriverProcess:
    """``python -m volumehost_csi_kit.fake`` at ``endpoint``, with its files below ``directory``; a context manager.

    The volumes and the calls outlive the process: after :meth:`kill` and :meth:`start` they are still known. The script
    does not; give it again. Further arguments are those of :class:`FakeConfig`; with ``null=True`` it is the driver
    without work, which records nothing. ``environment`` is added to this process's own.
    """

    def __init__(
        self,
        endpoint: str,
        directory: str,
        *,
        registration_dir: str = "",
        null: bool = False,
        environment: dict[str, str] | None = None,
        **changes: Any,
    ) -> None:
        self.endpoint = endpoint
        self.registration_dir = registration_dir
        self.directory = directory
        self._changes = changes
        self._null = null
        self._environment = environment or {}
        self._calls_path = os.path.join(directory, "calls.jsonl")
        self._log_path = os.path.join(directory, "log")
        self._control = ControlClient(os.path.join(directory, "control.sock"))
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int | None:
        """The process; None while it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, timeout: float = 30.0) -> None:
        """Start it, and wait until it serves. It dies with this process, however that ends.

        :raises RuntimeError: it ends instead, or does not serve within ``timeout`` seconds; says what it logged.
        """
        if self.pid is not None:
            raise RuntimeError(f"the fake driver runs already, as process {self.pid}")
        os.makedirs(self.directory, exist_ok=True)
        data = os.path.join(self.directory, "data")
        os.makedirs(data, exist_ok=True)
        command = [sys.executable, "-m", "volumehost_csi_kit.fake", "--endpoint", self.endpoint, "--attached"]
        command += ["--registration-dir", self.registration_dir, "--log-level", "warning" if self._null else "debug"]
        if self._null:
            command += ["--null", *(f"--{k.replace('_', '-')}={v}" for k, v in self._changes.items())]
        else:
            command += ["--control", os.path.join(self.directory, "control.sock"), "--calls", self._calls_path]
            command += ["--state", os.path.join(self.directory, "state.json")]
            command += ["--config", json.dumps({"data_dir": data, **self._changes})]
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], timeout)[0] or not output.readline():
            self.kill()
            raise RuntimeError(f"the fake driver did not start: {self.log()}")

    def stop(self, timeout: float = 30.0) -> int:
        """Ask it to end (SIGTERM), release what hangs, and wait; its exit code."""
        if self.pid is not None and not self._null:
            self.release()
        return self._end(signal.SIGTERM, timeout)

    def kill(self, timeout: float = 30.0) -> None:
        """Kill it (SIGKILL); its socket's file stays."""
        self._end(signal.SIGKILL, timeout)

    def wait(self, timeout: float = 30.0) -> int:
        """Wait until it has ended, by script say; its exit code, negative for a signal.

        :raises subprocess.TimeoutExpired: it has not, after ``timeout`` seconds.
        """
        if self._process is None:
            return 0
        code = self._process.wait(timeout)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return code

    def script(self, *rules: Rule) -> None:
        """Put more rules in force, behind those that are."""
        self._control.request("script", rules=[rule.to_json() for rule in rules])

    def clear_script(self) -> None:
        """Behave well again."""
        self._control.request("clear_script")

    def release(self) -> None:
        """Let all calls that hang or are delayed go on."""
        self._control.request("release")

    def configure(self, **changes: Any) -> None:
        """Be something else, or able to do something else, from the next call on, and after a restart."""
        self._changes.update(changes)
        self._control.request("configure", changes=changes)

    def connections(self) -> int:
        """How many connections have brought calls since it was started."""
        return int(self._control.request("connections"))

    def state(self) -> dict[str, Any]:
        """Its volumes and snapshots by id, as plain values: what is staged and published where."""
        found: dict[str, Any] = self._control.request("state")
        return found

    def calls(self, name: str = "") -> list[Call]:
        """What it was asked so far, also before it was last started, in the order of the beginning."""
        return [call for call in read_calls(self._calls_path) if name in ("", call.name)]

    def wait_for(self, name: str, count: int = 1, *, ended: bool = False, timeout: float = 30.0) -> list[Call]:
        """Wait until there have been ``count`` calls of that name, with ``ended`` until as many are answered.

        :raises TimeoutError: there were not; says which there were.
        """
        deadline = time.monotonic() + timeout
        while True:
            calls = self.calls()
            found = [call for call in calls if call.name == name]
            if sum(bool(call.code) or not ended for call in found) >= count:
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {timeout} s; calls: {[(call.name, call.code) for call in calls]}")
            time.sleep(0.005)

    def log(self) -> str:
        """What it has logged, of all its starts."""
        try:
            with open(self._log_path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _end(self, number: signal.Signals, timeout: float) -> int:
        if self._process is not None:
            self._process.send_signal(number)
        return self.wait(timeout)
