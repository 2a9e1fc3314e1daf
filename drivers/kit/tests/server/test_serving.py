"""A server's life: its socket is put in place whole, and only its own is taken away; running calls end in order."""

from __future__ import annotations

import logging
import os
import socket
import threading

import grpc
import pytest

from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit.endpoints import EndpointError
from volumehost_csi_kit.server import CsiServer, Driver


class Waiting:
    """Publishing waits until the test lets it go on."""

    def __init__(self):
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()

    def node_publish_volume(self, request, context):
        self.begun.release()
        self.go_on.wait(60)

    def node_unpublish_volume(self, request, context): ...


@pytest.fixture
def node():
    """The node service; whatever still waits in it at the end goes on."""
    made = Waiting()
    yield made
    made.go_on.set()


def driver(node, name="disk.example.com", **options):
    return Driver(name, "1", node=node, node_id="n", **options)


def name_of(channel):
    return stubs.IdentityStub(channel).GetPluginInfo(csi.GetPluginInfoRequest(), timeout=30).name


@pytest.fixture
def publishing(capability):
    """Begin to publish; the future."""

    def begin(channel, volume_id="v"):
        request = csi.NodePublishVolumeRequest(volume_id=volume_id, target_path="/t", volume_capability=capability())
        return stubs.NodeStub(channel).NodePublishVolume.future(request, timeout=60)

    return begin


def left_behind(path):
    """A socket file that nobody listens on, as a killed process leaves it."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)


def test_only_the_socket_is_there_and_nothing_afterwards(directory, channel, node):
    """The directory is made, too."""
    with CsiServer(driver(node), f"unix://{directory}/deep/csi.sock", grace_seconds=0) as server:
        assert os.listdir(f"{directory}/deep") == ["csi.sock"]
        assert name_of(channel(server.path)) == "disk.example.com"
    assert os.listdir(f"{directory}/deep") == []


def test_a_socket_that_a_killed_process_left_is_replaced(directory, channel, node):
    left_behind(f"{directory}/csi.sock")
    with CsiServer(driver(node), f"{directory}/csi.sock", grace_seconds=0):
        assert name_of(channel(f"{directory}/csi.sock")) == "disk.example.com"
        assert os.listdir(directory) == ["csi.sock"]


@pytest.mark.parametrize("make", [lambda path: os.close(os.open(path, os.O_CREAT)), os.mkdir])
def test_what_is_no_socket_is_left_alone(directory, node, make):
    make(f"{directory}/csi.sock")
    before = os.lstat(f"{directory}/csi.sock")
    with pytest.raises(EndpointError, match="something is there that is not a socket"):
        CsiServer(driver(node), f"{directory}/csi.sock").start()
    assert os.lstat(f"{directory}/csi.sock") == before
    assert os.listdir(directory) == ["csi.sock"]


def test_a_link_is_not_followed(directory, node):
    left_behind(f"{directory}/other.sock")
    os.symlink("other.sock", f"{directory}/csi.sock")
    with pytest.raises(EndpointError, match="not a socket"):
        CsiServer(driver(node), f"{directory}/csi.sock").start()


def test_a_name_that_nobody_could_dial_is_refused(directory, node):
    with pytest.raises(EndpointError, match="too long"):
        CsiServer(driver(node), f"{directory}/{'n' * 120}").start()
    assert os.listdir(directory) == []


def test_a_directory_that_cannot_be(directory, node):
    os.close(os.open(f"{directory}/file", os.O_CREAT))
    with pytest.raises(EndpointError, match=r"Not a directory"):
        CsiServer(driver(node), f"{directory}/file/csi.sock").start()


def test_br21_the_older_one_does_not_take_the_newer_ones_socket_away(directory, channel, node, caplog):
    """The new instance serves on the same path before the old one ends, and stays reachable."""
    path = f"{directory}/csi.sock"
    old = CsiServer(driver(node, "old.example.com"), path, grace_seconds=0)
    old.start()
    with CsiServer(driver(node, "new.example.com"), path, grace_seconds=0):
        old.stop()
        assert "is another instance's by now" in caplog.text
        assert name_of(channel(path)) == "new.example.com"
    assert os.listdir(directory) == []


def test_br21_calls_of_the_older_one_end_while_the_newer_one_serves(directory, channel, node, publishing):
    path = f"{directory}/csi.sock"
    old = CsiServer(driver(node, "old.example.com"), path)
    old.start()
    running = publishing(channel(path))
    node.begun.acquire(timeout=30)
    with CsiServer(driver(node, "new.example.com"), path, grace_seconds=0):
        stopping = threading.Thread(target=old.stop)
        stopping.start()
        assert name_of(channel(path)) == "new.example.com"
        node.go_on.set()
        assert running.result() == csi.NodePublishVolumeResponse()
        stopping.join(30)
        assert not stopping.is_alive()
        assert name_of(channel(path)) == "new.example.com"


def test_stopping_twice_and_a_socket_that_somebody_removed(directory, node):
    server = CsiServer(driver(node), f"{directory}/csi.sock", grace_seconds=0)
    server.start()
    os.unlink(server.path)
    assert server.stop() == []
    assert server.stop() == []


def test_stopping_what_was_never_started(directory, node):
    server = CsiServer(driver(node), f"{directory}/csi.sock", registration_dir=f"{directory}/registry")
    assert server.stop(0) == []
    assert os.listdir(directory) == []


def until_refused(identity):
    """Ask until nobody answers; the code."""
    while True:
        try:
            identity.Probe(csi.ProbeRequest(), timeout=30)
        except grpc.RpcError as error:
            return error.code().name


def test_running_calls_end_and_new_ones_find_no_door(directory, channel, node, publishing, failure):
    server = CsiServer(driver(node), f"{directory}/csi.sock")
    server.start()
    opened = channel(server.path)
    running = publishing(opened)
    node.begun.acquire(timeout=30)
    left = []
    stopping = threading.Thread(target=lambda: left.append(server.stop(60)))
    stopping.start()
    # What grpc answers to a call that meets the closing door; to the caller both mean: try again.
    assert until_refused(stubs.IdentityStub(opened)) in ("UNAVAILABLE", "CANCELLED")
    assert not os.path.exists(server.path)
    assert failure(stubs.IdentityStub(channel(server.path)).Probe, csi.ProbeRequest())[0] == "UNAVAILABLE"
    assert not running.done()
    node.go_on.set()
    stopping.join(30)
    assert running.result() == csi.NodePublishVolumeResponse()
    assert left == [[]]


def test_what_does_not_end_is_named(directory, channel, node, publishing, caplog):
    server = CsiServer(driver(node), f"{directory}/csi.sock")
    server.start()
    running = publishing(channel(server.path))
    node.begun.acquire(timeout=30)
    assert server.stop(0) == ["NodePublishVolume"]
    assert "call=NodePublishVolume has been running for" in caplog.text
    with pytest.raises(grpc.RpcError):
        running.result()


def test_a_driver_can_be_served_again(directory, channel, node):
    same = driver(node)
    for _ in range(2):
        with CsiServer(same, f"{directory}/csi.sock", grace_seconds=0):
            assert stubs.IdentityStub(channel(f"{directory}/csi.sock")).Probe(csi.ProbeRequest(), timeout=30)


def test_nothing_is_served_when_it_cannot_register(directory, node):
    os.close(os.open(f"{directory}/registry", os.O_CREAT))
    server = CsiServer(driver(node), f"{directory}/csi.sock", registration_dir=f"{directory}/registry")
    with pytest.raises(EndpointError, match="Not a directory"):
        server.start()
    assert os.listdir(directory) == ["registry"]


@pytest.mark.parametrize("workers", [1, 2])
def test_br30_probe_answers_while_all_workers_are_busy(served, node, publishing, workers):
    """The calls that answer from memory do not wait behind those that work."""
    channel = served(driver(node, workers=workers))
    running = [publishing(channel, f"v{number}") for number in range(workers + 1)]
    for _ in range(workers):
        assert node.begun.acquire(timeout=30)
    assert not node.begun.acquire(blocking=False), "one call waits for a worker"
    assert stubs.IdentityStub(channel).Probe(csi.ProbeRequest(), timeout=30).ready.value
    assert stubs.NodeStub(channel).NodeGetInfo(csi.NodeGetInfoRequest(), timeout=30).node_id == "n"
    assert stubs.NodeStub(channel).NodeGetCapabilities(csi.NodeGetCapabilitiesRequest(), timeout=30)
    assert name_of(channel) == "disk.example.com"
    node.go_on.set()
    for call in running:
        assert call.result() == csi.NodePublishVolumeResponse()


def test_ready_is_asked_at_each_probe(served, node, failure):
    from volumehost_csi_kit.server import FailedPreconditionError

    answers = [False, True, FailedPreconditionError("no kernel module")]

    def ready():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    probe = stubs.IdentityStub(served(driver(node, ready=ready))).Probe
    assert not probe(csi.ProbeRequest(), timeout=30).ready.value
    assert probe(csi.ProbeRequest(), timeout=30).ready.value
    assert failure(probe, csi.ProbeRequest()) == ("FAILED_PRECONDITION", "no kernel module")


def test_a_message_may_be_larger_than_grpcs_own_limit(served):
    """A list of tens of thousands of volumes has more than the 4 MiB that grpc allows unless told otherwise."""

    class Lister:
        def list_volumes(self, request, context):
            entry = csi.ListVolumesResponse.Entry(volume=csi.Volume(volume_id="v" * 120))
            return csi.ListVolumesResponse(entries=[entry] * 40_000)

    channel = served(Driver("disk.example.com", "1", controller=Lister()))
    reply = stubs.ControllerStub(channel).ListVolumes(csi.ListVolumesRequest(), timeout=30)
    assert len(reply.entries) == 40_000
    assert reply.ByteSize() > 4 * 1024 * 1024


def test_what_is_served_is_logged(directory, node, caplog):
    with (
        caplog.at_level(logging.INFO, "volumehost_csi_kit.server"),
        CsiServer(driver(node), f"{directory}/csi.sock", grace_seconds=0),
    ):
        pass
    assert f"driver=disk.example.com version=1 serves endpoint={directory}/csi.sock" in caplog.text
