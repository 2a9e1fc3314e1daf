"""A process of its own for a plugin, in which calls can be killed at every step: the check's side.

The other side is ``plugin_process_main``. It imports what the plugin needs once, and forks for every call, so that each
runs in a process that is fresh and dies without notice.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from volumehost.testing.conformance.check import fail

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.testing.conformance.trial import Trial

_START_TIMEOUT = 30.0
_CALL_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call in the other process ended.

    ``steps`` are the steps that it took, in words; ``killed`` says that it was killed before one of them. ``value`` is
    what it returned (of ``set_up`` the path, with ``read_only`` from the attributes), ``error`` what it raised.
    """

    steps: tuple[str, ...] = ()
    killed: bool = False
    value: str = ""
    error: str = ""
    read_only: bool = False


class PluginProcess:
    """Runs calls of the trial's plugin on the trial's root directory in processes of their own."""

    def __init__(self, trial: Trial) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-m", "volumehost.testing.conformance.plugin_process_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self._pending = b""
        try:
            self._ask(_description(trial), _START_TIMEOUT)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def call(self, action: str, pod: Pod, *, kill_at: int | None = None) -> Outcome:
        """Run an action in a process of its own.

        :param action: ``set_up``, ``tear_down`` or ``volume_name``.
        :param kill_at: kill the process with SIGKILL before the step of that number, counted from 0; the number of all
            steps means: when all is done and before it returns.
        """
        from volumehost.api.convert import to_wire

        answer = self._ask({"action": action, "pod": to_wire(pod), "kill_at": kill_at}, _CALL_TIMEOUT)
        return Outcome(**{**answer, "steps": tuple(answer["steps"])})

    def _ask(self, question: dict[str, Any], timeout: float) -> dict[str, Any]:
        stdin = self._process.stdin
        if stdin is None:
            fail("the process of the plugin has no input")
        try:
            stdin.write(json.dumps(question).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            fail(f"the process of the plugin ended with {self._process.wait(1.0)}")
        answer: dict[str, Any] = json.loads(self._read_line(timeout, str(question.get("action", "starting"))))
        if answer.get("fatal"):
            fail(f"in a process of its own: {answer['fatal']}")
        return answer

    def _read_line(self, timeout: float, what: str) -> bytes:
        deadline = time.monotonic() + timeout
        stdout = self._process.stdout
        while b"\n" not in self._pending and stdout is not None:
            ready, _, _ = select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                fail(f"{what} in a process of its own did not end within {timeout:g} s")
            chunk = os.read(stdout.fileno(), 65536)
            if not chunk:
                fail(f"{what}: the process of the plugin ended with {self._process.wait(1.0)}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line


def _description(trial: Trial) -> dict[str, Any]:
    """All that the other process needs to know."""
    from volumehost.api.convert import to_wire
    from volumehost.api.store import EmbeddedStore

    host, spec = trial.host, trial.spec
    api = host.get_kube_client()
    volume, persistent_volume = spec.volume, spec.persistent_volume
    return {
        "target": trial.subject.target,
        "directory": os.path.dirname(host.root_dir),
        "config": base64.b64encode(pickle.dumps(host.get_volume_config(trial.subject.name))).decode(),
        "store": api.path if isinstance(api, EmbeddedStore) else "",
        "volume": to_wire(volume) if volume is not None else None,
        "persistent_volume": to_wire(persistent_volume) if persistent_volume is not None else None,
        "read_only": spec.read_only,
    }
