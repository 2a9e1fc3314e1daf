"""Timers: one thread, each call once, in order."""

import threading
import time

import pytest

from volumehost.node.execution.timers import Timers


@pytest.fixture
def timers():
    made = Timers(time.monotonic)
    yield made
    made.stop()


def test_calls_come_in_the_order_of_their_time(clock):
    timers, calls, done = Timers(clock), [], threading.Event()
    timers.call_later(0.03, lambda: (calls.append("c"), done.set()))
    timers.call_later(0.02, lambda: calls.append("b"))
    timers.call_later(0.01, lambda: calls.append("a"))
    clock.move(1)
    assert done.wait(30)
    assert calls == ["a", "b", "c"]
    timers.stop()


def test_a_call_that_is_due_sooner_is_not_held_up_by_a_later_one(timers):
    done = threading.Event()
    timers.call_later(600, lambda: None)
    timers.call_later(0.01, done.set)
    assert done.wait(30)


def test_a_call_that_raises_ends_nothing(timers, caplog):
    done = threading.Event()
    timers.call_later(0.0, lambda: 1 / 0)
    timers.call_later(0.0, done.set)
    assert done.wait(30)
    assert "timer" in caplog.text


def test_a_call_may_arrange_the_next(timers):
    calls, done = [], threading.Event()

    def again():
        calls.append(1)
        if len(calls) < 3:
            timers.call_later(0.001, again)
        else:
            done.set()

    timers.call_later(0.0, again)
    assert done.wait(30)


def test_nothing_is_called_after_stop(timers, until):
    before = set(threading.enumerate())
    calls = []
    timers.call_later(0.05, lambda: calls.append(1))
    timers.stop()
    timers.call_later(0.0, lambda: calls.append(2))
    until(lambda: set(threading.enumerate()) <= before)
    assert calls == []


def test_no_thread_before_there_is_something_to_wait_for():
    before = set(threading.enumerate())
    Timers(time.monotonic)
    assert set(threading.enumerate()) <= before
