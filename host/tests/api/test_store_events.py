"""Events do not fill the store: an agent has those that are older than an hour deleted (BR-53)."""

import os

import pytest

from volumehost.api.embedded.expiry import EVENT_LIMIT, EVENT_SECONDS
from volumehost.api.objects import Event, ObjectMeta, Pod
from volumehost.api.store import EmbeddedStore
from volumehost.errors import StoreError


class Clock:
    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with EmbeddedStore(str(tmp_path / "store.sqlite3"), clock=clock) as opened:
        yield opened


def names(store):
    return sorted(event.metadata.name for event in store.list(Event).items)


def test_br53_old_events_are_deleted_when_asked_for_and_other_objects_stay(store, clock):
    store.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [
        {"name": "c", "image": "i"}]}})  # fmt: skip
    store.create(Event(metadata=ObjectMeta(name="old"), reason="FailedMount"))
    clock.now += EVENT_SECONDS / 2
    store.create(Event(metadata=ObjectMeta(name="young"), reason="FailedMount"))
    assert store.expire_events() == 0
    clock.now += EVENT_SECONDS / 2 + 2
    assert store.expire_events() == 1
    assert names(store) == ["young"]
    assert [pod.metadata.name for pod in store.list(Pod).items] == ["web"]


def test_br53_an_event_that_happened_again_is_kept(store, clock):
    store.create(Event(metadata=ObjectMeta(name="again"), reason="FailedMount", last_timestamp="2023-11-14T22:13:20Z"))
    clock.now += EVENT_SECONDS + 2
    store.patch(Event, "again", {"count": 2, "lastTimestamp": "2023-11-14T23:13:20Z"}, "default")
    assert store.expire_events() == 0
    assert names(store) == ["again"]


def test_there_are_never_more_events_than_the_limit_when_they_are_looked_at(store, clock, monkeypatch):
    monkeypatch.setattr("volumehost.api.embedded.expiry.EVENT_LIMIT", 3)
    for number in range(5):
        clock.now += 1
        store.create(Event(metadata=ObjectMeta(name=f"e{number}"), reason="FailedMount"))
    assert store.expire_events() == 2
    assert names(store) == ["e2", "e3", "e4"]
    assert EVENT_LIMIT == 1000


def test_failures_of_the_file_are_counted(store):
    assert store.errors == 0
    os.unlink(store.path)
    with pytest.raises(StoreError):
        store.create(Event(metadata=ObjectMeta(name="e"), reason="FailedMount"))
    assert store.errors == 1
