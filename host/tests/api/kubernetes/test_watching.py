"""Watches survive whatever a connection can do, lose nothing, and end when they are told to (BR-75)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volumehost.api.client import WatchEvent
from volumehost.api.kubernetes import KubernetesClient
from volumehost.api.kubernetes.codec import split_lines
from volumehost.api.kubernetes.watching import WatchSettings
from volumehost.api.objects import ConfigMap, ObjectMeta
from volumehost.errors import ForbiddenError, GoneError, ServerFailedError, ServerUnreachableError, StoreError
from volumehost.testing.api_contract.fixtures import PATIENCE
from volumehost.testing.api_server import ApiServer, Rule


def put(server: ApiServer, name: str, **data: str) -> dict[str, Any]:
    return server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


class Following:
    """A watch whose events are collected by a thread."""

    def __init__(self, client: KubernetesClient, **options: Any) -> None:
        self.version = client.list(ConfigMap).resource_version
        self.events: list[WatchEvent[ConfigMap]] = []
        self.changed = threading.Condition()
        self.error: Exception | None = None
        self.stopped = threading.Event()
        self._watch = client.watch(ConfigMap, resource_version=self.version, stop=self.stopped.is_set, **options)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            for event in self._watch:
                with self.changed:
                    self.events.append(event)
                    self.changed.notify_all()
        except Exception as error:
            self.error = error

    def names(self, count: int) -> list[str]:
        """The names of the first changes, once there are so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self._changes()) >= count, PATIENCE), (self.events, self.error)
            return [event.object.metadata.name for event in self._changes()]

    def _changes(self) -> list[WatchEvent[ConfigMap]]:
        return [event for event in self.events if event.type != "BOOKMARK"]

    def end(self) -> None:
        self.stopped.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.fixture
def following(kubernetes_client: KubernetesClient) -> Iterator[Following]:
    found = Following(kubernetes_client)
    yield found
    found.end()


def watching(server: ApiServer, count: int = 1) -> None:
    """Wait until the server serves so many watches."""
    deadline = time.monotonic() + PATIENCE
    while server.open_watches("configmaps") < count:
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def asked(server: ApiServer, count: int) -> None:
    """Wait until so many watches were asked for."""
    deadline = time.monotonic() + PATIENCE
    while server.requests.count(verb="watch") < count:
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def test_a_stream_that_ends_in_good_order_goes_on(server: ApiServer, following: Following) -> None:
    watching(server)
    put(server, "a")
    assert following.names(1) == ["a"]
    server.close_watches()
    asked(server, 2)
    put(server, "b")
    assert following.names(2) == ["a", "b"]
    first, second = server.requests.all(verb="watch")
    assert first.query["allowWatchBookmarks"] == "true"
    assert first.query["resourceVersion"] == following.version
    # From the last event, not from the beginning.
    assert second.query["resourceVersion"] == following.events[0].object.metadata.resource_version


def test_a_connection_that_breaks_goes_on(server: ApiServer, following: Following) -> None:
    watching(server)
    put(server, "a")
    assert following.names(1) == ["a"]
    server.reset_connections()
    put(server, "b")
    assert following.names(2) == ["a", "b"]


@pytest.mark.parametrize("fault", ["drop", "truncate"])
def test_a_line_that_breaks_off_is_read_again(
    server: ApiServer, kubernetes_client: KubernetesClient, fault: str
) -> None:
    server.faults.add(Rule(verb="watch", after_events=1, **{fault: True}))  # type: ignore[arg-type]
    following = Following(kubernetes_client)
    watching(server)
    for name in ("a", "b", "c"):
        put(server, name)
    assert following.names(3) == ["a", "b", "c"]
    following.end()


def test_a_connection_that_says_nothing_is_given_up(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    kubernetes_client.watches = WatchSettings(silence=0.2, first_byte=5, retry=0.02)
    server.faults.add(Rule(verb="watch", after_events=1, hang=True))
    following = Following(kubernetes_client)
    watching(server)
    put(server, "a")
    put(server, "b")
    assert following.names(2) == ["a", "b"]
    following.end()


def test_silence_is_no_failure(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    """A server need not send bookmarks, so that a silent connection is replaced without a pause, however often."""
    kubernetes_client.watches = WatchSettings(silence=0.1, first_byte=5, retry=60)
    server.faults.add(Rule(verb="watch", after_events=0, hang=True, times=4))
    following = Following(kubernetes_client)
    asked(server, 5)
    put(server, "a")
    assert following.names(1) == ["a"]
    following.end()


def test_a_bookmark_is_where_it_goes_on(server: ApiServer, following: Following) -> None:
    watching(server)
    server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    server.send_bookmarks()
    with following.changed:
        assert following.changed.wait_for(lambda: bool(following.events), PATIENCE)
    bookmark = following.events[0]
    assert bookmark.type == "BOOKMARK"
    version = bookmark.object.metadata.resource_version
    assert int(version) > int(following.version)
    server.close_watches()
    asked(server, 2)
    put(server, "a")
    assert following.names(1) == ["a"]
    assert server.requests.all(verb="watch")[-1].query["resourceVersion"] == version


def test_gone_as_a_status(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    version = kubernetes_client.list(ConfigMap).resource_version
    put(server, "a")
    server.compact()
    with pytest.raises(GoneError, match="list again"):
        list(kubernetes_client.watch(ConfigMap, resource_version=version, timeout=PATIENCE))


def test_gone_within_the_stream(server: ApiServer, following: Following) -> None:
    watching(server)
    put(server, "a")
    following.names(1)
    server.send_error()
    following.thread.join(PATIENCE)
    assert isinstance(following.error, GoneError)
    # An ERROR is no object.
    assert [event.type for event in following.events] == ["ADDED"]


def test_gone_while_the_connection_was_down(server: ApiServer, following: Following) -> None:
    watching(server)
    with server.unreachable():
        put(server, "a")
        put(server, "b")
        server.compact()
    following.thread.join(PATIENCE)
    assert isinstance(following.error, GoneError)


def test_another_error_within_the_stream(server: ApiServer, following: Following) -> None:
    watching(server)
    server.send_error(code=500)
    following.thread.join(PATIENCE)
    assert isinstance(following.error, ServerFailedError)


def test_a_stream_that_is_none(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.faults.add(Rule(verb="watch", body=b"<html>\n", content_type="text/html", times=None))
    version = kubernetes_client.list(ConfigMap).resource_version
    with pytest.raises(ServerFailedError, match="broken line"):
        list(kubernetes_client.watch(ConfigMap, resource_version=version, timeout=PATIENCE))


def test_a_refused_watch_is_told_at_once(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    server.deny(verb="watch", resource="configmaps")
    version = kubernetes_client.list(ConfigMap).resource_version
    with pytest.raises(ForbiddenError, match="watch"):
        list(kubernetes_client.watch(ConfigMap, resource_version=version))


def test_a_server_that_is_gone_is_told_after_some_attempts(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    version = kubernetes_client.list(ConfigMap).resource_version
    with server.unreachable(), pytest.raises(ServerUnreachableError):
        list(kubernetes_client.watch(ConfigMap, resource_version=version))


def test_what_happened_before_the_timeout_is_told(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    version = kubernetes_client.list(ConfigMap).resource_version
    put(server, "a")
    events = list(kubernetes_client.watch(ConfigMap, resource_version=version, timeout=0))
    assert [event.object.metadata.name for event in events if event.type != "BOOKMARK"] == ["a"]


@pytest.mark.parametrize("fault", [None, Rule(verb="watch", hang=True), Rule(verb="watch", after_events=0, hang=True)])
def test_a_stop_ends_it_whatever_the_server_does(
    server: ApiServer, kubernetes_client: KubernetesClient, fault: Rule | None
) -> None:
    kubernetes_client.watches = WatchSettings(silence=60, first_byte=60)
    if fault is not None:
        server.faults.add(fault)
    following = Following(kubernetes_client)
    asked(server, 1)
    # Long before any of the server's or the connection's own limits, or end() fails.
    following.end()
    assert following.error is None


def test_closing_the_client_ends_watches(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    following = Following(kubernetes_client)
    watching(server)
    kubernetes_client.close()
    following.thread.join(PATIENCE)
    assert not following.thread.is_alive()
    assert following.error is None or isinstance(following.error, StoreError)


def test_many_events_at_once(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    """More than wait in the queue, for a caller who is slow to begin."""
    version = kubernetes_client.list(ConfigMap).resource_version
    for index in range(1500):
        put(server, f"c{index}")
    watch = kubernetes_client.watch(ConfigMap, resource_version=version, timeout=PATIENCE)
    names = []
    for event in watch:
        if event.type != "BOOKMARK":
            names.append(event.object.metadata.name)
        if len(names) == 1500:
            break
    assert names == [f"c{index}" for index in range(1500)]


def test_watchers_do_not_wait_for_each_other(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    with ThreadPoolExecutor(20) as pool:
        stop = threading.Event()
        version = kubernetes_client.list(ConfigMap).resource_version

        def first() -> str:
            watch = kubernetes_client.watch(ConfigMap, resource_version=version, stop=stop.is_set)
            return next(event.object.metadata.name for event in watch if event.type != "BOOKMARK")

        found = [pool.submit(first) for _ in range(20)]
        watching(server, 20)
        kubernetes_client.create(ConfigMap(metadata=ObjectMeta(name="c")))
        assert {future.result(PATIENCE) for future in found} == {"c"}
        stop.set()


def test_streams_that_end_at_once_are_not_asked_for_without_a_pause(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    kubernetes_client.watches = WatchSettings(retry=0.16)
    server.faults.add(Rule(verb="watch", after_events=0, times=None))
    following = Following(kubernetes_client)
    asked(server, 2)
    first, second = server.requests.all(verb="watch")[:2]
    following.end()
    assert second.at - first.at >= 0.15


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab ", max_size=5), max_size=6), st.text("ab", max_size=3), st.randoms())
def test_lines_come_whole_however_they_are_cut(lines: list[str], rest: str, random: Any) -> None:
    data = "".join(f"{line}\n" for line in lines).encode() + rest.encode()
    chunks = []
    while data:
        size = random.randint(1, len(data))
        chunks.append(data[:size])
        data = data[size:]
    assert list(split_lines(iter(chunks))) == [line.encode() for line in lines if line.strip()]
