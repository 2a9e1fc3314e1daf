"""Attaching: CSI-EXA, BR-47, BR-74."""

from __future__ import annotations

from typing import Any

import pytest

from volumehost.api.objects import PersistentVolume, VolumeAttachment
from volumehost.control.attaching.attach_controller import AttachController
from volumehost.control.attaching.attach_source import attacher_finalizer
from volumehost.errors import StorageDriverUnavailableError, StorageDriverUncertainError
from volumehost.testing.storage_driver import EVERYTHING, driver_error, without

FINALIZER = "external-attacher/driver-example-com"
NODE_ID = "csi.alpha.kubernetes.io/node-id"
SECRET = "hunter2-never-to-be-seen"


@pytest.fixture
def attacher(world: Any) -> AttachController:
    return AttachController(world.context)


def test_exa_05_07_attach(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume()
    va = world.attachment()
    assert run(attacher, va) > 0
    now = world.va()
    assert now.status.attached
    assert now.status.attachment_metadata == {"device": "/dev/vol-1"}
    assert now.status.attach_error is None
    assert now.metadata.finalizers == [FINALIZER]
    assert now.metadata.annotations[NODE_ID] == "node-id"
    assert FINALIZER in world.pv().metadata.finalizers
    call = world.driver.last("publish_volume")
    assert (call["handle"], call["node_id"], call["context"]) == ("vol-1", "node-id", {"a": "b"})
    assert call["capability"].access_mode == "SINGLE_NODE_MULTI_WRITER"
    assert call["capability"].fs_type == "ext4"
    assert call["read_only"] is False
    assert call["timeout"] == 15
    assert "ControllerPublishVolume" in world.steps[0]
    assert world.steps[-1] == ""


def test_exa_17_what_is_attached_is_not_touched_again(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume()
    va = world.attachment()
    run(attacher, va)
    version = world.va().metadata.resource_version
    run(attacher, va)
    assert world.driver.count("publish_volume") == 1
    assert world.va().metadata.resource_version == version


@pytest.mark.parametrize("missing", ["CONTROLLER_SERVICE", "PUBLISH_UNPUBLISH_VOLUME"])
def test_exa_02_a_driver_that_does_not_attach(world: Any, attacher: AttachController, run: Any, missing: str) -> None:
    from dataclasses import replace

    declared = without(EVERYTHING, missing)
    world.driver.declared = replace(declared, plugin=declared.plugin - {missing})
    world.volume()
    va = world.attachment()
    run(attacher, va)
    now = world.va()
    assert now.status.attached
    assert now.metadata.finalizers == []
    assert now.status.attachment_metadata == {}
    assert FINALIZER not in world.pv().metadata.finalizers
    world.api.delete(VolumeAttachment, "va")
    assert not world.api.list(VolumeAttachment).items
    assert world.driver.count("unpublish_volume") == 0


@pytest.mark.parametrize(
    ("name", "finalizer"),
    [
        ("a.b.c", "external-attacher/a-b-c"),
        ("a.b-", "external-attacher/a-b-X"),
        ("A.b_c", "external-attacher/A-b-c"),
    ],
)
def test_exa_03_finalizer(name: str, finalizer: str) -> None:
    assert attacher_finalizer(name) == finalizer


def test_exa_08_read_only(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume(readOnly=True)
    run(attacher, world.attachment())
    assert world.driver.last("publish_volume")["read_only"] is True


def test_exa_08_read_only_is_not_told_to_a_driver_without_the_capability(
    world: Any, attacher: AttachController, run: Any
) -> None:
    world.driver.declared = without(EVERYTHING, "PUBLISH_READONLY")
    world.csi_node()
    world.volume(readOnly=True)
    run(attacher, world.attachment())
    assert world.driver.last("publish_volume")["read_only"] is False


@pytest.mark.parametrize(
    ("modes", "multi_writer", "expected"),
    [
        (["ReadWriteOnce"], False, "SINGLE_NODE_WRITER"),
        (["ReadWriteOnce"], True, "SINGLE_NODE_MULTI_WRITER"),
        (["ReadWriteOncePod"], True, "SINGLE_NODE_SINGLE_WRITER"),
        (["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany"], True, "MULTI_NODE_MULTI_WRITER"),
        (["ReadOnlyMany"], True, "MULTI_NODE_READER_ONLY"),
        (["ReadOnlyMany", "ReadWriteOnce"], True, "cannot be used together"),
    ],
)
def test_exa_09_access_modes(
    world: Any, attacher: AttachController, run: Any, modes: list[str], multi_writer: bool, expected: str
) -> None:
    if not multi_writer:
        world.driver.declared = without(EVERYTHING, "SINGLE_NODE_MULTI_WRITER")
    world.csi_node()
    world.volume(spec={"accessModes": modes})
    result = run(attacher, world.attachment())
    if " " in expected:
        assert expected in str(result)
        assert expected in world.va().status.attach_error.message
        assert world.va().metadata.finalizers == []
    else:
        assert world.driver.last("publish_volume")["capability"].access_mode == expected


def test_exa_06_the_driver_must_be_in_csinode_first(world: Any, attacher: AttachController, run: Any) -> None:
    world.volume()
    va = world.attachment()
    error = run(attacher, va)
    assert "CSINode node-1 does not exist" in str(error)
    assert world.va().metadata.finalizers == []
    node = world.csi_node()
    affected = attacher.watches()[type(node)](node)
    assert [key.name for key in affected] == ["va"]
    run(attacher, va)
    assert world.va().status.attached
    assert world.va().status.attach_error is None


def test_exa_05_no_fallback_to_the_annotation_on_attach(world: Any, attacher: AttachController, run: Any) -> None:
    world.volume()
    va = world.attachment()
    world.api.patch(VolumeAttachment, "va", {"metadata": {"annotations": {NODE_ID: "remembered"}}})
    assert "CSINode" in str(run(attacher, va))
    assert world.driver.count("publish_volume") == 0


def test_a_volume_that_is_being_deleted_is_refused(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume()
    va = world.attachment()
    world.api.delete(PersistentVolume, "pv")
    assert "is being deleted" in str(run(attacher, va))
    assert FINALIZER not in world.pv().metadata.finalizers


def test_exa_18_secrets(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume(controllerPublishSecretRef={"name": "keys", "namespace": "vault"})
    va = world.attachment()
    assert "there is no such secret" in str(run(attacher, va))
    assert "vault/keys" in world.va().status.attach_error.message
    assert world.driver.count("publish_volume") == 0
    world.secret()
    run(attacher, va)
    assert world.driver.last("publish_volume")["secrets"] == {"password": SECRET}
    assert world.va().status.attached


@pytest.mark.parametrize(
    ("code", "number"), [("INTERNAL", 13), ("RESOURCE_EXHAUSTED", 8), ("DEADLINE_EXCEEDED", 4), ("", None)]
)
def test_exa_10_errors(world: Any, attacher: AttachController, run: Any, code: str, number: int | None) -> None:
    world.csi_node()
    world.volume()
    va = world.attachment()
    world.driver.fail("publish_volume", code, message="the array is on fire")
    error = run(attacher, va)
    assert "the array is on fire" in str(error)
    found = world.va().status.attach_error
    assert "the array is on fire" in found.message
    assert found.error_code == number
    assert found.time.startswith("2027-01-15T08:00:00")
    assert not world.va().status.attached
    run(attacher, va)
    assert world.va().status.attach_error is None


def test_att_18_messages_are_bounded(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume()
    va = world.attachment()
    world.driver.fail("publish_volume", "INTERNAL", message="ü" * 4000)
    run(attacher, va)
    message = world.va().status.attach_error.message
    assert 1000 < len(message.encode()) <= 1024


def test_att_18_publish_context_is_bounded(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume(volumeHandle="v" * 300_000)
    assert "publish context is larger" in str(run(attacher, world.attachment()))
    assert world.va().metadata.finalizers == [FINALIZER]  # it is attached: it will have to be detached


def test_br_74_a_driver_that_repeats_a_secret(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.secret()
    world.volume(controllerPublishSecretRef={"name": "keys", "namespace": "vault"})
    va = world.attachment()
    cause = RuntimeError(f"password was {SECRET}")
    error = driver_error("d", "ControllerPublishVolume", "INTERNAL", f"login with {SECRET} failed")
    error.__cause__ = cause
    world.driver.fail("publish_volume", error)
    raised = run(attacher, va)
    assert "login with ***stripped*** failed" in str(raised)
    assert SECRET not in f"{raised!r} {raised.args} {raised.driver_message} {raised.__cause__} {raised.__context__}"
    assert SECRET not in world.all_text()


def test_br_47_a_timeout_is_written_down_before_the_call(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume()
    va = world.attachment()
    world.driver.fail("publish_volume", "DEADLINE_EXCEEDED", after_effect=True)
    assert isinstance(run(attacher, va), StorageDriverUncertainError)
    assert not world.va().status.attached
    assert world.driver.nodes_of("vol-1") == ["node-id"]
    world.api.delete(VolumeAttachment, "va")
    restarted = AttachController(world.context)
    run(restarted, va)
    assert world.driver.nodes_of("vol-1") == []
    assert not world.api.list(VolumeAttachment).items


def test_exa_01_a_driver_of_others(world: Any, run: Any) -> None:
    world.external_drivers = True
    world.volume()
    va = world.attachment(attacher="other.example.com")
    assert run(AttachController(world.context), va) is None
    assert world.va().status.attach_error is None


def test_a_driver_that_nobody_has(world: Any, attacher: AttachController, run: Any) -> None:
    world.volume()
    va = world.attachment(attacher="other.example.com")
    assert isinstance(run(attacher, va), StorageDriverUnavailableError)
    assert "this host has no driver other.example.com" in world.va().status.attach_error.message


def test_a_driver_that_does_not_run(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume()
    va = world.attachment()
    world.unavailable = True
    assert isinstance(run(attacher, va), StorageDriverUnavailableError)
    assert world.va().metadata.finalizers == []


@pytest.mark.parametrize(
    ("csi", "message"),
    [({"driver": "other.example.com"}, "a volume of driver other.example.com")],
)
def test_a_volume_that_is_not_for_this_driver(
    world: Any, attacher: AttachController, run: Any, csi: Any, message: str
) -> None:
    world.csi_node()
    world.volume(**csi)
    assert message in str(run(attacher, world.attachment()))
    assert world.va().metadata.finalizers == []


def test_a_migrated_inline_volume(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.driver.add_volume("inline-1", 1)
    spec = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": world.driver.name, "volumeHandle": "inline-1"}}
    va = world.attachment(source={"inlineVolumeSpec": spec})
    run(attacher, va)
    assert world.va().status.attached
    assert world.driver.nodes_of("inline-1") == ["node-id"]
    world.api.delete(VolumeAttachment, "va")
    run(attacher, va)
    assert world.driver.nodes_of("inline-1") == []


def test_exa_10_own_marks_do_not_bring_the_attachment_back(world: Any, attacher: AttachController, run: Any) -> None:
    world.csi_node()
    world.volume()
    affects = attacher.watches()[VolumeAttachment]
    va = world.attachment()
    assert list(affects(va))
    assert list(affects(va))  # told again: everything is looked at anew
    world.driver.fail("publish_volume", "INTERNAL")
    run(attacher, va)
    assert not list(affects(world.va()))  # finalizer, annotation and error are its own
    world.api.delete(VolumeAttachment, "va")
    assert list(affects(world.va()))


def test_an_attachment_that_is_gone(world: Any, attacher: AttachController, run: Any) -> None:
    assert run(attacher, "absent") is None
