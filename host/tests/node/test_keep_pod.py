from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from volumehost.api.objects import Container, ObjectMeta, Pod, PodSpec
from volumehost.api.store import EmbeddedStore
from volumehost.errors import FailedPreconditionError, ObjectNotFoundError
from volumehost.node.populating.pod_objects import FINALIZER, keep_pod


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as opened:
        yield opened


def create(store: EmbeddedStore, **metadata) -> Pod:
    spec = PodSpec(containers=[Container(name="c", image="i")])
    return store.create(Pod(metadata=ObjectMeta(name="web", namespace="mine", **metadata), spec=spec))


def test_a_pod_gets_the_finalizer_once_beside_those_that_it_has(store: EmbeddedStore) -> None:
    create(store, finalizers=["example.com/other"])
    first = keep_pod(store, "web", "mine")
    again = keep_pod(store, "web", "mine")
    assert first.metadata.finalizers == ["example.com/other", FINALIZER]
    assert again.metadata.resource_version == first.metadata.resource_version


def test_a_pod_that_is_not_there_is_not_found(store: EmbeddedStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        keep_pod(store, "web", "mine")


def test_a_pod_that_is_being_deleted_is_not_kept(store: EmbeddedStore) -> None:
    create(store, finalizers=["example.com/other"])
    store.delete(Pod, "web", "mine")
    with pytest.raises(FailedPreconditionError, match="being deleted") as caught:
        keep_pod(store, "web", "mine")
    assert caught.value.hint
