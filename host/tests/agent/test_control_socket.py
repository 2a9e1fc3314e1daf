"""The control socket: who may call, what becomes of bad calls, of restarts, and of too many callers."""

import contextlib
import http.client
import json
import os
import socket
import stat
import threading
from types import SimpleNamespace

import pytest

from volumehost.agent.client import AgentManager, agent_is_there
from volumehost.agent.connection import Connection
from volumehost.agent.service import MOST_CALLERS, ControlService
from volumehost.agent.socket_path import LONGEST_PATH
from volumehost.errors import AgentGoneError, ObjectNotFoundError, VolumeHostError, WaitTimeoutError
from volumehost.mount.deadline import in_seconds
from volumehost.node.status.records import PodStatus, VolumeStatus

STATUS = PodStatus(
    "default", "web", "uid-1", "failed", (VolumeStatus("data", "failed", attempts=2, error="no", retry_in=1.5),)
)


class Manager:
    """Answers like a volume manager that has one pod."""

    def __init__(self, root_dir):
        self.root_dir = str(root_dir)
        self.parts = SimpleNamespace(in_cluster=False)
        self.waiting = threading.Event()
        self.go_on = threading.Event()
        self.timeouts = []

    def status(self):
        return [STATUS]

    def unmount_all(self, *, timeout):
        self.timeouts.append(timeout)
        raise WaitTimeoutError(f"mounted volumes=[data] after {in_seconds(timeout)}", details=["line"])

    @property
    def api(self):
        return self

    def list(self, _kind):
        raise ObjectNotFoundError("no such list") if self.waiting is None else _BlockedError(self)


class _BlockedError(Exception):
    def __init__(self, manager):
        manager.waiting.set()
        manager.go_on.wait(30)
        super().__init__("went on")


@pytest.fixture
def manager(tmp_path):
    return Manager(tmp_path)


@pytest.fixture
def service(manager):
    service = ControlService(manager)
    service.start()
    yield service
    manager.go_on.set()
    service.stop()


def client(root_dir):
    return AgentManager(str(root_dir), lambda: pytest.fail("the store is not needed"))


def test_a_status_arrives_as_it_is(service, tmp_path):
    with client(tmp_path) as agent:
        assert agent.status() == [STATUS]
        assert agent.status() == [STATUS]  # on the same connection


def test_only_its_owner_may_connect(service, tmp_path):
    mode = os.stat(tmp_path / "agent.sock").st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_the_socket_goes_with_the_service(manager, tmp_path):
    service = ControlService(manager)
    service.start()
    assert agent_is_there(str(tmp_path))
    service.stop()
    assert not agent_is_there(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_the_socket_of_a_killed_agent_is_replaced(manager, tmp_path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "agent.sock"))
    (tmp_path / "agent.sock.new").write_text("interrupted")
    assert not agent_is_there(str(tmp_path))
    service = ControlService(manager)
    service.start()
    try:
        with client(tmp_path) as agent:
            assert agent.status() == [STATUS]
    finally:
        service.stop()


def test_a_root_directory_with_a_long_path(tmp_path):
    """The kernel takes 107 bytes."""
    root = tmp_path / ("d" * 100) / ("e" * 100)
    root.mkdir(parents=True)
    assert len(str(root)) > LONGEST_PATH
    service = ControlService(Manager(root))
    service.start()
    try:
        with client(root) as agent:
            assert agent.status() == [STATUS]
    finally:
        service.stop()


def test_nobody_there(tmp_path):
    with pytest.raises(AgentGoneError) as caught, client(tmp_path):
        pytest.fail("entered")
    assert "no agent runs" in caught.value.hint


def test_a_call_goes_on_with_the_next_agent(manager, tmp_path):
    """Every call may be repeated: the agent may have been restarted meanwhile."""
    service = ControlService(manager)
    service.start()
    with client(tmp_path) as agent:
        assert agent.status() == [STATUS]
        service.stop()
        agent._connection.close()  # the end of the process does that
        following = ControlService(manager)
        again = threading.Timer(0.3, following.start)
        again.start()
        try:
            assert agent.status() == [STATUS]
        finally:
            again.join()
            following.stop()


def test_an_agent_that_does_not_come_back(manager, tmp_path, monkeypatch):
    monkeypatch.setattr("volumehost.agent.connection.RESTART_SECONDS", 0.2)
    service = ControlService(manager)
    service.start()
    with client(tmp_path) as agent:
        service.stop()
        agent._connection.close()
        with pytest.raises(AgentGoneError):
            agent.status()


def test_a_wait_in_turns_tells_the_whole_time(service, manager, tmp_path, monkeypatch):
    monkeypatch.setattr("volumehost.agent.client.LONGEST_WAIT", 0.01)
    monkeypatch.setattr(manager, "list", lambda _kind: _Items(), raising=False)
    with client(tmp_path) as agent, pytest.raises(WaitTimeoutError) as caught:
        agent.unmount_all(timeout=0.05)
    assert caught.value.reason == "mounted volumes=[data] after 0.05 s"
    assert caught.value.details == ("line",)
    assert len(manager.timeouts) > 1
    assert max(manager.timeouts) <= 0.01


class _Items:
    items = ()


def test_an_unknown_call_says_which_there_are(service, tmp_path):
    connection = Connection(f"{tmp_path}/agent.sock")
    connection.connect()
    with pytest.raises(VolumeHostError, match="no call 'reboot'") as caught:
        connection.call("reboot")
    assert "wait_for_pod" in caught.value.hint
    connection.close()


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/status", b"[]", {}),
        ("/v1/status", b"{", {}),
        ("/v1/status", b"\xff", {}),
        ("/v1/unmount_pod", b'{"name": 3}', {}),
        ("/v1/unmount_pod", b'{"name": "a", "namespace": "b", "timeout": "x"}', {}),
        ("/v1/wait_for_pod", b"{}", {}),
        ("/v1/object_progress", b'{"kind": "nonsense"}', {}),
        ("/status", b"{}", {}),
        ("/v1/status", b"{}", {"Content-Length": "999999999999"}),
        ("/v1/status", b"{}", {"Content-Length": "-1"}),
    ],
)
def test_bad_calls_get_an_error(service, manager, tmp_path, path, body, headers, monkeypatch):
    monkeypatch.setattr(manager, "get", lambda *_a: pytest.fail("found"), raising=False)
    raw = http.client.HTTPConnection("localhost")
    raw.sock = socket.socket(socket.AF_UNIX)
    raw.sock.connect(f"{tmp_path}/agent.sock")
    with contextlib.closing(raw):
        with contextlib.suppress(BrokenPipeError):  # it may hang up before it has read all
            raw.request("POST", path, body, {"Content-Length": str(len(body)), **headers})
        answer = json.loads(raw.getresponse().read())
    assert answer["error"]["fields"]["reason"]
    with client(tmp_path) as agent:
        assert agent.status() == [STATUS]


def test_callers_are_bounded(service, manager, tmp_path):
    """BR-52: what hangs in calls does not make threads without end; the rest is told to come again."""
    held = []
    for _ in range(MOST_CALLERS):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"{tmp_path}/agent.sock")
        connection.sendall(b"POST /v1/unmount_all HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        held.append(connection)
    assert manager.waiting.wait(30)
    beyond = socket.socket(socket.AF_UNIX)
    beyond.settimeout(20)
    beyond.connect(f"{tmp_path}/agent.sock")
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        beyond.sendall(b"POST /v1/status HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        assert beyond.recv(100) == b""
    manager.go_on.set()
    for connection in (*held, beyond):
        connection.close()


def test_a_defect_is_told_and_logged(service, manager, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(manager, "status", lambda: {}["x"])
    with client(tmp_path) as agent, pytest.raises(VolumeHostError, match="KeyError"):
        agent.status()
    assert "call status of the control socket failed" in caplog.text
