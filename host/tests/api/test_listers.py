"""Listers and the informer factory over a store."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from volumehost.api.listers import StoreInformerFactory, StoreLister
from volumehost.api.objects import CSIDriver, ObjectMeta
from volumehost.api.store import EmbeddedStore
from volumehost.errors import ObjectNotFoundError


def driver(name: str, **labels: str) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name, labels=labels))


def test_a_lister_is_never_stale(store: EmbeddedStore) -> None:
    lister = StoreLister(store, CSIDriver)
    assert lister.list() == []
    store.create(driver("a.example.com", tier="gold"))
    store.create(driver("b.example.com"))
    assert lister.get("a.example.com").metadata.name == "a.example.com"
    assert [found.metadata.name for found in lister.list()] == ["a.example.com", "b.example.com"]
    assert [found.metadata.name for found in lister.list({"tier": "gold"})] == ["a.example.com"]
    with pytest.raises(ObjectNotFoundError):
        lister.get("c.example.com")


def test_caches_are_synced_once_the_store_can_be_read(store: EmbeddedStore) -> None:
    factory = StoreInformerFactory(store)
    factory.start()
    assert factory.wait_for_cache_sync(1.0)
    factory.stop()
    assert not factory.wait_for_cache_sync(1.0)


def test_a_wait_for_a_store_that_cannot_be_read_ends(tmp_path: Path) -> None:
    store = EmbeddedStore(str(tmp_path / "store.sqlite3"))
    store.close()
    factory = StoreInformerFactory(store)
    assert not factory.wait_for_cache_sync(0.05)
    waiter = threading.Thread(target=factory.wait_for_cache_sync, args=(3600.0,))
    waiter.start()
    factory.stop()
    waiter.join(timeout=20)
    assert not waiter.is_alive()
    assert os.path.exists(store.path)
