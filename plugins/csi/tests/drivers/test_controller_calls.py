"""The controller's calls over a real socket: what is sent, what comes back, what is refused (CSI-WIRE, CSI-ERR)."""

from __future__ import annotations

from itertools import islice
from typing import ClassVar

import pytest
from google.protobuf.json_format import MessageToDict

from volumehost.errors import (
    DeletedVolumeInUseError,
    StorageDriverError,
    StorageDriverInfeasibleError,
    StorageDriverPreconditionError,
    StorageDriverUncertainError,
    StorageDriverUnsupportedError,
    is_operation_finished_error,
)
from volumehost.storage_driver import CreateVolumeRequest, VolumeCapability
from volumehost_csi_kit.fake import Rule

WRITER = VolumeCapability("SINGLE_NODE_WRITER", fs_type="ext4", mount_flags=("noatime",))
GIB = 1 << 30
LONG_AGO = "2020-01-01T00:00:00Z"


def sent(fake, call, number):
    """What was sent with that call, fields by their names."""
    return MessageToDict(fake.calls(call)[number].request, preserving_proto_field_name=True)


def request(name="pvc-1", **changes):
    return CreateVolumeRequest(name, [WRITER], **{"required_bytes": GIB, **changes})


def test_a_volume_from_its_creation_to_its_end(called, fake):
    created = called.create_volume(
        request(
            limit_bytes=2 * GIB,
            parameters={"tier": "fast"},
            mutable_parameters={"iops": "9"},
            secrets={"key": "s3cret"},
            requisite=[{"zone": "a"}],
            preferred=[{"zone": "a"}],
        )
    )
    assert created.capacity_bytes == GIB
    message = sent(fake, "CreateVolume", 0)
    assert message["parameters"] == {"tier": "fast"}
    assert message["mutable_parameters"] == {"iops": "9"}
    assert int(message["capacity_range"]["limit_bytes"]) == 2 * GIB
    assert message["volume_capabilities"][0]["mount"] == {"fs_type": "ext4", "mount_flags": ["noatime"]}
    assert message["accessibility_requirements"]["requisite"] == [{"segments": {"zone": "a"}}]
    assert called.create_volume(request(limit_bytes=2 * GIB)).handle == created.handle
    context = called.publish_volume(
        created.handle, "node-1", WRITER, read_only=True, context=created.context, secrets={}
    )
    assert isinstance(context, dict)
    assert called.validate_volume(
        created.handle, [WRITER], context=created.context, parameters={}, secrets={}
    ) == ""  # fmt: skip
    grown = called.expand_volume(created.handle, 2 * GIB, WRITER, {})
    assert (grown.capacity_bytes, grown.node_expansion_required) == (2 * GIB, True)
    called.modify_volume(created.handle, {"iops": "10"}, {})
    (listed,) = called.list_volumes()
    assert (listed.handle, listed.capacity_bytes, list(listed.published_node_ids)) == (
        created.handle, 2 * GIB, ["node-1"],
    )  # fmt: skip
    assert listed.abnormal is False
    called.unpublish_volume(created.handle, "node-1", {})
    called.delete_volume(created.handle, {})
    called.delete_volume(created.handle, {})
    assert list(called.list_volumes()) == []


def test_a_block_volume_and_a_group_are_sent_as_such(called, fake):
    block = VolumeCapability("MULTI_NODE_MULTI_WRITER", block=True)
    group = VolumeCapability("SINGLE_NODE_SINGLE_WRITER", volume_mount_group="0")
    called.create_volume(CreateVolumeRequest("b", [block, group], GIB))
    first, second = sent(fake, "CreateVolume", 0)["volume_capabilities"]
    assert "block" in first
    assert "mount" not in first
    assert first["access_mode"]["mode"] == "MULTI_NODE_MULTI_WRITER"
    assert second["mount"] == {"volume_mount_group": "0"}


def test_snapshots_and_what_is_made_from_them(called):
    volume = called.create_volume(request())
    made = called.create_snapshot(volume.handle, "snap-1", {}, {})
    assert made.source_volume == volume.handle
    assert made.creation_time > 1e9
    assert called.create_snapshot(volume.handle, "snap-1", {}, {}).handle == made.handle
    assert called.get_snapshot(made.handle, {}).handle == made.handle
    assert called.get_snapshot("none", {}) is None
    assert [each.handle for each in called.list_snapshots({}, source_volume=volume.handle)] == [made.handle]
    restored = called.create_volume(request("pvc-2", source_snapshot=made.handle))
    assert restored.source_snapshot == made.handle
    cloned = called.create_volume(request("pvc-3", source_volume=volume.handle))
    assert cloned.source_volume == volume.handle
    called.delete_snapshot(made.handle, {})
    assert called.get_snapshot(made.handle, {}) is None


def test_a_snapshot_is_found_without_get_snapshot_too(fake, called, new_drivers, root):
    volume = called.create_volume(request())
    made = called.create_snapshot(volume.handle, "snap-1", {}, {})
    fake.configure(controller=[each for each in fake.config.controller if each != "GET_SNAPSHOT"])
    drivers = new_drivers()
    other = drivers.driver("fake.example.com", timeout=30)
    assert other.get_snapshot(made.handle, {}).handle == made.handle
    assert other.get_snapshot("none", {}) is None
    assert fake.calls("GetSnapshot") == []


def test_capacity(called):
    found = called.get_capacity(capabilities=[WRITER], parameters={"tier": "fast"}, topology={"zone": "a"})
    assert found.available_bytes > 0


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UNAVAILABLE", StorageDriverUncertainError),
        ("DEADLINE_EXCEEDED", StorageDriverUncertainError),
        ("CANCELLED", StorageDriverUncertainError),
        ("ABORTED", StorageDriverUncertainError),
        ("RESOURCE_EXHAUSTED", StorageDriverUncertainError),
        ("UNKNOWN", StorageDriverError),
        ("INTERNAL", StorageDriverError),
        ("INVALID_ARGUMENT", StorageDriverError),
        ("ALREADY_EXISTS", StorageDriverError),
        ("UNIMPLEMENTED", StorageDriverUnsupportedError),
    ],
)
def test_every_code_has_its_kind_and_keeps_driver_call_and_code(called, fake, code, kind):
    """CSI-ERR-04, CSI-ERR-08 improved."""
    fake.script(Rule("CreateVolume", code=code, message="no way"))
    with pytest.raises(kind) as caught:
        called.create_volume(request())
    error = caught.value
    assert (error.driver, error.call, error.code) == ("fake.example.com", "CreateVolume", code)
    assert "creating the volume pvc-1" in str(error)
    assert is_operation_finished_error(error) == (kind is not StorageDriverUncertainError)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("FAILED_PRECONDITION", StorageDriverPreconditionError),
        ("INVALID_ARGUMENT", StorageDriverInfeasibleError),
        ("OUT_OF_RANGE", StorageDriverInfeasibleError),
        ("NOT_FOUND", StorageDriverInfeasibleError),
        ("ABORTED", StorageDriverUncertainError),
    ],
)
def test_refused_expansions_and_modifications_have_kinds_of_their_own(called, fake, code, kind):
    """CSI-ERR-16, CSI-EXP-09, -10."""
    fake.script(Rule("ControllerExpandVolume", code=code), Rule("ControllerModifyVolume", code=code))
    with pytest.raises(kind):
        called.expand_volume("v", GIB, WRITER, {})
    with pytest.raises(kind):
        called.modify_volume("v", {}, {})


def test_a_volume_in_use_is_not_deleted_and_said_to_be_in_use(called, fake):
    """VOL-09."""
    fake.script(Rule("DeleteVolume", code="FAILED_PRECONDITION", message="attached to node-1"))
    with pytest.raises(DeletedVolumeInUseError, match="attached to node-1"):
        called.delete_volume("v", {})


def test_a_hanging_call_ends_with_its_deadline_and_is_uncertain(called, fake):
    fake.script(Rule("DeleteVolume", hang=True))
    with pytest.raises(StorageDriverUncertainError) as caught:
        called.delete_volume("v", {}, timeout=0.2)
    assert caught.value.code == "DEADLINE_EXCEEDED"


def test_a_driver_that_dies_in_the_middle_of_a_call_leaves_it_uncertain(called, fake):
    fake.script(Rule("CreateVolume", die=True))
    with pytest.raises(StorageDriverUncertainError) as caught:
        called.create_volume(request(), timeout=30)
    assert caught.value.code == "UNAVAILABLE"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({}, "the volume has no id"),
        ({"volume": {"volumeId": ""}}, "the volume has no id"),
        ({"volume": {"volumeId": "v", "capacityBytes": "-5"}}, "the capacity is -5 bytes"),
        ({"volume": {"volumeId": "v", "capacityBytes": "5"}}, f"5 bytes, {GIB} are required"),
        ({"volume": {"volumeId": "v", "capacityBytes": str(3 * GIB)}}, f"{3 * GIB} bytes, {2 * GIB} are the limit"),
    ],
)
def test_a_created_volume_that_makes_no_sense_is_uncertain(called, fake, reply, words):
    fake.script(Rule("CreateVolume", reply=reply))
    with pytest.raises(StorageDriverUncertainError, match="answers CreateVolume out of range") as caught:
        called.create_volume(request(limit_bytes=2 * GIB))
    assert words in str(caught.value)
    assert "its vendor" in str(caught.value)


def test_an_unknown_capacity_is_fine(called, fake):
    fake.script(Rule("CreateVolume", reply={"volume": {"volumeId": "v"}}))
    assert called.create_volume(request()).capacity_bytes == 0


def test_a_volume_that_was_not_made_from_its_source_is_not_taken(called, fake):
    reply = {"volume": {"volumeId": "v", "capacityBytes": str(GIB)}}
    fake.script(Rule("CreateVolume", reply=reply, times=None))
    for source in ({"source_snapshot": "s-1"}, {"source_volume": "v-1"}):
        with pytest.raises(StorageDriverUncertainError, match="made from nothing, not from"):
            called.create_volume(request(**source))


@pytest.mark.parametrize(
    "reply",
    [
        {"snapshot": {"sourceVolumeId": "v", "creationTime": LONG_AGO}},
        {"snapshot": {"snapshotId": "s", "sourceVolumeId": "w", "creationTime": LONG_AGO}},
        {"snapshot": {"snapshotId": "s", "sourceVolumeId": "v"}},
        {
            "snapshot": {
                "snapshotId": "s",
                "sourceVolumeId": "v",
                "sizeBytes": "-1",
                "creationTime": LONG_AGO,
            }
        },
    ],
)
def test_a_snapshot_that_makes_no_sense_is_uncertain(called, fake, reply):
    fake.script(Rule("CreateSnapshot", reply=reply))
    with pytest.raises(StorageDriverUncertainError, match="answers CreateSnapshot out of range"):
        called.create_snapshot("v", "n", {}, {})


def test_an_expansion_that_is_less_than_was_asked_for_is_no_success(called, fake):
    fake.script(Rule("ControllerExpandVolume", reply={"capacityBytes": "7"}))
    with pytest.raises(StorageDriverUncertainError, match="7 bytes"):
        called.expand_volume("v", GIB, WRITER, {})


def test_a_driver_that_declares_what_it_does_not_implement_is_named_a_liar(called, fake):
    fake.script(Rule("GetCapacity", code="UNIMPLEMENTED"))
    with pytest.raises(StorageDriverUnsupportedError, match="declares GET_CAPACITY and does not implement GetCapacity"):
        called.get_capacity()


def test_pages_are_fetched_as_they_are_needed(called, fake):
    first = {"entries": [{"volume": {"volumeId": "v1"}}, {"volume": {"volumeId": "v2"}}], "nextToken": "t1"}
    last = {"entries": [{"volume": {"volumeId": "v3"}}]}
    fake.script(Rule("ListVolumes", reply=first), Rule("ListVolumes", reply=last))
    volumes = called.list_volumes()
    assert [each.handle for each in islice(volumes, 2)] == ["v1", "v2"]
    assert len(fake.calls("ListVolumes")) == 1
    assert [each.handle for each in volumes] == ["v3"]
    assert sent(fake, "ListVolumes", 1)["starting_token"] == "t1"


def test_a_driver_that_repeats_a_token_for_ever_is_stopped(called, fake):
    fake.script(Rule("ListVolumes", reply={"nextToken": "again"}, times=None))
    with pytest.raises(StorageDriverError, match="repeats the token"):
        list(called.list_volumes())
    assert len(fake.calls("ListVolumes")) == 2
    fake.script(Rule("ListSnapshots", reply={"nextToken": "again"}, times=None))
    with pytest.raises(StorageDriverError, match="repeats the token"):
        list(called.list_snapshots({}))


@pytest.mark.parametrize(
    "call",
    [
        lambda driver: driver.create_volume(request(name="")),
        lambda driver: driver.create_volume(CreateVolumeRequest("v", [], GIB)),
        lambda driver: driver.create_volume(request(required_bytes=-1)),
        lambda driver: driver.create_volume(request(required_bytes=1 << 63)),
        lambda driver: driver.create_volume(request(limit_bytes=5)),
        lambda driver: driver.delete_volume("", {}),
        lambda driver: driver.publish_volume("v", "", WRITER, read_only=False, context={}, secrets={}),
        lambda driver: driver.unpublish_volume("v", "", {}),
        lambda driver: driver.expand_volume("v", 0, WRITER, {}),
        lambda driver: driver.create_snapshot("v", "", {}, {}),
        lambda driver: driver.delete_snapshot("", {}),
        lambda driver: driver.get_snapshot("", {}),
    ],
)
def test_what_no_driver_can_do_anything_with_is_refused_here(called, fake, call):
    """CSI-ERR-06."""
    fake.clear_calls()
    with pytest.raises(StorageDriverError) as caught:
        call(called)
    assert caught.value.code == ""
    assert is_operation_finished_error(caught.value)
    assert fake.calls() == []


@pytest.mark.parametrize("handle", ["a/b", "../../etc", "a^b", "x" * 128, "ünï"])
def test_handles_are_the_drivers_own_whatever_is_in_them(called, fake, handle):
    called.delete_volume(handle, {})
    assert sent(fake, "DeleteVolume", 0)["volume_id"] == handle


def test_a_repeated_secret_is_in_no_error(called, fake, caplog):
    """BR-74: the driver repeats what it was sent."""
    caplog.set_level("DEBUG")
    secrets = {"key": "pa55phrase-77"}
    for name in ("CreateVolume", "DeleteVolume", "ControllerExpandVolume", "CreateSnapshot"):
        fake.script(Rule(name, code="INTERNAL", message="cannot log in with pa55phrase-77"))
    for call in (
        lambda: called.create_volume(request(secrets=secrets)),
        lambda: called.delete_volume("v", secrets),
        lambda: called.expand_volume("v", GIB, WRITER, secrets),
        lambda: called.create_snapshot("v", "n", {}, secrets),
    ):
        with pytest.raises(StorageDriverError) as caught:
            call()
        assert "cannot log in" in caught.value.driver_message
        assert "pa55phrase" not in str(caught.value) + repr(caught.value) + caught.value.driver_message
    assert "pa55phrase" not in caplog.text


def test_calls_are_counted_by_driver_method_and_code(new_drivers, fake, root):
    from volumehost_csi.metrics import CSIMetrics

    class Metrics(CSIMetrics):
        calls: ClassVar = []

        def observe_call(self, driver, method, code, seconds, *, migrated):
            self.calls.append((driver, method, code))

    drivers = new_drivers(metrics=Metrics())
    drivers.register("fake.example.com", f"{root}/fake.sock")
    fake.script(Rule("DeleteVolume", code="INTERNAL"))
    with pytest.raises(StorageDriverError):
        drivers.driver("fake.example.com", timeout=30).delete_volume("v", {})
    assert Metrics.calls[-1] == ("fake.example.com", "/csi.v1.Controller/DeleteVolume", "INTERNAL")
