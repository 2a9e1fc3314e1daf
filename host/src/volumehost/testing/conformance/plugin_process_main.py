"""The process behind ``plugin_process``: reads one call a line, runs each in a fork of its own, answers a line.

Before the step that it was told, a fork kills itself with SIGKILL, as a power cut or the kernel's memory killer would.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from volumehost.spec import Spec, VolumeConfig
from volumehost.testing.conformance.driving import arguments_for, bring_up, let_go, take_down
from volumehost.testing.conformance.steps import SteppingMounter, Steps
from volumehost.testing.conformance.subject import load
from volumehost.testing.plugin_host import PluginTestHost

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.loader.loaded import LoadedPlugin

_DEADLINE = 25.0


class Described:
    """What the first line tells: the plugin, the volume, the host."""

    def __init__(self, description: dict[str, Any]) -> None:
        from volumehost.api.convert import to_object
        from volumehost.api.objects import PersistentVolume, Volume
        from volumehost.loader.sources import import_object, split_value

        self.thing = import_object(*split_value(description["target"]))
        self.directory: str = description["directory"]
        # Written by the check's own process.
        self.config: VolumeConfig = pickle.loads(base64.b64decode(description["config"]))  # noqa: S301
        self.store: str = description["store"]
        if description["volume"] is not None:
            self.spec = Spec.from_volume(to_object(Volume, description["volume"]))
        else:
            volume = to_object(PersistentVolume, description["persistent_volume"])
            self.spec = Spec.from_persistent_volume(volume, description["read_only"])

    def host(self, steps: Steps) -> PluginTestHost:
        """A host on the same root directory as the check's."""
        from volumehost.api.store import EmbeddedStore

        host = PluginTestHost(
            self.directory,
            volume_config=self.config,
            api=EmbeddedStore(self.store) if self.store else None,
        )
        host.use_mounter(SteppingMounter(host.get_mounter(), steps))
        return host


def run_call(described: Described, call: dict[str, Any]) -> dict[str, Any]:
    """Load the plugin and run the action; in the fork."""
    from volumehost.api.convert import to_object
    from volumehost.api.objects import Pod

    steps = Steps(call["kill_at"])
    sys.addaudithook(steps.audit)
    host = described.host(steps)
    _, plugin = load(described.thing, host)
    pod = to_object(Pod, call["pod"])
    answer: dict[str, Any] = {}
    steps.counting = True
    try:
        answer = _ACTIONS[call["action"]](plugin, described.spec, pod, host.get_node_name())
        steps.end()
    except Exception as raised:  # noqa: BLE001 - told to the check, which decides what it means
        answer = {"error": f"{type(raised).__name__}: {raised}"}
    steps.counting = False
    return {**answer, "steps": steps.taken}


def _set_up(plugin: LoadedPlugin, spec: Spec, pod: Pod, node: str) -> dict[str, Any]:
    mounter = bring_up(plugin, spec, pod, node, arguments_for(pod))
    return {"value": mounter.get_path(), "read_only": mounter.get_attributes().read_only}


def _tear_down(plugin: LoadedPlugin, spec: Spec, pod: Pod, node: str) -> dict[str, Any]:
    take_down(plugin, spec, pod.metadata.uid)
    let_go(plugin, spec, node)
    return {}


def _volume_name(plugin: LoadedPlugin, spec: Spec, pod: Pod, node: str) -> dict[str, Any]:
    del pod, node
    return {"value": plugin.get_volume_name(spec)}


_ACTIONS: dict[str, Callable[[LoadedPlugin, Spec, Pod, str], dict[str, Any]]] = {
    "set_up": _set_up,
    "tear_down": _tear_down,
    "volume_name": _volume_name,
}


def fork_and_run(described: Described, call: dict[str, Any]) -> dict[str, Any]:
    """Run the call in a fork and wait for its answer or its death."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            answer = {**run_call(described, call), "modules": sorted(sys.modules)}
        except BaseException as error:  # noqa: BLE001 - a fork must never return into its parent's loop
            answer = {"fatal": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(OSError), open(writing, "wb") as pipe:
            pipe.write(json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    try:
        text = _read_all(reading, time.monotonic() + _DEADLINE)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it has answered, or it hangs
        os.waitpid(pid, 0)
    if text is None:
        return {"fatal": f"{call['action']} did not end within {_DEADLINE:g} s"}
    if not text:
        return {"steps": [], "killed": True}
    told: dict[str, Any] = json.loads(text)
    _import_ahead(told.pop("modules", []))
    return told


def _read_all(descriptor: int, deadline: float) -> bytes | None:
    """Everything until the end, None when the deadline passes."""
    text = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return text
        text += chunk


def _import_ahead(names: list[str]) -> None:
    """What the first fork imported need not be imported by every one after it."""
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def main() -> None:
    """Answer until the input ends."""
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a plugin prints must not stand among the answers
    described: Described | None = None
    for line in sys.stdin.buffer:
        question = json.loads(line)
        try:
            if described is None:
                described, answer = Described(question), {}
            else:
                answer = fork_and_run(described, question)
        except Exception as error:  # noqa: BLE001 - told to the check
            answer = {"fatal": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
