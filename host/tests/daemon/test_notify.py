"""sd_notify over a real datagram socket."""

import os
import socket

import pytest

from volumehost.daemon.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def listener(request, tmp_path):
    """(what the environment would name, the socket behind it)."""
    address = str(tmp_path / "notify") if request.param == "path" else f"@volumehost-test-{os.getpid()}-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
        opened.bind(address if request.param == "path" else f"\0{address[1:]}")
        opened.settimeout(30)
        yield address, opened


def test_each_state_is_one_datagram(listener):
    address, opened = listener
    notifier = Notifier(address, watchdog=2.0)
    notifier.ready()
    notifier.status("three\nlines of\ttext")
    notifier.status("three lines of text")  # the same again
    notifier.alive()
    notifier.extend(1.5)
    notifier.reloading()
    notifier.stopping()
    received = [opened.recv(4096).decode() for _ in range(6)]
    assert received[:4] == ["READY=1", "STATUS=three lines of text", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=1500000"]
    assert received[4].startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert received[5] == "STOPPING=1"


def test_without_a_watchdog_there_is_no_sign_of_life(listener):
    address, opened = listener
    notifier = Notifier(address)
    notifier.alive()
    notifier.ready()
    assert opened.recv(4096) == b"READY=1"


def test_a_reader_that_does_not_read_holds_nobody_up(listener):
    address, _ = listener
    notifier = Notifier(address)
    for number in range(5000):  # more than any queue of datagrams holds
        notifier.send(STATUS=str(number))


@pytest.mark.parametrize("address", ["", "/nowhere/at/all", "@nobody-listens-here"])
def test_nobody_listens(address):
    notifier = Notifier(address, watchdog=1.0)
    notifier.ready()
    notifier.alive()
    assert notifier.listens == bool(address)


@pytest.mark.parametrize(
    ("watchdog", "pid", "seconds"),
    [
        ("2000000", "", 2.0),
        ("2000000", "own", 2.0),
        ("2000000", "1", None),
        ("0", "", None),
        ("soon", "", None),
        (None, "", None),
    ],
)
def test_the_environment_is_taken_and_not_handed_on(monkeypatch, watchdog, pid, seconds):
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/notify")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    if watchdog is not None:
        monkeypatch.setenv("WATCHDOG_USEC", watchdog)
    notifier = Notifier.from_environment()
    assert notifier.listens
    assert notifier.watchdog_seconds == seconds
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & os.environ.keys()
