"""Exponential backoff (BACKOFF-01, -02)."""

import pytest

from volumehost.errors import NoPluginMatchedError, OperationError, PluginNotFoundError
from volumehost.node.execution.backoff import Backoff


def test_backoff01_the_sequence():
    backoff = Backoff()
    delays = []
    for _ in range(11):
        backoff.failed(ValueError(), 0.0)
        delays.append(backoff.delay)
    assert delays == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122, 122]
    assert backoff.attempts == 11


@pytest.mark.parametrize(("elapsed", "blocked"), [(0.0, True), (0.499, True), (0.5, True), (0.501, False)])
def test_backoff02_equal_is_not_safe(elapsed, blocked):
    backoff = Backoff()
    backoff.failed(ValueError(), 10.0)
    assert backoff.blocks(10.0 + elapsed) is blocked


def test_retry_in_counts_down_to_nothing():
    backoff = Backoff()
    assert backoff.retry_in(5.0) == 0
    assert not backoff.blocks(5.0)
    backoff.failed(ValueError("x"), 10.0)
    assert backoff.retry_in(10.2) == pytest.approx(0.3)
    assert backoff.retry_in(99.0) == 0


def test_reset_starts_afresh():
    backoff = Backoff()
    backoff.failed(ValueError(), 0.0)
    backoff.failed(ValueError(), 1.0)
    backoff.reset()
    assert (backoff.delay, backoff.attempts, backoff.error) == (0, 0, None)
    assert backoff.delay_after(ValueError()) == 0.5


@pytest.mark.parametrize("missing", [NoPluginMatchedError("none"), PluginNotFoundError("none")])
def test_scen24_a_plugin_that_is_not_there_is_looked_for_often_for_nobody_tells_that_it_came(missing):
    error = OperationError("unmounting")
    error.__cause__ = missing
    backoff = Backoff()
    for _ in range(9):
        backoff.failed(error, 0.0)
    assert (backoff.delay, backoff.attempts) == (15.0, 9)
