"""Whatever happens in the directory, in whatever order: in the end what is registered is what lies there (BR-21)."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Self

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from volumehost_csi.registration import attempts, operations
from volumehost_csi.registration.caches import DesiredSocket, PathCache
from volumehost_csi.registration.inotify import Inotify
from volumehost_csi.registration.manager import PluginManager
from volumehost_csi.registration.protocol import PluginInfo
from volumehost_csi.registration.scan import Marks, marks_of
from volumehost_csi.registration.watcher import RegistrationDirectory

from_names = st.sampled_from(["a.sock", "b.sock", "sub/a.sock", "sub/deep/c.sock"])
from_directories = st.sampled_from(["sub", "sub/deep", "other"])


def until(condition: Callable[[], Any], what: Callable[[], str]) -> None:
    deadline, pause = time.monotonic() + 20, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what()
        pause.wait(0.002)


class Disk(RuleBasedStateMachine):
    """Sockets that appear, leave and move. ``tokens`` tells which socket lies at a path: a new one for each bind."""

    @initialize()
    def begin(self) -> None:
        self.root = tempfile.mkdtemp(prefix="vh", dir="/tmp")
        self.registry = f"{self.root}/r"
        self.count = 0
        self.tokens: dict[str, int] = {}
        self.tokens_on_disk: dict[Marks | None, int] = {}
        self.begin_watching()

    def begin_watching(self) -> None:
        raise NotImplementedError

    def end_watching(self) -> None:
        raise NotImplementedError

    def path(self, name: str) -> str:
        return f"{self.registry}/{name}"

    def bind(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path)
        self.count += 1
        self.tokens[path] = self.tokens_on_disk[marks_of(path)] = self.count

    @rule(name=from_names)
    def make(self, name: str) -> None:
        if self.path(name) not in self.tokens:
            self.bind(self.path(name))

    @rule(name=from_names)
    def remove(self, name: str) -> None:
        if self.tokens.pop(self.path(name), None):
            os.unlink(self.path(name))

    @rule(name=from_names)
    def make_anew(self, name: str) -> None:
        """The new one may have the inode number of the old."""
        self.remove(name)
        self.make(name)

    @rule(name=from_names)
    def rename_over(self, name: str) -> None:
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.bind(f"{self.root}/new")
        os.rename(f"{self.root}/new", self.path(name))
        self.tokens[self.path(name)] = self.tokens.pop(f"{self.root}/new")

    @rule(name=from_names)
    def hidden(self, name: str) -> None:
        hidden = self.path(os.path.join(os.path.dirname(name), f".{os.path.basename(name)}"))
        if not os.path.lexists(hidden):
            os.makedirs(os.path.dirname(hidden), exist_ok=True)
            self.bind(hidden)
            del self.tokens[hidden]

    @rule(directory=from_directories)
    def remove_directory(self, directory: str) -> None:
        shutil.rmtree(self.path(directory), ignore_errors=True)
        self.tokens = {path: token for path, token in self.tokens.items() if os.path.lexists(path)}

    @precondition(lambda self: os.path.isdir(self.path("sub")) and not os.path.lexists(self.path("other")))
    @rule()
    def move_directory(self) -> None:
        os.rename(self.path("sub"), self.path("other"))
        self.tokens = {path.replace("/r/sub/", "/r/other/"): token for path, token in self.tokens.items()}

    def teardown(self) -> None:
        if hasattr(self, "root"):
            try:
                self.settle()
            finally:
                self.end_watching()
                shutil.rmtree(self.root)

    @rule()
    def settle(self) -> None:
        raise NotImplementedError


class CacheAndDisk(Disk):
    """The cache of desired sockets follows the disk; another socket at a path is another entry."""

    inotify: Callable[[], Inotify] = Inotify

    def begin_watching(self) -> None:
        self.known: dict[str, tuple[int, DesiredSocket]] = {}
        self.desired: PathCache[DesiredSocket] = PathCache()
        self.directory = RegistrationDirectory(
            self.registry, self.desired, inotify=type(self).inotify, poll_seconds=0.001
        )
        self.directory.open()

    def end_watching(self) -> None:
        self.directory.close()

    @rule()
    def look(self) -> None:
        """Some of the events are taken in, between others."""
        self.directory.wait(0)

    @rule()
    def settle(self) -> None:
        def settled() -> bool:
            self.directory.wait(0.01)
            return self.desired.snapshot().keys() == self.tokens.keys() and all(
                self.known.get(path, (token, None))[0] == token or self.known[path][1] != self.desired.get(path)
                for path, token in self.tokens.items()
            )

        until(settled, lambda: f"{sorted(self.desired.snapshot())} instead of {sorted(self.tokens)}")
        self.known = {path: (self.tokens[path], entry) for path, entry in self.desired.snapshot().items()}


class Polling(CacheAndDisk):
    """The same without inotify."""

    @staticmethod
    def inotify() -> Inotify:
        raise OSError(24, "too many instances")


class Plugin:
    """Stands in for a registration socket: says as its name the token of the socket that lies at its path now.

    By its marks, which go with it when it is renamed: what the test has noted of the path may be late by a moment.
    """

    tokens: Mapping[Marks | None, int]

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def connect(self) -> None:
        pass

    def close(self) -> None:
        pass

    def get_info(self) -> PluginInfo:
        token = type(self).tokens.get(marks_of(self.path))
        if token is None:
            raise OSError("gone meanwhile")
        return PluginInfo("T", str(token), "/endpoint", ("1.0",))

    def notify(self, registered: bool, reason: str = "") -> None:
        assert registered, reason


class Handler:
    """What is registered, by identity; calls that make no sense are kept."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.registered: dict[Hashable, str] = {}
        self.nonsense: list[str] = []

    def validate(self, name: str, endpoint: str, versions: Any, **_: Any) -> None:
        pass

    def register(
        self,
        name: str,
        endpoint: str,
        versions: Any,
        timeout: Any = None,
        *,
        identity: Hashable,
        replaces: Hashable,
        **_: Any,
    ) -> None:
        with self.lock:
            if identity in self.registered:
                self.nonsense.append(f"{identity} registered twice")
            self.registered.pop(replaces, None)
            self.registered[identity] = name

    def deregister(self, name: str, endpoint: str, *, identity: Hashable) -> None:
        with self.lock:
            self.registered.pop(identity, None)

    def close(self) -> None:
        pass


class ManagerAndDisk(Disk):
    """What is registered follows the disk, with operations on threads of their own."""

    def begin_watching(self) -> None:
        self.handler = Handler()
        Plugin.tokens = self.tokens_on_disk
        self.manager = PluginManager(self.registry, {"T": self.handler})
        self.manager.start()

    def end_watching(self) -> None:
        self.manager.stop(30)

    @rule()
    def settle(self) -> None:
        def settled() -> bool:
            with self.handler.lock:
                registered = {identity.path: name for identity, name in self.handler.registered.items()}
                alone = len(registered) == len(self.handler.registered)
            return alone and registered == {path: str(token) for path, token in self.tokens.items()}

        until(settled, lambda: f"{self.handler.registered} instead of {self.tokens}: {self.manager.statuses()}")
        assert self.handler.nonsense == []


_settings = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class TestCacheAndDisk(CacheAndDisk.TestCase):
    settings = _settings


class TestPolling(Polling.TestCase):
    settings = _settings


@pytest.fixture(autouse=True)
def plugin_stand_in(monkeypatch) -> None:
    """Only the gRPC conversation is left out: it is tested with real servers elsewhere; retries follow quickly."""
    monkeypatch.setattr(attempts, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(operations, "RegistrationSocket", Plugin)


class TestManagerAndDisk(ManagerAndDisk.TestCase):
    settings = _settings
