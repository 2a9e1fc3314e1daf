"""What is in the directory and is not a registration socket (BR-24)."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading

import pytest

from volumehost_csi.registration import attempts

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def quick(monkeypatch) -> None:
    """Retries follow each other quickly; the pauses themselves are tested by calculation."""
    monkeypatch.setattr(attempts, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(attempts, "LONGEST_DELAY", 0.02)


def test_a_drivers_own_socket_is_left_alone_after_some_attempts(node, plugin, quick, caplog) -> None:
    """BR-24: csi.sock serves no Registration; quiet, bounded retries."""
    path = node.socket("csi.sock")
    with caplog.at_level(logging.INFO, "volumehost_csi.registration"):
        plugin("", driver_socket=path)
        status = node.wait_state(path, "ignored")
        node.wait_idle()
    assert status.attempts == attempts.ATTEMPTS_AT_OTHER_SOCKETS
    assert status.retry_at is None
    assert "not a registration socket" in status.error
    assert len([record for record in caplog.records if path in record.getMessage()]) == 1
    other = plugin(node.socket("a-reg.sock"))
    node.wait_registered("a.example.com", other.driver_socket)
    node.wait_idle()
    assert node.status(path).attempts == attempts.ATTEMPTS_AT_OTHER_SOCKETS


def test_another_socket_at_its_path_is_asked_afresh(node, plugin, quick) -> None:
    """BR-24, CSI-PM-12 improved."""
    path = node.socket("csi.sock")
    stranger = plugin("", driver_socket=path)
    node.wait_state(path, "ignored")
    stranger.stop()
    plugin(path)
    node.wait_registered("a.example.com")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak gRPC"), (b"", "does not speak gRPC"), (b"hi", "gRPC")],
)
def test_what_does_not_speak_grpc(node, answer, reason) -> None:
    """CSI-RAPI-05: told at once, and nothing is notified."""
    path = node.socket("other.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def answer_one() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(100)

        thread = threading.Thread(target=answer_one)
        thread.start()
        assert reason in node.wait_state(path, "failed").error
        thread.join()


def test_a_plugin_that_does_not_answer_in_time(node, plugin, wait_until, monkeypatch) -> None:
    """CSI-RAPI-06: GetInfo has a deadline of its own."""
    monkeypatch.setattr("volumehost_csi.registration.protocol.INFO_TIMEOUT", 0.05)
    held = threading.Event()

    class Slow(type(plugin(""))):
        def get_info(self, request, context):
            held.wait(30)
            return super().get_info(request, context)

    slow = Slow(node.socket("slow.sock"), "", name="slow.example.com")
    try:
        assert "GetInfo failed with DEADLINE_EXCEEDED" in node.wait_state(slow.registration_socket, "failed").error
        assert slow.statuses.empty()
    finally:
        held.set()
        slow.stop()


def test_a_socket_whose_path_is_too_long_for_the_kernel_is_reached_all_the_same(
    make_node, api, short_dir, plugin
) -> None:
    """CSI-WATCH-14 improved: through a descriptor of its directory."""
    from volumehost.hosts.standalone_host import StandaloneHost

    deep = f"{short_dir}/{'d' * 100}"
    os.makedirs(deep)
    node = make_node(StandaloneHost(deep, node_name="node-a"))
    fake = plugin(node.socket("a-reg.sock"), driver_socket=f"{deep}/csi.sock")
    assert len(fake.registration_socket) > 107
    node.wait_registered("a.example.com")
    node.close()


def test_grpc_is_not_imported_before_a_plugin_is_there() -> None:
    """A host whose pods use no CSI volume pays nothing for grpc, nor for a stale socket."""
    program = """
import os, socket, sys, tempfile, time
from volumehost.hosts.standalone_host import StandaloneHost
from volumehost_csi.registration.service import Registration
from volumehost_csi.registration.store import DriverStore
with tempfile.TemporaryDirectory() as root:
    os.makedirs(f"{root}/plugins_registry")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(f"{root}/plugins_registry/stale.sock")
    stale.close()
    registration = Registration(StandaloneHost(root), DriverStore())
    registration.start()
    deadline = time.monotonic() + 20
    while registration.manager.statuses()[0].state != "failed":
        assert time.monotonic() < deadline
    registration.stop()
    heavy = {"grpc", "google.protobuf", "prometheus_client"} & set(sys.modules)
    assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
