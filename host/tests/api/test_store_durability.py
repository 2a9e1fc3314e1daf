"""Which writes of the embedded store wait for the disk: all but those that are harmless to lose with the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from volumehost.api.embedded.database import Database
from volumehost.api.objects import Event, ObjectMeta, Pod
from volumehost.api.store import EmbeddedStore
from volumehost.errors import ConflictError

FULL, NORMAL = 2, 1
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "finalizers": ["example.com/a", "example.com/b"]},
    "spec": {"containers": [{"name": "app", "image": "app"}], "futureField": {"kept": True}},
}


class Watched(Database):
    """Notes how far each transaction waits for the disk, as SQLite has it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, busy_timeout=5)
        self.levels: list[int] = []

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Any]:
        with super().write(durable=durable) as connection:
            yield connection
            self.levels.append(connection.execute("PRAGMA synchronous").fetchone()[0])

    def take(self) -> list[int]:
        levels, self.levels = self.levels, []
        return levels


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[EmbeddedStore, Watched]]:
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as store:
        store._database.close()
        store._database = database = Watched(store.path)
        yield store, database


def test_creation_changes_and_deletion_are_on_disk_when_they_return(watched: tuple[EmbeddedStore, Watched]) -> None:
    store, database = watched
    store.create(POD)
    store.patch(Pod, "web", {"metadata": {"labels": {"a": "b"}}}, "default")
    store.delete(Pod, "web", "default")
    assert database.take() == [FULL, FULL, FULL]


def test_letting_go_of_an_object_does_not_wait_and_the_next_write_does(watched: tuple[EmbeddedStore, Watched]) -> None:
    store, database = watched
    store.create(POD)
    store.delete(Pod, "web", "default")
    database.take()
    left = store.patch(Pod, "web", {"metadata": {"finalizers": ["example.com/b"]}}, "default")
    assert left.metadata.finalizers == ["example.com/b"]
    assert left.metadata.deletion_timestamp is not None
    store.patch(Pod, "web", {"metadata": {"finalizers": None}}, "default")
    assert store.list(Pod).items == []
    store.create(POD)
    assert database.take() == [NORMAL, NORMAL, FULL]


def test_adding_a_finalizer_waits(watched: tuple[EmbeddedStore, Watched]) -> None:
    store, database = watched
    store.create(POD)
    database.take()
    wanted = ["example.com/a", "example.com/b", "example.com/c"]
    found = store.patch(Pod, "web", {"metadata": {"finalizers": wanted}}, "default")
    assert found.metadata.finalizers == wanted
    assert database.take() == [FULL]


def test_letting_go_keeps_unknown_fields_and_conditions(watched: tuple[EmbeddedStore, Watched]) -> None:
    store, _ = watched
    created = store.create(POD)
    with pytest.raises(ConflictError):
        store.patch(Pod, "web", {"metadata": {"finalizers": None, "uid": "another"}}, "default")
    condition = {"uid": created.metadata.uid, "resourceVersion": created.metadata.resource_version}
    store.patch(Pod, "web", {"metadata": {"finalizers": None, **condition}}, "default")
    with store._database.read() as connection:
        (body,) = connection.execute("SELECT body FROM objects WHERE name = 'web'").fetchone()
    assert b'"futureField":{"kept":true}' in body
    assert b"finalizers" not in body
    with pytest.raises(ConflictError):
        store.patch(Pod, "web", {"metadata": {"finalizers": None, **condition}}, "default")


def test_events_do_not_wait(watched: tuple[EmbeddedStore, Watched]) -> None:
    store, database = watched
    store.create(Event(metadata=ObjectMeta(name="told"), reason="FailedMount"))
    assert database.take() == [NORMAL]
