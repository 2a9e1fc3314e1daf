"""The log of changes: bounded, exact about what it no longer knows, and complete about everything else."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from volumehost.api.embedded import watching
from volumehost.api.embedded.history import HistoryLimits
from volumehost.api.objects import ConfigMap, ObjectMeta, Secret
from volumehost.api.store import EmbeddedStore
from volumehost.errors import GoneError, InvalidObjectError, StoreError

PATIENCE = 30.0


@pytest.fixture
def make_store(tmp_path: Path) -> Iterator[Callable[..., EmbeddedStore]]:
    stores: list[EmbeddedStore] = []

    def make(**limits: int) -> EmbeddedStore:
        stores.append(EmbeddedStore(str(tmp_path / "store.sqlite3"), history=HistoryLimits(**limits)))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


def create(store: EmbeddedStore, count: int, *, size: int = 0) -> None:
    start = int(store.list(ConfigMap).resource_version)
    for number in range(start, start + count):
        store.create(ConfigMap(metadata=ObjectMeta(name=f"c{number}"), data={"fill": "x" * size}))


def changes_kept(store: EmbeddedStore) -> int:
    with store._database.read() as connection:
        return int(connection.execute("SELECT count(*) FROM changes").fetchone()[0])


def test_the_log_is_bounded_by_number(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store(changes=10)
    create(store, 300)
    assert changes_kept(store) <= 10 + 128
    assert len(store.list(ConfigMap).items) == 300


def test_the_log_is_bounded_by_size(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store(size=100_000)
    create(store, 128, size=10_000)
    assert 1 <= changes_kept(store) <= 10
    store.create(ConfigMap(metadata=ObjectMeta(name="last")))


def test_what_came_after_the_sizes_were_added_up_counts(make_store: Callable[..., EmbeddedStore]) -> None:
    """They are added up again when this process has written as much as there was room for, or after many changes."""
    store = make_store(size=1_000_000)
    create(store, 128)
    assert changes_kept(store) == 128
    create(store, 128, size=10_000)
    assert 90 <= changes_kept(store) <= 100


def test_what_other_processes_write_counts_in_the_end(make_store: Callable[..., EmbeddedStore]) -> None:
    store, other = make_store(size=1_000_000), make_store(size=1 << 40)
    create(store, 128)
    create(other, 1023, size=2_000)  # there the limit is another, so that it keeps them all
    create(store, 1)
    assert changes_kept(store) <= 500


def test_what_is_forgotten_is_gone_and_a_new_list_helps(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store(changes=10)
    create(store, 128)
    with pytest.raises(GoneError) as caught:
        store.watch(ConfigMap, resource_version="5")
    assert "list again" in caught.value.hint
    version = store.list(ConfigMap).resource_version
    create(store, 1)
    assert [event.type for event in store.watch(ConfigMap, resource_version=version, timeout=0.05)] == ["ADDED"]


def test_the_oldest_version_that_is_known_works_and_the_one_before_does_not(
    make_store: Callable[..., EmbeddedStore],
) -> None:
    store = make_store(changes=10)
    create(store, 128)
    oldest = 128 - 10
    assert len(list(store.watch(ConfigMap, resource_version=str(oldest), timeout=0.05))) == 10
    with pytest.raises(GoneError):
        store.watch(ConfigMap, resource_version=str(oldest - 1))


def test_a_watcher_that_falls_behind_is_told(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store(changes=5)
    create(store, 1)
    watch = store.watch(ConfigMap, resource_version="0", timeout=PATIENCE)
    assert next(watch).type == "ADDED"
    create(store, 200)
    with pytest.raises(GoneError):
        list(watch)


@pytest.mark.parametrize("version", ["x", "-1", "1.5", "9" * 40, "\u0661"])
def test_versions_that_are_none(make_store: Callable[..., EmbeddedStore], version: str) -> None:
    with pytest.raises(InvalidObjectError, match="resourceVersion"):
        make_store().watch(ConfigMap, resource_version=version)


def test_more_changes_than_one_read_takes(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store()
    create(store, 1200)
    events = list(store.watch(ConfigMap, resource_version="0", timeout=1.0))
    assert [event.object.metadata.name for event in events] == [f"c{number}" for number in range(1200)]


def test_a_bookmark_ends_the_present_state(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store()
    create(store, 2)
    events = list(store.watch(ConfigMap, timeout=0.05))
    assert [event.type for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    assert events[-1].object == ConfigMap(metadata=ObjectMeta(resource_version="2"))


def test_bookmarks_tell_how_far_others_have_got(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store()
    create(store, 1)
    kind = store._kind(ConfigMap)
    watch = watching.Watch(
        store._database, store._commits, (kind,), None, stop=None, timeout=PATIENCE, bookmark_seconds=0.05
    ).events(1)
    store.create(Secret(metadata=ObjectMeta(name="other")))
    event = next(watch)
    watch.close()  # type: ignore[attr-defined]
    assert (event.type, event.object.metadata.resource_version) == ("BOOKMARK", "2")


def test_several_kinds_are_watched_together_in_the_order_of_their_changes(
    make_store: Callable[..., EmbeddedStore],
) -> None:
    store = make_store()
    create(store, 1)
    watch = store.watch_kinds((Secret, ConfigMap), timeout=PATIENCE)
    assert [(event.type, type(event.object)) for event in itertools.islice(watch, 2)] == [
        ("ADDED", ConfigMap),
        ("BOOKMARK", Secret),
    ]
    store.create(Secret(metadata=ObjectMeta(name="first")))
    store.create(ConfigMap(metadata=ObjectMeta(name="second")))
    store.delete(Secret, "first")
    told = (event for event in watch if event.type != "BOOKMARK")
    assert [(event.type, event.object.metadata.name) for event in itertools.islice(told, 3)] == [
        ("ADDED", "first"),
        ("ADDED", "second"),
        ("DELETED", "first"),
    ]


def test_a_watch_of_several_kinds_tells_at_once_how_far_it_is(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store()
    watch = store.watch_kinds((Secret,), timeout=PATIENCE)
    assert next(watch).object.metadata.resource_version == "0"
    create(store, 1)
    event = next(watch)
    assert (event.type, event.object.metadata.resource_version) == ("BOOKMARK", "1")


def test_closing_the_store_ends_its_watches(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store()
    started = threading.Event()

    def follow() -> list[Any]:
        watch = store.watch(ConfigMap, timeout=PATIENCE)
        events = [next(watch)]
        started.set()
        return events + list(watch)

    with ThreadPoolExecutor(1) as pool:
        followed = pool.submit(follow)
        assert started.wait(PATIENCE)
        store.close()
        assert [event.type for event in followed.result(timeout=PATIENCE)] == ["BOOKMARK"]
    with pytest.raises(StoreError):
        store.watch(ConfigMap)


def test_many_watchers_all_see_everything(make_store: Callable[..., EmbeddedStore]) -> None:
    store = make_store()

    def follow(_: int) -> list[str]:
        names = []
        for event in store.watch(ConfigMap, resource_version="0", timeout=PATIENCE):
            names.append(event.object.metadata.name)
            if len(names) == 50:
                break
        return names

    with ThreadPoolExecutor(6) as pool:
        followers = [pool.submit(follow, number) for number in range(5)]
        create(store, 50)
        for follower in followers:
            assert follower.result(timeout=PATIENCE) == [f"c{number}" for number in range(50)]


class WatchedStore(RuleBasedStateMachine):
    """Whatever happens to objects, replaying the events gives what a list gives."""

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.directory = tempfile.TemporaryDirectory()
        self.store = EmbeddedStore(f"{self.directory.name}/store.sqlite3", history=HistoryLimits(changes=1000))
        self.position = "0"
        self.replayed: dict[str, ConfigMap] = {}
        self.count = 0

    @rule(target=names, held=st.booleans())
    def create(self, held: bool) -> str:
        self.count += 1
        name = f"c{self.count}"
        finalizers = ["example.com/hold"] if held else []
        self.store.create(ConfigMap(metadata=ObjectMeta(name=name, finalizers=finalizers)))
        return name

    @rule(name=names, value=st.sampled_from("abc"))
    def change(self, name: str, value: str) -> None:
        if name in self.live():
            self.store.patch(ConfigMap, name, {"data": {"v": value}})

    @rule(name=names)
    def delete(self, name: str) -> None:
        if name in self.live():
            self.store.delete(ConfigMap, name)

    @rule(name=consumes(names))
    def release(self, name: str) -> None:
        if name in self.live():
            self.store.patch(ConfigMap, name, {"metadata": {"finalizers": None}})

    def live(self) -> set[str]:
        return {found.metadata.name for found in self.store.list(ConfigMap).items}

    @invariant()
    def events_tell_the_whole_story(self) -> None:
        for event in self.store.watch(ConfigMap, resource_version=self.position, timeout=0.0):
            found = event.object
            assert int(found.metadata.resource_version) > int(self.position)
            self.position = found.metadata.resource_version
            assert (event.type == "ADDED") == (found.metadata.name not in self.replayed)
            if event.type == "DELETED":
                del self.replayed[found.metadata.name]
            else:
                self.replayed[found.metadata.name] = found
        assert self.replayed == {found.metadata.name: found for found in self.store.list(ConfigMap).items}

    def teardown(self) -> None:
        self.store.close()
        self.directory.cleanup()


TestWatchedStore = WatchedStore.TestCase
TestWatchedStore.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
