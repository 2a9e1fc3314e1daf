"""The fake driver as a process: killed, started again, steered from outside; never left behind."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys

import pytest

from volumehost_csi_kit import csi, registration, stubs
from volumehost_csi_kit.fake import FakeDriver, FakeDriverProcess, Rule
from volumehost_csi_kit.fake.control import ControlClient, ControlServer

T = {"timeout": 30, "wait_for_ready": True}


@pytest.fixture
def process(directory):
    """A fake driver's process, killed at the end."""
    with FakeDriverProcess(
        f"unix://{directory}/csi.sock", f"{directory}/files", registration_dir=f"{directory}/registry", version="7"
    ) as driver:
        yield driver


def test_what_it_was_given(process, connect, directory, channel):
    info = connect(process.endpoint).identity.GetPluginInfo(csi.GetPluginInfoRequest(), **T)
    assert (info.name, info.vendor_version) == ("fake.csi.example.com", "7")
    stub = stubs.RegistrationStub(channel(f"{directory}/registry/fake.csi.example.com-reg.sock"))
    assert stub.GetInfo(registration.InfoRequest(), timeout=30).endpoint == f"{directory}/csi.sock"
    with pytest.raises(RuntimeError, match="runs already"):
        process.start()
    assert process.stop() == 0
    assert process.pid is None
    assert sorted(os.listdir(directory)) == ["files", "registry"]
    assert "stopped" in process.log()


def test_volumes_and_calls_outlive_a_kill(process, connect, requests):
    rpc, volume = connect(process.endpoint), requests()
    rpc.node.NodeStageVolume(volume.stage, **T)
    before = process.pid
    process.kill()
    assert process.pid is None
    assert os.path.exists(process.endpoint.removeprefix("unix://"))
    process.start()
    assert process.state()["volumes"]["v"]["staged"] == volume.staging
    rpc.node.NodeUnstageVolume(volume.unstage, **T)
    calls = process.wait_for("NodeUnstageVolume", ended=True)
    assert [(call.code, call.pid) for call in calls] == [("OK", process.pid)]
    assert [(call.name, call.pid) for call in process.calls("NodeStageVolume")] == [("NodeStageVolume", before)]
    assert process.calls("NodeStageVolume")[0].request == volume.stage


@pytest.mark.parametrize("when", ["before", "after"])
def test_death_by_script(process, connect, requests, failure, when):
    rpc, volume = connect(process.endpoint), requests()
    process.script(Rule("NodeStageVolume", die=True, when=when))
    assert failure(rpc.node.NodeStageVolume, volume.stage)[0] == "UNAVAILABLE"
    assert process.wait() == -signal.SIGKILL
    process.start()
    assert ("v" in process.state()["volumes"]) is (when == "after")
    assert [call.code for call in process.calls("NodeStageVolume")] == [""]


def test_it_is_steered(process, connect, failure):
    rpc = connect(process.endpoint)
    process.script(Rule("Probe", code="INTERNAL", times=None))
    assert failure(rpc.identity.Probe, csi.ProbeRequest())[0] == "INTERNAL"
    process.clear_script()
    process.configure(ready=False, controller=["LIST_VOLUMES"])
    assert not rpc.identity.Probe(csi.ProbeRequest(), **T).ready.value
    assert process.connections() == 1
    process.script(Rule("Probe", hang=True))
    call = rpc.identity.Probe.future(csi.ProbeRequest(), timeout=60)
    process.wait_for("Probe", 3)
    process.release()
    call.result()
    process.kill()
    process.start()
    assert not rpc.identity.Probe(csi.ProbeRequest(), **T).ready.value, "what was configured lasts"


def test_it_stops_although_a_call_hangs(process, connect):
    process.script(Rule("Probe", hang=True))
    call = connect(process.endpoint).identity.Probe.future(csi.ProbeRequest(), timeout=60)
    process.wait_for("Probe")
    assert process.stop() == 0
    assert call.result().ready.value


def test_calls_that_do_not_come(process, connect):
    connect(process.endpoint).identity.Probe(csi.ProbeRequest(), **T)
    process.wait_for("Probe", ended=True)
    with pytest.raises(TimeoutError, match=r"not within 0\.01 s; calls: \[\('Probe', 'OK'\)\]"):
        process.wait_for("Probe", 2, timeout=0.01)


def test_one_that_cannot_start_says_why(directory):
    driver = FakeDriverProcess("tcp://127.0.0.1:1", f"{directory}/files")
    with pytest.raises(RuntimeError, match="CSI is served on unix sockets only"):
        driver.start()
    assert driver.pid is None


def test_it_does_not_outlive_whoever_started_it(directory):
    """A test run that is killed leaves no driver behind."""
    code = f"""
import os, signal
from volumehost_csi_kit.fake import FakeDriverProcess
driver = FakeDriverProcess({directory!r} + "/csi.sock", {directory!r} + "/files")
driver.start()
print(driver.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    try:
        handle = os.pidfd_open(int(done.stdout))
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 30)[0], "it runs on"
    finally:
        os.close(handle)


def test_environment_and_state_of_one_that_never_started(directory):
    driver = FakeDriverProcess(f"{directory}/csi.sock", f"{directory}/files", environment={"CSI_ENDPOINT": "x"})
    assert driver.stop() == 0
    driver.kill()
    assert driver.calls() == []
    assert driver.log() == ""


@pytest.fixture
def control(directory):
    """A client to a fake driver in this process."""
    ControlServer(FakeDriver(f"{directory}/csi.sock"), f"{directory}/control.sock")
    return ControlClient(f"{directory}/control.sock")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"do": "explode"}, "there is no request 'explode', only script, clear_script"),
        ({"do": "__init__"}, "there is no request '__init__'"),
        ({"do": "script", "rules": [{"colour": "blue"}]}, "TypeError: .*colour"),
        ({"do": "script"}, "KeyError: 'rules'"),
        ({"do": "configure", "changes": {"colour": "blue"}}, "TypeError: .*colour"),
    ],
)
def test_requests_that_are_not_understood(control, request_, reason):
    with pytest.raises(RuntimeError, match=reason):
        control.request(**request_)
    assert control.request("state") == {"volumes": {}, "snapshots": {}}


def test_a_control_socket_takes_several_requests_and_survives_nonsense(control, directory):
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rwb") as stream:
        connection.connect(f"{directory}/control.sock")
        for line, answer in (
            (b"{", b"JSONDecodeError"),
            (b"[]", b"TypeError"),
            (b'{"do": "connections"}', b'"result": 0'),
        ):
            stream.write(line + b"\n")
            stream.flush()
            assert answer in stream.readline()


def test_nobody_answers(directory):
    with pytest.raises(OSError, match="No such file"):
        ControlClient(f"{directory}/control.sock").request("state")
