"""Events about long ownership changes: FSGRP-10, -11."""

from __future__ import annotations

import queue
import threading

import pytest

from volumehost import Attributes
from volumehost.api.objects import ObjectMeta, Pod
from volumehost.sdk import set_volume_ownership
from volumehost.sdk.ownership_progress import OwnershipProgress
from volumehost.testing.plugin_host import RecordingEvents

UID = "11111111-2222-3333-4444-555555555555"
DIRECTORY = f"/var/lib/host/pods/{UID}/volumes/example.com~nfs/data"


@pytest.fixture
def pod() -> Pod:
    return Pod(metadata=ObjectMeta(name="web", uid=UID))


class Clock:
    """Time passes when the test says so: each ``wait`` tells how long it waits and gets its answer from the test."""

    def __init__(self) -> None:
        self.waits: queue.Queue[float] = queue.Queue()
        self.answers: queue.Queue[bool] = queue.Queue()

    def __call__(self, done: threading.Event, seconds: float) -> bool:
        self.waits.put(seconds)
        return self.answers.get(timeout=30)


def messages(events: RecordingEvents) -> list[str]:
    return [event.message for event in events.events]


def test_first_after_half_a_minute_then_every_minute(pod):
    clock, events = Clock(), RecordingEvents()
    count = [0]
    with OwnershipProgress(pod, events, DIRECTORY, lambda: count[0], wait=clock):
        assert clock.waits.get(timeout=30) == 30
        clock.answers.put(False)
        assert clock.waits.get(timeout=30) == 60
        count[0] = 1234
        clock.answers.put(False)
        assert clock.waits.get(timeout=30) == 60
        count[0] = 5678
        clock.answers.put(False)
        assert clock.waits.get(timeout=30) == 60
        clock.answers.put(True)
    first, second, third = messages(events)
    place = f"{UID}/volumes/example.com~nfs/data"
    assert first.startswith(f"Setting volume ownership for {place} is taking longer than expected")
    assert "OnRootMismatch" in first
    assert second == f"Setting volume ownership for {place}, processed 1234 files."
    assert third == f"Setting volume ownership for {place}, processed 5678 files."
    assert {(event.event_type, event.reason) for event in events.events} == {
        ("Warning", "VolumePermissionChangeInProgress")
    }
    assert all(event.involved is pod for event in events.events)


def test_done_in_time_means_no_event(pod):
    clock, events = Clock(), RecordingEvents()
    with OwnershipProgress(pod, events, DIRECTORY, lambda: 0, wait=clock):
        clock.answers.put(True)
    assert events.events == []


def test_the_end_of_the_walk_ends_the_wait(pod):
    """With real time: the thread is gone long before its 30 seconds are over."""
    before = set(threading.enumerate())
    with OwnershipProgress(pod, RecordingEvents(), DIRECTORY, lambda: 0):
        assert len(set(threading.enumerate()) - before) == 1
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("missing", ["pod", "recorder"])
def test_without_a_pod_or_a_recorder_there_is_no_thread(pod, missing):
    before = set(threading.enumerate())
    arguments = (None, RecordingEvents()) if missing == "pod" else (pod, None)
    with OwnershipProgress(*arguments, DIRECTORY, lambda: 0):
        assert set(threading.enumerate()) <= before


def test_a_recorder_that_fails_does_not_stop_anything(pod, caplog):
    class Broken:
        def event(self, involved, event_type, reason, message):
            raise RuntimeError("no API")

    clock = Clock()
    with OwnershipProgress(pod, Broken(), DIRECTORY, lambda: 0, wait=clock):
        clock.answers.put(False)
        clock.answers.put(False)
        clock.answers.put(True)
    assert "no API" in caplog.text


def test_a_path_without_the_uid_is_shown_whole(pod):
    clock, events = Clock(), RecordingEvents()
    with OwnershipProgress(pod, events, "/elsewhere", lambda: 0, wait=clock):
        clock.answers.put(False)
        clock.answers.put(True)
    assert "for /elsewhere is" in messages(events)[0]


def test_a_quick_change_of_a_real_volume_records_nothing(pod, directory):
    class Mounter:
        def get_attributes(self) -> Attributes:
            return Attributes()

    events = RecordingEvents()
    set_volume_ownership(Mounter(), directory, 5000, pod=pod, recorder=events)
    assert events.events == []
