"""The store of registered drivers (CSI-STORE, CSI-CLI-02)."""

from __future__ import annotations

import threading
from typing import Any

import grpc
import pytest

from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import DriverOrigin
from volumehost_csi.client import NodeClient, NodeInfo
from volumehost_csi.registration.store import LINGER_SECONDS, DriverInstance, DriverStore
from volumehost_csi.registration.versions import parse_version

A, B = "a.example.com", "b.example.com"


def instance(name: str = A, endpoint: str = "/a.sock", **more: Any) -> DriverInstance:
    return DriverInstance(
        name, endpoint, version=parse_version("1.0.0"), origin=DriverOrigin.SOCKET, identity=endpoint, **more
    )


def test_an_empty_store() -> None:
    """CSI-STORE-02, -03."""
    store = DriverStore()
    assert store.get(A) is None
    assert store.remove(instance()) is None
    assert (store.names(), list(store), store.instances(A)) == ([], [], ())
    store.close()


def test_the_newest_is_in_use_and_the_one_before_it_comes_back() -> None:
    """CSI-STORE-04, -07."""
    store = DriverStore()
    first, second, third = instance(), instance(endpoint="/b.sock"), instance(endpoint="/c.sock")
    for each in (first, second, third):
        store.add(each)
        assert store.get(A) is each
    assert store.remove(second) is third
    assert store.remove(third) is first
    assert store.remove(first) is None
    assert store.names() == []


def test_names_differ_by_case() -> None:
    """CSI-NAME-13."""
    store = DriverStore()
    store.add(instance(A))
    assert store.get(A.upper()) is None
    store.add(instance(B))
    assert [each.name for each in store] == store.names() == [A, B]


def test_a_replacement_is_one_step() -> None:
    """CSI-REG-11 improved: whoever looks finds one of the two."""
    store = DriverStore()
    first, second = instance(), instance(endpoint="/b.sock")
    store.add(first)
    heard: list[str] = []
    store.subscribe(lambda name: heard.append(store.get(name).endpoint))
    store.add(second, replaces=first)
    assert heard == ["/b.sock"]
    assert store.instances(A) == (second,)


def test_subscribers(caplog) -> None:
    store = DriverStore()
    heard: list[str] = []

    def fails(name: str) -> None:
        raise RuntimeError("costs nobody else anything")

    store.subscribe(fails)
    unsubscribe = store.subscribe(heard.append)
    one = instance()
    store.add(one)
    store.set_node_info(one, NodeInfo("n1"))
    store.set_node_info(one, NodeInfo("n1"))
    store.remove(one)
    store.remove(one)
    assert heard == [A, A, A], "added, told of its node, removed: what changes nothing is not told"
    assert "a subscriber failed" in caplog.text
    unsubscribe()
    store.add(instance())
    assert len(heard) == 3
    store.close()
    assert store.names() == []


def test_one_channel_for_each_registration(plugin) -> None:
    """CSI-CLI-02 improved."""
    store, fake = DriverStore(), plugin(node_id="n1")
    one = instance(endpoint=fake.driver_socket)
    assert one.channel() is one.channel()
    store.add(one)
    assert NodeClient(A, store.get(A).channel()).get_info().node_id == "n1"
    again = instance(endpoint=fake.driver_socket)
    store.add(again, replaces=one)
    assert again.channel() is not one
    with pytest.raises(StorageDriverUnavailableError, match="no longer registered"):
        one.channel()
    store.close()
    with pytest.raises(StorageDriverUnavailableError):
        again.channel()


def test_calls_on_their_way_are_not_broken_off_when_the_driver_leaves(plugin, wait_until) -> None:
    """The old process may just be finishing one; channels are closed when no call can be left on them."""
    now = [0.0]
    store, fake = DriverStore(clock=lambda: now[0]), plugin(node_id="n1", held="NodeGetInfo")
    one = instance(endpoint=fake.driver_socket)
    store.add(one)
    channel, answers = one.channel(), []
    caller = threading.Thread(target=lambda: answers.append(NodeClient(A, channel).get_info()))
    caller.start()
    wait_until(lambda: "NodeGetInfo" in fake.calls, "the call")
    store.remove(one)
    fake.hold.set()
    caller.join(30)
    assert answers[0].node_id == "n1"
    now[0] = LINGER_SECONDS + 1
    store.remove(instance(B))
    assert store._lingering == []
    with pytest.raises(ValueError, match="closed"):
        NodeClient(A, channel)._stub.NodeGetInfo(NodeClient(A, channel)._csi.NodeGetInfoRequest(), timeout=1)


def test_channels_of_drivers_that_left_are_few(plugin) -> None:
    store, fake = DriverStore(), plugin()
    channels = []
    for _ in range(20):
        one = instance(endpoint=fake.driver_socket)
        channels.append(one.channel())
        store.add(one)
        store.remove(one)
    assert len(store._lingering) == 8
    store.close()
    assert store._lingering == []
    assert all(isinstance(each, grpc.Channel) for each in channels)
