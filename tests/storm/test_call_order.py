"""What the driver storm takes for a wrong order of calls, and what not."""

from __future__ import annotations

import pytest
from storm.calls import Asked, order_problems

UP = ["CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"]
DOWN = ["NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume"]


def calls(*names: str) -> list[Asked]:
    """One after the other; ``name:CODE``, "OK" where none is given."""
    found = []
    for second, text in enumerate(names):
        name, _, code = text.partition(":")
        found.append(Asked(name, "v", 10.0 * second, code or "OK", 10.0 * second + 0.1))
    return found


def test_a_whole_life_is_in_order() -> None:
    assert order_problems(calls(*UP, *DOWN)) == []
    assert order_problems(calls(*UP, "NodeUnpublishVolume", "NodePublishVolume", *DOWN)) == []
    assert (
        order_problems(calls(*UP[:2], "NodeStageVolume:INTERNAL", "NodeStageVolume", "NodePublishVolume", *DOWN)) == []
    )


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["CreateVolume", "NodeStageVolume"], "without a ControllerPublishVolume"),
        ([*UP[:2], "NodeStageVolume:INTERNAL", "NodePublishVolume"], "without a NodeStageVolume"),
        ([*UP, "NodeUnstageVolume"], "while NodePublishVolume may hold"),
        ([*UP, "NodeUnpublishVolume:INTERNAL", "NodeUnstageVolume"], "while NodePublishVolume may hold"),
        ([*UP, "NodeUnpublishVolume", "ControllerUnpublishVolume"], "while NodeStageVolume may hold"),
        ([*UP[:2], "NodeStageVolume:UNAVAILABLE", "ControllerUnpublishVolume"], "while NodeStageVolume may hold"),
        ([*UP[:2], "DeleteVolume"], "while ControllerPublishVolume may hold"),
        ([*UP, "NodeUnpublishVolume", "NodeUnstageVolume:INTERNAL", "NodePublishVolume"], "without a NodeStageVolume"),
    ],
)
def test_what_is_out_of_order_is_told(names: list[str], problem: str) -> None:
    assert any(problem in each for each in order_problems(calls(*names)))


def test_a_call_that_certainly_did_nothing_needs_not_be_undone() -> None:
    names = [*UP[:2], "NodeStageVolume:INVALID_ARGUMENT", "ControllerUnpublishVolume", "DeleteVolume"]
    assert order_problems(calls(*names)) == []


def test_a_call_that_ends_just_after_the_deadline_may_have_told_how() -> None:
    refused = Asked("NodeStageVolume", "v", 20.0, "INVALID_ARGUMENT", 21.1)
    after = Asked("ControllerUnpublishVolume", "v", 30.0, "OK", 30.1)
    assert order_problems([*calls(*UP[:2]), refused, after]) == []
    refused.ended = 21.3
    assert order_problems([*calls(*UP[:2]), refused, after]) == [
        "ControllerUnpublishVolume while NodeStageVolume may hold"
    ]


def test_two_calls_of_one_caller_at_once() -> None:
    first = Asked("NodeStageVolume", "v", 2.0, "OK", 9.0)
    before = [*calls(*UP[:1]), Asked("ControllerPublishVolume", "v", 1.0, "OK", 1.1), first]
    second = Asked("NodeStageVolume", "v", 2.5, "OK", 2.6)
    assert order_problems([*before, second]) == ["NodeStageVolume began while NodeStageVolume was on its way"]
    assert order_problems([*before, second], serial=False) == []
    late = Asked("NodeStageVolume", "v", 3.2, "OK", 3.3)
    assert order_problems([*before, late]) == [], "the host has given the first one up"
    first.ended, first.code = 0.0, ""
    assert order_problems([*before, second]) == [], "the driver has died of it"
