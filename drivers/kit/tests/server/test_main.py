"""``serve`` as a program: flags, environment, signals, exit codes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost_csi_kit import csi, registration, stubs

PROGRAM = str(Path(__file__).with_name("acme_driver.py"))


@pytest.fixture
def start(directory):
    """Starts the program with only this environment; kills what runs at the end."""
    running = []

    def start(*arguments, **environment):
        process = subprocess.Popen(
            [sys.executable, PROGRAM, *arguments],
            env={"PATH": os.environ["PATH"], **environment},
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate(timeout=30)


def ended(process):
    """Exit code and standard error."""
    _, log = process.communicate(timeout=30)
    return process.returncode, log


def serving(process):
    assert process.stdout.readline() == "serving\n", process.stderr.read()
    return process


def test_flags(start, directory, channel):
    endpoint, registry = f"unix://{directory}/csi.sock", f"{directory}/registry"
    flags = ["--endpoint", endpoint, "--node-id", "node-7", "--registration-dir", registry, "--name", "d.example.com"]
    process = serving(start(*flags))
    node = stubs.NodeStub(channel(endpoint))
    assert node.NodeGetInfo(csi.NodeGetInfoRequest(), timeout=30).node_id == "node-7"
    stub = stubs.RegistrationStub(channel(f"{registry}/d.example.com-reg.sock"))
    assert stub.GetInfo(registration.InfoRequest(), timeout=30).name == "d.example.com"
    process.send_signal(signal.SIGTERM)
    code, log = ended(process)
    assert code == 0, log
    assert "INFO volumehost_csi_kit.server stopped" in log
    assert os.listdir(directory) == ["registry"]
    assert os.listdir(registry) == []


def test_environment(start, directory, channel):
    """What a volume host gives to the drivers that it starts."""
    endpoint = f"unix://{directory}/csi.sock"
    process = serving(
        start(CSI_ENDPOINT=endpoint, KUBE_NODE_NAME="node-8", CSI_REGISTRATION_DIR=f"{directory}/registry")
    )
    node = stubs.NodeStub(channel(endpoint))
    assert node.NodeGetInfo(csi.NodeGetInfoRequest(), timeout=30).node_id == "node-8"
    assert os.listdir(f"{directory}/registry") == ["disk.acme.example.com-reg.sock"]
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 0


def test_the_host_name_is_the_nodes(start, directory, channel):
    serving(start("--endpoint", f"{directory}/csi.sock"))
    node = stubs.NodeStub(channel(f"{directory}/csi.sock"))
    assert node.NodeGetInfo(csi.NodeGetInfoRequest(), timeout=30).node_id == socket.gethostname()


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ([], "no endpoint: give --endpoint unix:///path/to/csi.sock or set CSI_ENDPOINT"),
        (["--endpoint", "tcp://127.0.0.1:1"], "CSI is served on unix sockets only"),
        (["--endpoint", "unix:///proc/nobody/csi.sock"], "CRITICAL volumehost_csi_kit.server cannot start: endpoint"),
        (["--endpoint", "/tmp"], "something is there that is not a socket"),
        (["--endpoint", "/run/x.sock", "--broken"], "cannot start: no such backend"),
        (["--endpoint", "/run/x.sock", "--name", "a b"], "cannot start: 'a b' is not a driver's name"),
        (["--endpoint", "/run/x.sock", "--log-level", "loud"], "invalid choice: 'loud'"),
    ],
)
def test_what_it_cannot_start_with(start, flags, reason):
    code, log = ended(start(*flags))
    assert code == 2
    assert reason in log
    assert "Traceback" not in log


@pytest.fixture
def publishing(start, directory, channel, capability):
    """A process in which a call runs that will not end; the arguments are flags."""

    def publish(*flags):
        process = serving(start("--endpoint", f"{directory}/csi.sock", *flags))
        request = csi.NodePublishVolumeRequest(volume_id="v", target_path="/t", volume_capability=capability())
        stub = stubs.NodeStub(channel(f"{directory}/csi.sock"))
        process.call = stub.NodePublishVolume.future(request, timeout=60)
        assert process.stdout.readline() == "publishing\n"
        return process

    return publish


def test_a_call_that_does_not_end_does_not_hold_it_up(publishing):
    """BR-52: threads in a call would keep an ordinary exit waiting for ever."""
    process = publishing("--grace", "0")
    process.send_signal(signal.SIGTERM)
    code, log = ended(process)
    assert code == 1
    assert "call=NodePublishVolume has been running for" in log


def test_a_second_signal_ends_it_at_once(publishing):
    process = publishing("--grace", "3600")
    process.send_signal(signal.SIGTERM)
    for line in process.stderr:
        if "stopping; running calls have 3600 s to end" in line:
            break
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 1


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_told(start, directory, abstract):
    address = f"{directory}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + address if abstract else address)
        listener.settimeout(30)
        process = start("--endpoint", f"{directory}/csi.sock", NOTIFY_SOCKET="@" + address if abstract else address)
        assert listener.recv(100) == b"READY=1"
        serving(process)
        process.send_signal(signal.SIGTERM)
        assert listener.recv(100) == b"STOPPING=1"
    assert ended(process)[0] == 0


def test_nobody_to_be_told(start, directory):
    process = serving(start("--endpoint", f"{directory}/csi.sock", NOTIFY_SOCKET=f"{directory}/nobody"))
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 0
