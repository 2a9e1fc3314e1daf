"""The contract for watching."""

# ruff: noqa: D102 - the names of tests say what they ask for

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from volumehost.api.client import ApiClient, WatchEvent
from volumehost.api.objects import ConfigMap
from volumehost.errors import GoneError
from volumehost.testing.api_contract.fixtures import PATIENCE, ContractFixtures, make_config_map


class WatchContract(ContractFixtures):
    """Changes in order, none lost, from any point that is still known."""

    def test_changes_come_in_order(self, client: ApiClient, namespace: str, name: str) -> None:
        start = client.list(ConfigMap, namespace).resource_version
        client.create(make_config_map(namespace, name))
        client.patch(ConfigMap, name, {"data": {"a": "2"}}, namespace)
        client.delete(ConfigMap, name, namespace)
        events = _collect(client, namespace, start, name, count=3)
        assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        assert [event.object.data["a"] for event in events] == ["1", "2", "2"]

    def test_present_objects_come_first(self, client: ApiClient, namespace: str, config_map: ConfigMap) -> None:
        events = _collect(client, namespace, "", config_map.metadata.name, count=1)
        assert events[0].type == "ADDED"
        assert events[0].object == config_map

    def test_watch_goes_on_from_any_event(self, client: ApiClient, namespace: str, name: str) -> None:
        start = client.list(ConfigMap, namespace).resource_version
        client.create(make_config_map(namespace, name))
        first = _collect(client, namespace, start, name, count=1)[0]
        client.delete(ConfigMap, name, namespace)
        rest = _collect(client, namespace, first.object.metadata.resource_version, name, count=1)
        assert [event.type for event in rest] == ["DELETED"]

    def test_other_namespaces_are_not_told(self, client: ApiClient, config_map: ConfigMap) -> None:
        watch = client.watch(ConfigMap, f"other-{config_map.metadata.name}"[:40], timeout=0.3)
        assert [event.type for event in watch if event.type != "BOOKMARK"] == []

    def test_another_client_wakes_the_watcher(
        self, new_client: Callable[[], ApiClient], client: ApiClient, namespace: str, name: str
    ) -> None:
        start = client.list(ConfigMap, namespace).resource_version
        with ThreadPoolExecutor(1) as pool:
            seen = pool.submit(_collect, client, namespace, start, name, 1)
            new_client().create(make_config_map(namespace, name))
            assert seen.result(timeout=PATIENCE)[0].type == "ADDED"
        client.delete(ConfigMap, name, namespace)

    def test_stop_ends_the_watch(self, client: ApiClient, namespace: str) -> None:
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(lambda: list(client.watch(ConfigMap, namespace, stop=stop.is_set)))
            stop.set()
            ended.result(timeout=PATIENCE)

    def test_unknown_version_is_gone(self, client: ApiClient, namespace: str, gone_version: str) -> None:
        with pytest.raises(GoneError):
            list(client.watch(ConfigMap, namespace, gone_version, timeout=0.1))


def _collect(client: ApiClient, namespace: str, start: str, name: str, count: int) -> list[WatchEvent[ConfigMap]]:
    """The first ``count`` events of one object."""
    found: list[WatchEvent[ConfigMap]] = []
    for event in client.watch(ConfigMap, namespace, start, timeout=PATIENCE):
        if event.type != "BOOKMARK" and event.object.metadata.name == name:
            found.append(event)
            if len(found) == count:
                break
    assert len(found) == count, f"only {len(found)} of {count} events came"
    return found
