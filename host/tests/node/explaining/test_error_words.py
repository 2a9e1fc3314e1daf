"""Errors in full, and what to do about them (BR-83)."""

import itertools

import pytest

from volumehost.errors import (
    FormatError,
    MountError,
    OperationError,
    PluginCallError,
    StillMountedError,
    StorageDriverError,
    StorageDriverUnavailableError,
    VolumeHostError,
)
from volumehost.node.explaining.error_words import advice_for, error_lines
from volumehost.node.operations.common import OperationFailedError


def _chain(*errors):
    for outer, inner in itertools.pairwise(errors):
        outer.__cause__ = inner
    return errors[0]


def test_no_error_has_no_lines_and_no_advice():
    assert error_lines(None) == []
    assert advice_for(None) == []


def test_a_cause_that_the_error_tells_already_is_not_told_twice():
    cause = MountError("the server is away")
    failed = OperationFailedError("MountVolume.SetUp failed", "v", '(UniqueName: "u")', cause)
    assert error_lines(failed) == ['MountVolume.SetUp failed for volume "v" (UniqueName: "u"): the server is away']


def test_causes_that_say_more_follow_with_their_kind_where_they_are_no_errors_of_the_house():
    error = _chain(OperationError("it did not work"), ValueError("bad key"), OSError(5, "Input/output error"))
    assert error_lines(error) == [
        "it did not work",
        "caused by: ValueError: bad key",
        "caused by: OSError: [Errno 5] Input/output error",
    ]


def test_every_line_of_a_long_error_is_kept():
    error = OperationError("mkfs failed:\nline one\n\n   line two  ")
    assert error_lines(error) == ["mkfs failed:", "  line one", "  line two"]


def test_an_error_without_words_is_named():
    class WordlessError(Exception):
        def __str__(self):
            raise RuntimeError("not even this")

    assert error_lines(KeyboardInterrupt()) == ["KeyboardInterrupt"]
    assert error_lines(WordlessError()) == ["WordlessError"]


def test_a_chain_without_end_ends():
    errors = [OperationError(f"error {number}") for number in range(100)]
    lines = error_lines(_chain(*errors))
    assert lines[-1] == "and more"
    assert len(lines) < 20
    first, second = OperationError("one"), OperationError("two")
    first.__cause__, second.__cause__ = second, first
    assert error_lines(first) == ["one", "caused by: two"]


def test_the_hints_of_the_errors_come_first_of_all():
    error = _chain(
        OperationError("outer"), VolumeHostError("inner", hint="turn it off"), MountError("m", hint="and on")
    )
    assert advice_for(error) == ["turn it off", "and on"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StorageDriverError("no", driver="csi.example.com", code="PERMISSION_DENIED"), "credentials"),
        (StorageDriverError("no", driver="csi.example.com", code="NOT_FOUND"), "volumeHandle"),
        (
            StorageDriverError("no", driver="csi.example.com", code="INTERNAL"),
            "drivers logs csi.example.com",
        ),
        (StorageDriverUnavailableError("no", driver="csi.example.com"), "volumehost drivers list"),
        (PluginCallError("it hung", plugin="acme.example.com/x", distribution="acme", version="1.0"), "acme 1.0"),
        (FormatError("broken", kind="HasFilesystemErrors"), "fsck"),
        (StillMountedError("busy"), "end what still uses the mount"),
    ],
)
def test_what_to_do_follows_from_the_kind_of_the_deepest_error_that_says_something(error, words):
    advice = advice_for(_chain(OperationFailedError("SetUp failed", "v", "", error), error))
    assert any(words in line for line in advice), advice


def test_an_error_that_nobody_raised_on_purpose_is_named_and_called_a_defect():
    error = AttributeError("'Thing' object has no attribute 'x'")
    assert error_lines(error) == ["AttributeError: 'Thing' object has no attribute 'x'"]
    assert any("defect" in line for line in advice_for(error))


def test_no_secret_of_an_error_is_made_up():
    """What an error hides stays hidden: only its words are repeated."""
    error = StorageDriverError("denied", driver="d", code="PERMISSION_DENIED", driver_message="***stripped***")
    assert "stripped" not in "\n".join([*error_lines(error), *advice_for(error)])
