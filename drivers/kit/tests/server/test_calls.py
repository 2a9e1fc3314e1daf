"""How a method's outcome reaches the caller and the log: codes, faults of the driver, no secrets (BR-74)."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit.server import CsiError, Driver, InternalError, InvalidArgumentError, UnavailableError, errors

MARK = "MARKER-5f4dcc3b"


class Node:
    """Publishing does what the test gives it to do."""

    def __init__(self, publish):
        self.publish = publish

    def node_publish_volume(self, request, context):
        return self.publish(request, context)

    def node_unpublish_volume(self, request, context): ...


@pytest.fixture
def publish(served, capability, failure):
    """Publish with a method of the test's: the reply, or the failure's code and message."""

    def run(method, *, fails=True, **fields):
        channel = served(Driver("disk.example.com", "1", node=Node(method), node_id="n"))
        call = stubs.NodeStub(channel).NodePublishVolume
        request = csi.NodePublishVolumeRequest(
            volume_id="v", target_path="/t", volume_capability=capability(), secrets={"key": MARK}, **fields
        )
        return failure(call, request) if fails else call(request, timeout=30)

    return run


def raising(error):
    def method(request, context):
        raise error

    return method


def all_errors():
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CsiError)]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_each_error_is_its_code(publish, kind):
    assert publish(raising(kind("no such thing"))) == (kind.code.name, "no such thing")


def test_codes_are_those_of_the_protocol():
    found = {kind.__name__: kind.code for kind in all_errors()}
    assert len(set(found.values())) == len(found) - 1  # CsiError and InternalError share theirs
    assert found["CsiError"] is found["InternalError"] is grpc.StatusCode.INTERNAL
    for name, code in found.items():
        if name != "CsiError":
            assert code.name == "".join("_" + c if c.isupper() else c for c in name.removesuffix("Error"))[1:].upper()


def test_the_field_leads_the_message():
    assert str(InvalidArgumentError("is wrong", "volume_capability.mount")) == "volume_capability.mount: is wrong"


def test_none_is_an_empty_reply(publish):
    assert publish(lambda request, context: None, fails=False) == csi.NodePublishVolumeResponse()


@pytest.mark.parametrize("error", [ValueError(f"bad {MARK}"), KeyError(MARK), SystemExit(3), KeyboardInterrupt(MARK)])
def test_an_unexpected_exception_is_internal_and_keeps_the_secret(publish, error, caplog):
    with caplog.at_level(logging.DEBUG, "volumehost_csi_kit.server"):
        code, message = publish(raising(error))
    assert code == "INTERNAL"
    assert message.startswith(f"NodePublishVolume failed unexpectedly: {type(error).__name__}: ")
    assert MARK not in message
    assert MARK not in caplog.text
    assert "Traceback" in caplog.text


class CountingError(Exception):
    """Notes are read for the traceback alone: how many threads are at it at a time."""

    def __init__(self):
        super().__init__("no")
        self.inside, self.most, self.met = 0, 0, threading.Event()

    @property
    def __notes__(self):
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside == 2:
            self.met.set()
        self.met.wait(0.1)
        self.inside -= 1
        return []


def test_two_unexpected_exceptions_are_told_one_after_the_other(served, capability, failure):
    """Python 3.11 fails to tell two tracebacks at once, and the call would end with a code that nobody chose."""
    error = CountingError()
    channel = served(Driver("disk.example.com", "1", node=Node(raising(error)), node_id="n"))
    call = stubs.NodeStub(channel).NodePublishVolume

    def publish(number):
        request = csi.NodePublishVolumeRequest(
            volume_id=f"v{number}", target_path=f"/t{number}", volume_capability=capability()
        )
        return failure(call, request)

    with ThreadPoolExecutor(2) as pool:
        assert [code for code, _ in pool.map(publish, range(2))] == ["INTERNAL", "INTERNAL"]
    assert error.most == 1


@pytest.mark.parametrize("error", [UnavailableError(f"login with {MARK} refused"), InternalError(f"url?token={MARK}x")])
def test_an_authors_message_keeps_the_secret(publish, error, caplog):
    with caplog.at_level(logging.DEBUG, "volumehost_csi_kit.server"):
        code, message = publish(raising(error))
    assert code == type(error).code.name
    assert MARK not in message
    assert MARK not in caplog.text


def test_context_abort_works_too(publish):
    def method(request, context):
        context.abort(grpc.StatusCode.NOT_FOUND, f"none for {MARK}")

    assert publish(method) == ("NOT_FOUND", "none for ***stripped***")


@pytest.mark.parametrize("reply", [csi.NodeStageVolumeResponse(), "text", 7])
def test_a_reply_of_another_type_is_the_drivers_fault(publish, reply):
    code, message = publish(lambda request, context: reply)
    assert code == "INTERNAL"
    assert message.endswith("not NodePublishVolumeResponse: a fault of the driver")


def test_a_long_message_still_arrives(publish):
    """Peers refuse headers beyond 8 KiB, and would see another error."""
    code, message = publish(raising(UnavailableError("x" + "ä" * 50_000)))
    assert code == "UNAVAILABLE"
    assert message == "x" + "ä" * 999, "cut by bytes, and not within a character"


def test_a_message_with_undecodable_bytes_still_arrives(publish):
    """A path that is not UTF-8 has surrogates in Python, and grpc cannot encode them."""
    assert publish(raising(UnavailableError(os.fsdecode(b"no /mnt/\xff")))) == ("UNAVAILABLE", r"no /mnt/\udcff")


def test_the_log_has_requests_without_secrets_and_durations(publish, caplog):
    with caplog.at_level(logging.INFO, "volumehost_csi_kit.server"):
        publish(lambda request, context: None, fails=False, volume_context={"password": MARK})
    line = next(record.getMessage() for record in caplog.records if "call=NodePublishVolume" in record.getMessage())
    assert "code=OK seconds=0." in line
    assert 'target_path="/t"' in line
    assert MARK not in caplog.text


def test_calls_that_only_read_are_for_debugging(served, caplog):
    channel = served(Driver("disk.example.com", "1", node=Node(None), node_id="n"))
    with caplog.at_level(logging.INFO, "volumehost_csi_kit.server"):
        stubs.IdentityStub(channel).Probe(csi.ProbeRequest(), timeout=30)
    assert "Probe" not in caplog.text


class Faulty:
    def create_volume(self, request, context): ...
    def delete_volume(self, request, context): ...

    def create_snapshot(self, request, context):
        return csi.CreateSnapshotResponse(snapshot=csi.Snapshot(snapshot_id="s"))

    def delete_snapshot(self, request, context): ...


def test_replies_that_lack_what_is_required(served, capability, failure):
    class Info(Node):
        def node_get_info(self, request, context):
            return csi.NodeGetInfoResponse(node_id=self.publish)

    channel = served(Driver("disk.example.com", "1", node=Info(""), controller=Faulty()))
    controller, node = stubs.ControllerStub(channel), stubs.NodeStub(channel)
    create = csi.CreateVolumeRequest(name="v", volume_capabilities=[capability()])
    assert "no volume.volume_id" in failure(controller.CreateVolume, create)[1]
    snapshot = csi.CreateSnapshotRequest(name="s", source_volume_id="v")
    assert "no snapshot.creation_time" in failure(controller.CreateSnapshot, snapshot)[1]
    assert failure(node.NodeGetInfo, csi.NodeGetInfoRequest()) == (
        "INTERNAL",
        "the driver's NodeGetInfo returned no node_id: a fault of the driver",
    )


def test_streams(served, failure):
    class Metadata:
        def get_metadata_allocated(self, request, context):
            yield csi.GetMetadataAllocatedResponse(volume_capacity_bytes=1)
            raise errors.OutOfRangeError(f"beyond the end, {request.secrets['key']}")

        def get_metadata_delta(self, request, context):
            yield csi.GetMetadataAllocatedResponse()

    channel = served(Driver("disk.example.com", "1", controller=Faulty(), snapshot_metadata=Metadata()))
    stub = stubs.SnapshotMetadataStub(channel)
    replies = stub.GetMetadataAllocated(
        csi.GetMetadataAllocatedRequest(snapshot_id="s", secrets={"key": MARK}), timeout=10
    )
    assert next(replies).volume_capacity_bytes == 1
    assert failure(lambda timeout: next(replies)) == ("OUT_OF_RANGE", "beyond the end, ***stripped***")
    assert failure(lambda timeout: next(stub.GetMetadataAllocated(csi.GetMetadataAllocatedRequest())))[0] == (
        "INVALID_ARGUMENT"
    )
    delta = csi.GetMetadataDeltaRequest(base_snapshot_id="a", target_snapshot_id="b")
    assert failure(lambda timeout: next(stub.GetMetadataDelta(delta)))[0] == "INTERNAL"
