"""Real registration sockets, in the test's process and in their own; a host over an embedded store."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from volumehost.api.objects import CSINode, Node
from volumehost.api.store import EmbeddedStore
from volumehost.hosts.standalone_host import StandaloneHost
from volumehost_csi.registration.service import Registration
from volumehost_csi.registration.store import DriverStore

HERE = os.path.dirname(__file__)
PROGRAM = os.path.join(HERE, "fake_plugin.py")

_spec = importlib.util.spec_from_file_location("fake_plugin", PROGRAM)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """What ``condition`` returns, once that is true."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (result := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s for: {what}"
        pause.wait(0.005)
    return result


@pytest.fixture(name="wait_until")
def wait_until_fixture():
    return wait_until


@pytest.fixture
def short_dir() -> Iterator[str]:
    """A directory whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="vh", dir="/tmp") as path:
        yield path


@pytest.fixture
def plugin(short_dir) -> Iterator[Callable[..., Any]]:
    """``plugin(registration_socket, name=...)``: a FakePlugin of this process with a driver socket of its own."""
    made: list[Any] = []

    def make(registration_socket: str = "", **says: Any) -> Any:
        driver_socket = says.pop("driver_socket", f"{short_dir}/driver-{len(made)}.sock")
        made.append(_module.FakePlugin(registration_socket, driver_socket, **says))
        return made[-1]

    yield make
    for each in made:
        each.stop()


class PluginProcess:
    """A FakePlugin in a process of its own."""

    def __init__(self, registration_socket: str, driver_socket: str, says: dict[str, Any]) -> None:
        command = [sys.executable, PROGRAM, registration_socket, driver_socket, json.dumps(says)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "serving\n"

    def told(self) -> tuple[bool, str]:
        """The next status that it is told."""
        return tuple(json.loads(self.process.stdout.readline()))

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def terminate(self) -> None:
        self.process.terminate()
        self.end()

    def end(self) -> None:
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture
def process(short_dir) -> Iterator[Callable[..., PluginProcess]]:
    """``process(registration_socket, driver_socket, name=...)``: a PluginProcess, killed at the end."""
    made: list[PluginProcess] = []

    def make(registration_socket: str, driver_socket: str, **says: Any) -> PluginProcess:
        made.append(PluginProcess(registration_socket, driver_socket, says))
        return made[-1]

    yield make
    for each in made:
        if each.process.poll() is None:
            each.process.kill()
        each.end()


@pytest.fixture
def api(short_dir) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(f"{short_dir}/api.db") as store:
        yield store


@pytest.fixture
def host(short_dir, api) -> StandaloneHost:
    """A node and controller at once, with the embedded store."""
    return StandaloneHost(short_dir, node_name="node-a", api=api)


@pytest.fixture
def bare_host(short_dir) -> StandaloneHost:
    """A node without any API."""
    return StandaloneHost(short_dir, node_name="node-a")


class WorkingNode:
    """All of the room at work over one host."""

    def __init__(self, host: StandaloneHost) -> None:
        self.host = host
        self.store = DriverStore()
        self.registration = Registration(host, self.store)
        self.handler, self.manager = self.registration.handler, self.registration.manager

    @property
    def directory(self) -> str:
        return self.host.get_plugins_registry_dir()

    def socket(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def endpoint(self, name: str) -> str:
        instance = self.store.get(name)
        return instance.endpoint if instance is not None else ""

    def status(self, path: str) -> Any:
        return next((each for each in self.manager.statuses() if each.path == path), None)

    def wait_registered(self, name: str, endpoint: str = "") -> None:
        wait_until(
            lambda: self.endpoint(name) and (not endpoint or self.endpoint(name) == endpoint),
            f"{name} registered: {self.manager.statuses()}",
        )

    def wait_gone(self, name: str) -> None:
        wait_until(lambda: not self.endpoint(name), f"{name} gone")

    def wait_state(self, path: str, state: str) -> Any:
        return wait_until(
            lambda: (status := self.status(path)) is not None and status.state == state and status,
            f"{path} {state}",
        )

    def wait_idle(self) -> None:
        """Until no operation runs."""
        wait_until(lambda: not self.manager._running, "no operation under way")

    def csi_node(self) -> CSINode:
        return self.host.get_kube_client().get(CSINode, "node-a")

    def node(self) -> Node:
        return self.host.get_kube_client().get(Node, "node-a")

    def close(self) -> None:
        self.registration.stop(30)
        self.store.close()


@pytest.fixture
def new_threads() -> Callable[[str], list[str]]:
    """The names that begin so, of the threads that the test has started and that have not ended."""
    before = set(threading.enumerate())
    return lambda start: [
        each.name for each in threading.enumerate() if each not in before and each.name.startswith(start)
    ]


@pytest.fixture
def make_node(short_dir, new_threads) -> Iterator[Callable[..., WorkingNode]]:
    made: list[WorkingNode] = []

    def make(host: StandaloneHost, *, start: bool = True) -> WorkingNode:
        node = WorkingNode(host)
        made.append(node)
        if start:
            node.registration.start()
        return node

    yield make
    for each in made:
        each.close()
    assert not new_threads("volumehost-reg")


@pytest.fixture
def node(make_node, bare_host) -> WorkingNode:
    """At work, without an API."""
    return make_node(bare_host)


@pytest.fixture
def api_node(make_node, host) -> WorkingNode:
    """At work, with the embedded store."""
    return make_node(host)
