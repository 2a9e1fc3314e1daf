"""The embedded store keeps the contract of every ApiClient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from volumehost.api.client import ApiClient
from volumehost.api.store import EmbeddedStore
from volumehost.testing.api_contract import ApiClientContract


class TestEmbeddedStore(ApiClientContract):
    @pytest.fixture
    def new_client(self, tmp_path: Path) -> Iterator[Callable[[], ApiClient]]:
        stores: list[EmbeddedStore] = []

        def make() -> ApiClient:
            stores.append(EmbeddedStore(str(tmp_path / "root" / "store.sqlite3")))
            return stores[-1]

        yield make
        for store in stores:
            store.close()


def test_the_store_is_an_api_client(tmp_path: Path) -> None:
    with EmbeddedStore(str(tmp_path / "store.sqlite3")) as store:
        assert isinstance(store, ApiClient)
