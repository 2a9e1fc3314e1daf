"""Informers: old and new in pairs, nothing missed over a lost watch, staleness told, stops that end (BR-75)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from volumehost.api.kubernetes import Informer, KubernetesClient, Watched
from volumehost.api.kubernetes.gate import RequestGate
from volumehost.api.kubernetes.watching import WatchSettings
from volumehost.api.objects import ConfigMap, Pod
from volumehost.errors import ApiError, ForbiddenError, ServerUnreachableError
from volumehost.testing.api_contract.fixtures import PATIENCE
from volumehost.testing.api_server import ApiServer, Rule


def put(server: ApiServer, name: str, value: str = "1", **metadata: Any) -> None:
    server.objects.put(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": value}}
    )


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        threading.Event().wait(0.005)


class Told:
    """A handler that keeps what it was told: (name, old value, new value)."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str | None, str | None]] = []

    def __call__(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        either = new or old
        assert either is not None
        values = tuple(None if obj is None else obj.data["a"] for obj in (old, new))
        self.pairs.append((either.metadata.name, *values))

    def until(self, count: int) -> list[tuple[str, str | None, str | None]]:
        wait_until(lambda: len(self.pairs) >= count)
        return self.pairs


@pytest.fixture
def informer(kubernetes_client: KubernetesClient) -> Iterator[Informer[ConfigMap]]:
    """Of config maps; its back-off is short."""
    informer = Informer(kubernetes_client, Watched(ConfigMap), gate=RequestGate(first=0.05, most=0.1))
    yield informer
    assert informer.stop(PATIENCE)


def live(informer: Informer[Any]) -> None:
    wait_until(lambda: informer.stale_since is None)


def test_handlers_are_told_old_and_new(server: ApiServer, informer: Informer[ConfigMap]) -> None:
    put(server, "a")
    told = Told()
    informer.add_handler(told)
    assert not informer.has_synced
    informer.start()
    assert informer.wait_for_sync(PATIENCE)
    # Synced means that the handlers know, too.
    assert told.pairs == [("a", None, "1")]
    live(informer)
    put(server, "a", "2")
    put(server, "b")
    server.objects.delete("configmaps", "a")
    assert told.until(4)[1:] == [("a", "1", "2"), ("b", None, "1"), ("a", "2", None)]
    late = Told()
    informer.add_handler(late)
    assert late.pairs == [("b", None, "1")]
    assert server.requests.count(verb="list") == 1
    assert server.requests.count(verb="watch") == 1


def test_a_handler_that_fails_stops_nobody(
    server: ApiServer, informer: Informer[ConfigMap], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(old: object, new: object) -> None:
        raise RuntimeError("broken")

    told = Told()
    informer.add_handler(broken)
    informer.add_handler(told)
    informer.start()
    with caplog.at_level(logging.CRITICAL, "volumehost.api.kubernetes.informer"):
        put(server, "a")
        told.until(1)


def test_what_is_read_is_the_readers_own(server: ApiServer, informer: Informer[ConfigMap]) -> None:
    put(server, "a")
    informer.start()
    assert informer.wait_for_sync(PATIENCE)
    found = informer.get("a", "default")
    assert found is not None
    found.data["a"] = "changed"
    assert informer.list()[0].data == {"a": "1"}
    assert informer.get("b", "default") is None


@pytest.mark.parametrize("how", ["status", "event"])
def test_after_gone_what_changed_meanwhile_is_told(server: ApiServer, informer: Informer[ConfigMap], how: str) -> None:
    """Lists come in any order: only the list's own version is one to go on from."""
    for name in ("changed", "deleted", "recreated", "same"):
        put(server, name)
    told = Told()
    informer.add_handler(told)
    informer.start()
    live(informer)
    before = len(told.pairs)

    def change() -> None:
        put(server, "changed", "2")
        server.objects.delete("configmaps", "deleted")
        server.recreate("configmaps", "recreated", "default")
        put(server, "new")

    if how == "status":
        with server.unreachable():
            change()
            server.compact()
    else:
        # The watch sleeps while things change, then learns that it has missed them.
        server.faults.add(Rule(verb="watch", code=410, times=1))
        with server.unreachable():
            change()
    put(server, "last")
    wait_until(lambda: ("last", None, "1") in told.pairs)
    changes = told.pairs[before:]
    assert sorted(changes, key=str) == sorted(
        [
            ("changed", "1", "2"),
            ("deleted", "1", None),
            ("recreated", "1", None),
            ("recreated", None, "1"),
            ("new", None, "1"),
            ("last", None, "1"),
        ],
        key=str,
    )
    assert changes.index(("recreated", "1", None)) < changes.index(("recreated", None, "1"))
    lists, watches = server.requests.all(verb="list"), server.requests.all(verb="watch")
    assert len(lists) == 2
    assert watches[-1].query["resourceVersion"] == informer.cache.version or len(watches) >= 2


def test_a_lost_watch_goes_on_without_a_list(server: ApiServer, informer: Informer[ConfigMap]) -> None:
    told = Told()
    informer.add_handler(told)
    informer.start()
    live(informer)
    with server.unreachable():
        put(server, "a")
    assert told.until(1) == [("a", None, "1")]
    assert server.requests.count(verb="list") == 1


def test_stale_says_since_when_and_why(server: ApiServer, informer: Informer[ConfigMap]) -> None:
    began = time.monotonic()
    put(server, "a")
    assert informer.stale_since is not None
    assert informer.problem
    informer.start()
    live(informer)
    assert (informer.problem, informer.error) == ("", None)
    with server.unreachable():
        wait_until(lambda: informer.stale_since is not None and informer.error is not None)
        since = informer.stale_since
        assert since is not None
        assert began <= since <= time.monotonic()
        assert isinstance(informer.error, ServerUnreachableError)
        assert server.url in informer.problem
        # What was known is still read, and the moment does not move.
        assert informer.get("a", "default") is not None
        wait_until(lambda: informer.error is not None)
        assert informer.stale_since == since
    live(informer)


def test_what_is_old_says_why_from_its_first_moment(server: ApiServer, informer: Informer[ConfigMap]) -> None:
    """Who asks in between is not told that it has not begun yet."""
    told: list[tuple[float | None, str]] = []
    failed = informer._failed

    def asked_before(error: ApiError) -> float:
        told.append((informer.stale_since, informer.problem))
        return failed(error)

    informer._failed = asked_before  # type: ignore[method-assign]
    informer.start()
    live(informer)
    with server.unreachable():
        wait_until(lambda: told)
    assert told[0] == (None, "")
    live(informer)


def test_a_silent_connection_was_old_since_its_last_word(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    kubernetes_client.watches = WatchSettings(silence=0.3, first_byte=0.3, retry=0.02)
    server.faults.add(Rule(verb="watch", after_events=0, hang=True), Rule(verb="watch", hang=True, times=None))
    informer = Informer(kubernetes_client, Watched(ConfigMap))
    informer.start()
    assert informer.wait_for_sync(PATIENCE)
    wait_until(lambda: informer.error is not None)
    assert informer.stale_since is not None
    assert informer.stale_since <= time.monotonic() - 0.3
    assert informer.stop(PATIENCE)


def test_silence_is_no_failure(
    server: ApiServer, kubernetes_client: KubernetesClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A server need not send bookmarks: of a kind that nobody changes nothing is heard, with nothing wrong (BR-75)."""
    kubernetes_client.watches = WatchSettings(silence=0.1, first_byte=5, retry=60)
    server.faults.add(Rule(verb="watch", after_events=0, hang=True, times=3))
    informer = Informer(kubernetes_client, Watched(ConfigMap))
    with caplog.at_level(logging.INFO, "volumehost.api.kubernetes"):
        informer.start()
        wait_until(lambda: server.requests.count(verb="watch") >= 4)
        live(informer)
    put(server, "a")
    wait_until(lambda: informer.get("a", "default"))
    assert server.requests.count(verb="list") == 1
    assert not caplog.records
    assert informer.stop(PATIENCE)


def test_a_connection_that_breaks_after_a_good_while_is_no_news(
    server: ApiServer, kubernetes_client: KubernetesClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Load balancers end what was idle for a minute; only what cannot be begun anew is worth a warning."""
    now = [1000.0]
    informer = Informer(kubernetes_client, Watched(ConfigMap), clock=lambda: now[0])
    with caplog.at_level(logging.INFO, "volumehost.api.kubernetes"):
        informer.start()
        live(informer)
        now[0] += 60
        server.reset_connections()
        wait_until(lambda: server.requests.count(verb="watch") >= 2)
        live(informer)
        assert not caplog.records
        now[0] += 60
        with server.unreachable():
            wait_until(lambda: caplog.records)
    assert "refused" in caplog.text
    assert informer.stop(PATIENCE)


def test_what_holds_answers_back_until_they_end_is_asked_for_short_ones(
    server: ApiServer, kubernetes_client: KubernetesClient
) -> None:
    """There are proxies that pass on nothing before the first event, which of a quiet kind may never come."""
    kubernetes_client.watches = WatchSettings(silence=5, first_byte=1, retry=0.02)
    # The first goes unanswered, the second as behind such a proxy: its beginning comes with its end.
    server.faults.add(Rule(verb="watch", hang=True), Rule(verb="watch", delay=0.6))
    informer = Informer(kubernetes_client, Watched(ConfigMap), gate=RequestGate(first=0.05, most=0.1))
    informer.start()
    wait_until(lambda: server.requests.count(verb="watch") >= 2)
    live(informer)

    def asked() -> list[int]:
        return [int(request.query["timeoutSeconds"]) for request in server.requests.all(verb="watch")]

    def ended(enough: Callable[[], bool]) -> bool:
        server.close_watches()
        return enough()

    wait_until(lambda: ended(lambda: len(asked()) >= 3))
    assert asked()[0] >= 300
    assert asked()[1:3] == [1, 1]
    # Once one is answered at once, the next may be as long as any.
    wait_until(lambda: ended(lambda: asked()[-1] >= 300))
    assert informer.stop(PATIENCE)


def test_after_an_error_within_the_stream_all_is_listed_anew(server: ApiServer, informer: Informer[ConfigMap]) -> None:
    """As the Go client's reflector does: the watch might fail in that place for ever (BR-75)."""
    server.faults.add(Rule(verb="watch", after_events=0, code=500))
    informer.start()
    wait_until(lambda: server.requests.count(verb="list") >= 2)
    live(informer)
    server.send_error(code=429)
    wait_until(lambda: server.requests.count(verb="watch") >= 3)
    live(informer)
    assert server.requests.count(verb="list") == 2


def test_an_object_that_cannot_be_read_hides_no_other(
    server: ApiServer, informer: Informer[ConfigMap], caplog: pytest.LogCaptureFixture
) -> None:
    names: list[str] = []

    def told(old: ConfigMap | None, new: ConfigMap | None) -> None:
        assert new is not None
        names.append(new.metadata.name)

    odd = {"metadata": {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "1"}, "data": 5}
    good = odd | {"metadata": {**odd["metadata"], "name": "b"}, "data": {}}  # type: ignore[dict-item]
    body = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [odd, good]}
    server.faults.add(Rule(verb="list", body=msgspec.json.encode(body), content_type="application/json"))
    informer.add_handler(told)
    with caplog.at_level(logging.CRITICAL, "volumehost.api.kubernetes.informer"):
        informer.start()
        assert informer.wait_for_sync(PATIENCE)
    assert names == ["b"]


def test_selectors_are_the_servers_work(server: ApiServer, kubernetes_client: KubernetesClient) -> None:
    container = {"name": "c", "image": "registry.example.com/none"}
    for name, node in (("mine", "n1"), ("other", "n2")):
        server.objects.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"nodeName": node, "containers": [container]},
            }
        )
    informer = Informer(kubernetes_client, Watched(Pod, fields="spec.nodeName=n1"))
    informer.start()
    assert informer.wait_for_sync(PATIENCE)
    assert [pod.metadata.name for pod in informer.list()] == ["mine"]
    live(informer)
    assert {request.query["fieldSelector"] for request in server.requests.all(resource="pods")} == {"spec.nodeName=n1"}
    assert informer.stop(PATIENCE)


def test_a_forbidden_kind_is_asked_for_seldom(server: ApiServer, informer: Informer[ConfigMap]) -> None:
    server.deny(resource="configmaps")
    informer.start()
    wait_until(lambda: isinstance(informer.error, ForbiddenError))
    assert not informer.wait_for_sync(0.3)
    assert "rbac" in informer.problem
    assert server.requests.count() == 1


@pytest.mark.parametrize(
    "faults",
    [
        [Rule(verb="list", hang=True, times=None)],
        [Rule(verb="watch", hang=True, times=None)],
        [Rule(verb="list", code=500, times=None)],
        [Rule(verb="list", code=429, retry_after=30, times=None)],
        [Rule(verb="watch", after_events=0, hang=True, times=None)],
    ],
)
def test_stop_is_bounded_whatever_the_server_does(
    server: ApiServer, kubernetes_client: KubernetesClient, faults: list[Rule]
) -> None:
    server.faults.add(*faults)
    informer = Informer(kubernetes_client, Watched(ConfigMap))
    informer.start()
    wait_until(lambda: server.requests.count(verb=faults[0].verb))
    began = time.monotonic()
    informer.stop(0.2)
    assert time.monotonic() - began < PATIENCE / 2
    kubernetes_client.close()


def test_a_stop_before_the_start(kubernetes_client: KubernetesClient) -> None:
    informer = Informer(kubernetes_client, Watched(ConfigMap))
    assert informer.stop()
    informer.start()
    assert informer.stop(PATIENCE)
    assert not informer.has_synced
