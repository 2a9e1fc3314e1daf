"""Errors go over the control socket and stay what they were."""

import inspect

import pytest

from volumehost import errors
from volumehost.agent.wire import error_from_wire, error_to_wire
from volumehost.errors import (
    BackoffError,
    InvalidObjectError,
    RemovalError,
    StorageDriverError,
    VolumeHostError,
    VolumesFailedError,
    WaitTimeoutError,
)
from volumehost.node.operations.common import OperationFailedError

KINDS = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind) and issubclass(kind, VolumeHostError) and not kind.__name__.startswith("_")
]


def carried(error):
    import json

    return error_from_wire(json.loads(json.dumps(error_to_wire(error))))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_arrives_as_itself(kind):
    error = kind.__new__(kind)
    error.__dict__.update(reason="why", action="doing", subject="what", hint="next", problems=(), details=())
    assert type(carried(error)) is kind
    assert str(carried(error)) == str(error)


def test_the_parts_of_an_error_arrive():
    error = carried(RemovalError("not empty", paths=["/a", "/b"], action="remove /a", subject="/a", hint="look"))
    assert (error.reason, error.paths, error.action, error.subject, error.hint) == (
        "not empty", ("/a", "/b"), "remove /a", "/a", "look",
    )  # fmt: skip


def test_numbers_and_pairs_arrive():
    assert carried(BackoffError("no", retry_in=1.5)).retry_in == 1.5
    assert carried(InvalidObjectError(subject="pod", problems=[("$.a", "bad")])).problems == (("$.a", "bad"),)
    assert carried(WaitTimeoutError("late", details=["one", "two"])).details == ("one", "two")


def test_notes_arrive():
    error = VolumesFailedError("no")
    error.add_note("also: that")
    assert carried(error).__notes__ == ["also: that"]


def test_a_private_kind_becomes_its_nearest_public_one():
    cause = StorageDriverError("denied", driver="d", call="NodeStageVolume", code="PERMISSION_DENIED")
    error = carried(OperationFailedError("MountVolume.SetUp failed", "v", "(details)", cause))
    assert type(error) in KINDS
    assert "denied" in str(error)


def test_what_is_no_error_of_ours_is_told_as_a_defect():
    error = carried(KeyError("x"))
    assert type(error) is VolumeHostError
    assert "KeyError" in error.reason
    assert "defect" in error.hint


@pytest.mark.parametrize("data", [{}, {"kind": "object"}, {"kind": "TYPE_CHECKING", "fields": {}}])
def test_an_answer_of_another_version_is_an_error_all_the_same(data):
    assert type(error_from_wire(data)) is VolumeHostError
