"""Waits for a pod: woken by those who change something, never by polling."""

import threading
import time

from volumehost.node.waiting import Waits


def test_a_condition_that_holds_is_not_waited_for():
    assert Waits(time.monotonic).wait(("u",), lambda: True, 0)


def test_the_deadline(clock):
    asked = []
    assert not Waits(time.monotonic).wait(("u",), lambda: asked.append(1), 0.01)
    assert len(asked) == 3


def test_woken_by_notify_and_only_when_the_condition_holds():
    waits, state, results = Waits(time.monotonic), {"ready": False}, []
    asked = threading.Semaphore(0)

    def condition():
        asked.release()
        return state["ready"]

    thread = threading.Thread(target=lambda: results.append(waits.wait(("u",), condition, 60)))
    thread.start()
    assert asked.acquire(timeout=30)
    waits.notify("other")
    waits.notify("u")
    assert asked.acquire(timeout=30)
    assert results == []
    state["ready"] = True
    waits.notify("u")
    thread.join(30)
    assert results == [True]


def test_whoever_has_waited_for_a_moment_is_impatient():
    calls = []
    waits = Waits(time.monotonic, impatient=lambda: calls.append(1))
    assert waits.wait(("u",), lambda: True, 60)
    assert calls == []
    assert not waits.wait(("u",), lambda: False, 0.01)
    assert calls == [1]


def test_several_wait_for_one_pod():
    waits, ready = Waits(time.monotonic), threading.Event()
    results, waiting = [], threading.Semaphore(0)

    def condition():
        waiting.release()
        return ready.is_set()

    threads = [threading.Thread(target=lambda: results.append(waits.wait(("u",), condition, 60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        assert waiting.acquire(timeout=30)
    ready.set()
    waits.notify("u")
    for thread in threads:
        thread.join(30)
    assert results == [True] * 3


def test_a_change_between_asking_and_waiting_is_not_missed():
    waits, state = Waits(time.monotonic), {"asked": 0}

    def condition():
        state["asked"] += 1
        if state["asked"] == 1:  # somebody makes it true, and says so, just after it was asked
            state["ready"] = True
            waits.notify("u")
            return False
        return state.get("ready", False)

    assert waits.wait(("u",), condition, 60)


def test_once_acts_when_it_holds_and_never_again():
    waits, state, acted = Waits(time.monotonic), {"ready": False}, []
    waits.once(("u",), lambda: state["ready"], lambda: acted.append(1))
    waits.notify("u")
    assert acted == []
    state["ready"] = True
    waits.notify("u")
    waits.notify("u")
    assert acted == [1]
    waits.once(("u",), lambda: True, lambda: acted.append(2))
    assert acted == [1, 2]
