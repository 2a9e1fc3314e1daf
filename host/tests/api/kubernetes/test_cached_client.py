"""CachedClient: reads for nothing, writes read back at once, and few requests while the server refuses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from volumehost.api.kubernetes import CachedClient, CachedInformerFactory, CachedLister, KubernetesClient, Watched
from volumehost.api.kubernetes.gate import LONGEST_WANTED, RequestGate
from volumehost.api.objects import (
    ConfigMap,
    CSIDriver,
    CSINode,
    KubeObject,
    Node,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    Secret,
    StorageClass,
    VolumeAttachment,
)
from volumehost.errors import (
    ConflictError,
    ForbiddenError,
    ObjectNotFoundError,
    ServerFailedError,
    ServerUnreachableError,
    StoreError,
    TooManyRequestsError,
)
from volumehost.testing.api_contract.fixtures import PATIENCE
from volumehost.testing.api_server import ApiServer, Rule

NewCached = Callable[..., CachedClient]


def put(server: ApiServer, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return server.objects.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields})


def put_pod(server: ApiServer, name: str, node: str) -> None:
    container = {"name": "c", "image": "registry.example.com/none"}
    spec = {"nodeName": node, "containers": [container]}
    server.objects.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        threading.Event().wait(0.005)


@pytest.fixture
def new_cached(new_kubernetes_client: Callable[[], KubernetesClient]) -> Iterator[NewCached]:
    made: list[CachedClient] = []

    def make(*watched: Watched[Any], synced: bool = True, **options: Any) -> CachedClient:
        options.setdefault("gate", RequestGate(first=0.05, most=0.1))
        client = CachedClient(new_kubernetes_client(), watched, **options)
        made.append(client)
        client.start()
        if synced:
            assert client.wait_for_sync(PATIENCE)
            wait_until(lambda: client.stale_since is None)
        return client

    yield make
    for client in made:
        assert client.stop(PATIENCE)


def test_reads_and_watches_cost_nothing(server: ApiServer, new_cached: NewCached) -> None:
    put(server, "a", data={"x": "1"})
    client = new_cached(Watched(ConfigMap), Watched(Node))
    assert server.requests.count() == 4  # a list and a watch for each kind
    for _ in range(50):
        client.get(ConfigMap, "a")
        client.list(ConfigMap)
        client.list(Node)
        with pytest.raises(ObjectNotFoundError, match="configmap default/b"):
            client.get(ConfigMap, "b")
    listed = client.list(ConfigMap)
    client.create(ConfigMap(metadata=ObjectMeta(name="c")))
    for event in client.watch(ConfigMap, resource_version=listed.resource_version, timeout=PATIENCE):
        if event.type == "ADDED":
            break
    assert server.requests.count() == 5


def test_own_writes_are_read_back_though_the_watch_is_late(server: ApiServer, new_cached: NewCached) -> None:
    client = new_cached(Watched(ConfigMap))
    server.faults.add(Rule(verb="watch", hang=True, times=None))
    server.reset_connections()
    made = client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}))
    assert client.get(ConfigMap, "a") == made
    made.data["x"] = "2"
    replaced = client.replace(made)
    assert client.list(ConfigMap).items == [replaced]
    patched = client.patch(ConfigMap, "a", {"data": {"y": "3"}})
    assert client.get(ConfigMap, "a") == patched
    client.delete(ConfigMap, "a", uid=made.metadata.uid)
    assert client.list(ConfigMap).items == []
    with pytest.raises(ObjectNotFoundError):
        client.get(ConfigMap, "a")
    assert client.stale_since is not None
    assert server.requests.count(verb="get") == 0


def test_after_a_conflict_what_there_is_is_read_though_the_watch_is_late(
    server: ApiServer, new_cached: NewCached
) -> None:
    """Whoever decides anew at once would else meet the same conflict until the watch has told."""
    put(server, "a", data={"x": "1"})
    client = new_cached(Watched(ConfigMap))
    server.faults.add(Rule(verb="watch", hang=True, times=None))
    server.reset_connections()
    put(server, "a", data={"x": "2"})
    seen = client.get(ConfigMap, "a")
    assert seen.data == {"x": "1"}
    with pytest.raises(ConflictError):
        client.replace(seen)
    now = client.get(ConfigMap, "a")
    assert now.data == {"x": "2"}
    now.data["y"] = "3"
    assert client.replace(now).data == {"x": "2", "y": "3"}


def test_what_an_own_write_has_let_go_of_has_gone(server: ApiServer, new_cached: NewCached) -> None:
    """A server does not tell whoever takes the last finalizer that the object has gone with it."""
    client = new_cached(Watched(ConfigMap))
    put(server, "held", metadata={"finalizers": ["example.com/hold"]})
    wait_until(lambda: len(client.list(ConfigMap).items) == 1)
    assert client.delete(ConfigMap, "held").metadata.deletion_timestamp
    with server.lagging():
        client.patch(ConfigMap, "held", {"metadata": {"finalizers": []}})
        with pytest.raises(ObjectNotFoundError):
            client.get(ConfigMap, "held")
        assert client.list(ConfigMap).items == []
    put(server, "held")
    wait_until(lambda: len(client.list(ConfigMap).items) == 1)


def test_own_writes_of_the_status_are_read_back(server: ApiServer, new_cached: NewCached) -> None:
    server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"future": 1}})
    client = new_cached(Watched(Node))
    node = client.get(Node, "n1")
    node.status.volumes_in_use = ["v"]
    assert client.replace_status(node).status.volumes_in_use == ["v"]
    assert client.get(Node, "n1").status.volumes_in_use == ["v"]
    client.patch_status(Node, "n1", {"status": {"volumesInUse": ["w"]}})
    assert client.get(Node, "n1").status.volumes_in_use == ["w"]
    # One request each, and fields of a newer API are still there.
    assert server.requests.count(verb="get") == 0
    assert server.objects.get("nodes", "n1")["status"]["future"] == 1


def test_only_this_nodes_objects_are_watched(server: ApiServer, new_cached: NewCached) -> None:
    for name, node in (("mine", "n1"), ("other", "n2")):
        put_pod(server, name, node)
    client = new_cached(Watched(Pod, fields="spec.nodeName=n1"), Watched(CSINode, fields="metadata.name=n1"))
    assert [pod.metadata.name for pod in client.list(Pod).items] == ["mine"]
    put_pod(server, "late", "n1")
    put_pod(server, "later-elsewhere", "n2")
    version = client.list(Pod).resource_version
    names = []
    for event in client.watch(Pod, resource_version=version, timeout=PATIENCE):
        if event.type == "ADDED":
            names.append(event.object.metadata.name)
            break
    assert names == ["late"] or [pod.metadata.name for pod in client.list(Pod).items] == ["late", "mine"]
    before = server.requests.count()
    with pytest.raises(ObjectNotFoundError):
        client.get(CSINode, "n1")
    assert server.requests.count() == before  # that it is not there is known
    assert client.get(Pod, "other").spec.node_name == "n2"  # of this one nothing is known
    assert server.requests.count() == before + 1


def test_a_namespace_that_is_not_watched_is_asked_for(server: ApiServer, new_cached: NewCached) -> None:
    put(server, "a")
    put(server, "b", metadata={"namespace": "apps"})
    client = new_cached(Watched(ConfigMap, "apps"))
    assert [found.metadata.name for found in client.list(ConfigMap, "apps").items] == ["b"]
    assert "a" in [found.metadata.name for found in client.list(ConfigMap, "default").items]
    assert client.get(ConfigMap, "a").metadata.name == "a"
    assert server.requests.count(verb="get") == 1


def test_other_kinds_go_through(server: ApiServer, new_cached: NewCached) -> None:
    client = new_cached(Watched(ConfigMap))
    client.create(Secret(metadata=ObjectMeta(name="s"), string_data={"a": "b"}))
    assert client.get(Secret, "s").data == {"a": b"b"}
    assert next(client.watch(Secret)).type == "ADDED"
    assert server.requests.count(verb="get", resource="secrets") == 1


def test_reads_while_stale_are_answered(server: ApiServer, new_cached: NewCached) -> None:
    put(server, "a")
    client = new_cached(Watched(ConfigMap), Watched(Node))
    with server.unreachable():
        wait_until(lambda: len(client.stale_kinds()) == 2)
        assert client.get(ConfigMap, "a").metadata.name == "a"
        assert client.stale_since is not None
        assert all(server.url in why for why in client.stale_kinds().values())
        with pytest.raises(ServerUnreachableError):
            client.create(ConfigMap(metadata=ObjectMeta(name="b")))
    wait_until(lambda: client.stale_since is None)
    assert client.stale_kinds() == {}


def test_before_the_first_list_reads_say_why_they_cannot(server: ApiServer, new_cached: NewCached) -> None:
    server.deny(resource="configmaps")
    client = new_cached(Watched(ConfigMap), synced=False)
    with pytest.raises(ForbiddenError, match="volumehost rbac"):
        client.get(ConfigMap, "a")
    with pytest.raises(ForbiddenError):
        next(client.watch(ConfigMap))
    with pytest.raises(ForbiddenError):
        next(client.watch_kinds([ConfigMap]))
    assert not client.has_synced
    assert not client.wait_for_sync(0)


def test_before_the_first_list_reads_wait_a_little(server: ApiServer, new_cached: NewCached) -> None:
    put(server, "a")
    server.faults.add(Rule(verb="list", delay=0.2))
    client = new_cached(Watched(ConfigMap), synced=False)
    assert client.get(ConfigMap, "a").metadata.name == "a"
    server.faults.add(Rule(verb="list", delay=0.5))
    slow = new_cached(Watched(Node), synced=False, patience=0.1)
    with pytest.raises(StoreError, match="not been listed yet"):
        slow.list(Node)


# --- watches ---


def test_a_watch_goes_on_from_an_own_write(server: ApiServer, new_cached: NewCached) -> None:
    client = new_cached(Watched(ConfigMap))
    made = client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}))
    version = made.metadata.resource_version
    # Told before the next write: else only that one may be told and remembered, and the server is asked.
    wait_until(lambda: client.list(ConfigMap).resource_version == version)
    patched = client.patch(ConfigMap, "a", {"data": {"x": "2"}})
    for event in client.watch(ConfigMap, resource_version=version, timeout=PATIENCE):
        if event.type != "BOOKMARK":
            assert (event.type, event.object) == ("MODIFIED", patched)
            break
    assert server.requests.count(verb="watch") == 1


def test_a_version_from_before_goes_to_the_server(server: ApiServer, new_cached: NewCached) -> None:
    version = put(server, "a")["metadata"]["resourceVersion"]
    put(server, "b")
    client = new_cached(Watched(ConfigMap))
    names = []
    for event in client.watch(ConfigMap, resource_version=version, timeout=PATIENCE):
        names.append(event.object.metadata.name)
        break
    assert names == ["b"]
    assert server.requests.count(verb="watch") == 2


def test_several_kinds_in_one_watch(server: ApiServer, new_cached: NewCached) -> None:
    put(server, "a")
    client = new_cached(Watched(ConfigMap), Watched(Node))
    stop = threading.Event()
    told: list[tuple[str, type[KubeObject], str]] = []

    def follow() -> None:
        # A kind that is not watched yet is watched from now on.
        for event in client.watch_kinds([ConfigMap, Node, CSIDriver], stop=stop.is_set):
            told.append((event.type, type(event.object), event.object.metadata.name))

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(follow)
        wait_until(lambda: any(kind == "BOOKMARK" for kind, _type, _name in told))
        assert ("ADDED", ConfigMap, "a") in told
        assert [kind for kind, _type, _name in told].index("BOOKMARK") == len(told) - 1
        server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        client.create(CSIDriver(metadata=ObjectMeta(name="csi.example.com")))
        wait_until(lambda: ("ADDED", Node, "n1") in told and ("ADDED", CSIDriver, "csi.example.com") in told)
        stop.set()
        done.result(PATIENCE)


def test_bookmarks_of_several_kinds_say_what_all_have_told(server: ApiServer, new_cached: NewCached) -> None:
    client = new_cached(Watched(ConfigMap), Watched(Node))
    for name in ("a", "b", "c"):
        put(server, name)
    events = client.watch_kinds([ConfigMap, Node], timeout=PATIENCE)
    for event in events:
        if event.type == "BOOKMARK":
            break
    server.send_bookmarks()
    latest = int(put(server, "d")["metadata"]["resourceVersion"])
    versions = []
    for event in events:
        versions.append((event.type, int(event.object.metadata.resource_version)))
        if event.type == "BOOKMARK" and int(event.object.metadata.resource_version) >= latest - 1:
            break
        if len(versions) > 20:
            server.send_bookmarks()
    marks = [version for kind, version in versions if kind == "BOOKMARK"]
    assert marks == sorted(marks)


def test_watches_end_with_the_client(new_cached: NewCached) -> None:
    client = new_cached(Watched(ConfigMap))
    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(list, client.watch(ConfigMap)), pool.submit(list, client.watch_kinds([ConfigMap]))]
        client.stop(PATIENCE)
        for future in ended:
            future.result(PATIENCE)


# --- a server that refuses ---

EIGHT = [
    Watched(kind)
    for kind in (ConfigMap, CSIDriver, CSINode, Node, PersistentVolumeClaim, Pod, StorageClass, VolumeAttachment)
]


@pytest.mark.parametrize(
    "rule",
    [
        Rule(code=500, times=None),
        Rule(code=403, times=None),
        Rule(drop=True, times=None),
    ],
)
def test_a_server_that_refuses_everything_is_asked_seldom(server: ApiServer, new_cached: NewCached, rule: Rule) -> None:
    """In a minute all kinds together ask less than once a second; here a minute is a hundredth of one."""
    client = new_cached(*EIGHT, gate=RequestGate(first=1 / 100, most=30 / 100))
    server.requests.clear()
    server.faults.add(rule)
    server.reset_connections()
    began, minute = time.monotonic(), 60 / 100
    failures = 0
    while time.monotonic() < began + minute or failures <= 100:  # a busy machine needs longer for so many
        try:
            client.get(Secret, "s")
        except (StoreError, ObjectNotFoundError):
            failures += 1
        threading.Event().wait(0.001)
    minutes = (time.monotonic() - began) / minute
    assert server.requests.count() <= 40 * minutes, [
        (request.verb, request.resource) for request in server.requests.all()
    ]


def test_it_recovers(server: ApiServer, new_cached: NewCached) -> None:
    client = new_cached(*EIGHT)
    with server.unreachable():
        wait_until(lambda: len(client.stale_kinds()) == 8)
    wait_until(lambda: client.stale_since is None)
    client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    assert server.requests.count(verb="list") == 8


def test_one_forbidden_kind_does_not_hold_up_the_others(server: ApiServer, new_cached: NewCached) -> None:
    server.deny(resource="pods")
    client = new_cached(*EIGHT, synced=False)
    wait_until(lambda: set(client.stale_kinds()) == {Pod} and not client.has_synced)
    client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    assert client.get(ConfigMap, "a").metadata.name == "a"


# --- listers ---


def test_listers(server: ApiServer, new_cached: NewCached) -> None:
    for name, label in (("a", "x"), ("b", "y")):
        server.objects.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"l": label}}})
    client = new_cached(Watched(Node), synced=False)
    factory = CachedInformerFactory(client)
    factory.start()
    assert factory.wait_for_cache_sync(PATIENCE)
    lister = CachedLister(client.informer(Node))
    assert lister.get("a").metadata.name == "a"
    assert [node.metadata.name for node in lister.list()] == ["a", "b"]
    assert [node.metadata.name for node in lister.list({"l": "y"})] == ["b"]
    with pytest.raises(ObjectNotFoundError, match="node c"):
        lister.get("c")
    with pytest.raises(KeyError):
        client.informer(Pod)
    factory.stop()


# --- the gate ---


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_calls_fail_at_once_while_nothing_else_is_to_be_expected() -> None:
    clock = Clock()
    gate = RequestGate(clock=clock)
    asked: list[float] = []

    def refused() -> None:
        asked.append(clock.now)
        raise ServerUnreachableError("refused")

    for _ in range(6000):
        with pytest.raises(ServerUnreachableError):
            gate.call(refused)
        clock.now += 0.01
    assert len(asked) <= 12

    def answered() -> str:
        return "yes"

    clock.now += 60
    assert gate.call(answered) == "yes"
    assert gate.call(answered) == "yes"


def test_failures_of_one_round_count_once() -> None:
    clock = Clock()
    gate = RequestGate(first=1, most=100, clock=clock)
    turns = [gate.enter() for _ in range(8)]
    for turn in turns:
        assert gate.refused(turn, ServerUnreachableError("refused"))
    clock.now += 1.6
    stop = threading.Event()
    assert gate.wait_for_turn(stop) is not None
    stop.set()
    assert gate.wait_for_turn(stop) is None


def test_after_a_broken_connection_one_asks_for_all() -> None:
    clock = Clock()
    gate = RequestGate(first=1, most=100, clock=clock)
    gate.doubt()
    gate.doubt()
    go = threading.Event()
    turn = gate.wait_for_turn(go)
    assert turn is not None
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(gate.wait_for_turn, go)
        assert not other.done()
        gate.went_live()
        assert other.result(PATIENCE) is not None
    # Calls that go through are not held up.
    gate.doubt()
    gate.enter()


def test_what_concerns_one_call_closes_nothing() -> None:
    gate = RequestGate(clock=Clock())
    gate.went_live()
    for error in (ForbiddenError("no"), ServerFailedError("a webhook failed")):
        for _ in range(10):
            assert not gate.refused(gate.enter(), error)
    gate.went_dead()
    assert gate.refused(gate.enter(), ForbiddenError("no"))


def test_a_server_that_names_a_time_is_given_it() -> None:
    clock = Clock()
    gate = RequestGate(clock=clock)
    busy = TooManyRequestsError("busy")
    busy.retry_after = 20.0
    for _ in range(3):
        gate.refused(gate.enter(), busy)
    with pytest.raises(TooManyRequestsError, match="asked again in 20 s"):
        gate.enter()
    clock.now += 20
    turn = gate.enter()
    # A page for maintenance may name a day: whoever it stands in for would be back long before.
    busy.retry_after = 86400.0
    gate.refused(turn, busy)
    clock.now += LONGEST_WANTED
    assert gate.wait_for_turn(threading.Event()) is not None
