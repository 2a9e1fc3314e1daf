"""The registration handler by itself: checks, origins, conflicts, what is put back (CSI-REG, CSI-EDGE-02)."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator

import pytest

from volumehost.errors import StorageDriverError, StorageDriverUnavailableError, StoreError
from volumehost.storage_driver import DriverOrigin
from volumehost_csi.client import NodeInfo
from volumehost_csi.registration.checks import DriverNameTakenError
from volumehost_csi.registration.handler import CSIRegistrationHandler
from volumehost_csi.registration.store import DriverStore

A, B = "a.example.com", "b.example.com"


class Publisher:
    """Keeps what would be told to the cluster; fails on demand."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.failing: set[str] = set()

    def _tell(self, what: str, driver: str, node_id: str = "") -> None:
        if what in self.failing:
            raise StoreError(f"{what} does not work")
        self.told.append((what, driver, node_id))

    def install(self, driver: str, info: NodeInfo) -> None:
        self._tell("install", driver, info.node_id)

    def update(self, driver: str, info: NodeInfo) -> None:
        self._tell("update", driver, info.node_id)

    def uninstall(self, driver: str) -> None:
        self._tell("uninstall", driver)


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


@pytest.fixture
def store() -> Iterator[DriverStore]:
    store = DriverStore()
    yield store
    store.close()


@pytest.fixture
def handler(store, publisher) -> CSIRegistrationHandler:
    return CSIRegistrationHandler(store, publisher, timeout=20)


def test_by_command(handler, store, publisher, plugin) -> None:
    """CSI-REG-07: the same path as for a socket, with an explicit endpoint."""
    fake = plugin(node_id="n1")
    instance = handler.register(A, f"unix://{fake.driver_socket}", origin=DriverOrigin.COMMAND)
    assert store.get(A) is instance
    assert (instance.endpoint, instance.node_id, instance.origin) == (fake.driver_socket, "n1", DriverOrigin.COMMAND)
    assert fake.calls == ["GetPluginInfo", "NodeGetInfo"]
    assert handler.deregister(A, fake.driver_socket)
    assert not handler.deregister(A, fake.driver_socket)
    assert publisher.told == [("install", A, "n1"), ("uninstall", A, "")]


@pytest.mark.parametrize("origin", [DriverOrigin.COMMAND, DriverOrigin.INSTALLED])
def test_a_driver_without_a_node_service(handler, store, publisher, plugin, origin) -> None:
    """A controller of its own has no place in CSINode."""
    fake = plugin(fail={"NodeGetInfo": "UNIMPLEMENTED"})
    instance = handler.register(A, fake.driver_socket, origin=origin)
    assert (instance.node_info, instance.node_id) == (None, "")
    handler.deregister(A, fake.driver_socket)
    assert publisher.told == []


def test_registering_again_takes_the_place_of_the_first(handler, store, plugin) -> None:
    """A supervised driver that was started anew."""
    first, second = plugin(node_id="n1"), plugin(node_id="n2")
    handler.register(A, first.driver_socket, origin=DriverOrigin.INSTALLED)
    handler.register(A, second.driver_socket, origin=DriverOrigin.INSTALLED)
    assert [each.endpoint for each in store.instances(A)] == [second.driver_socket]


def test_one_name_for_two_drivers(handler, store, plugin) -> None:
    """CSI-REG-06, CSI-EDGE-02: refused, with the one that has it; a higher version is accepted."""
    first, second = plugin(), plugin()
    handler.register(A, first.driver_socket, ["1.0.0"], origin=DriverOrigin.COMMAND)
    for versions in (["1.0.0"], ["1.0"], ["v0.9", "1.0.0"]):
        with pytest.raises(DriverNameTakenError, match=f"registered already, at {first.driver_socket}"):
            handler.register(A, second.driver_socket, versions, origin=DriverOrigin.SOCKET, identity="second")
    handler.register(A, second.driver_socket, ["1.0.1"], origin=DriverOrigin.SOCKET, identity="second")
    assert [each.endpoint for each in store.instances(A)] == [first.driver_socket, second.driver_socket]


def test_one_endpoint_for_two_names(handler, store, plugin) -> None:
    """CSI-EDGE-02: another name at the same endpoint passes the check of versions, and fails for its name."""
    fake = plugin()
    handler.register(A, fake.driver_socket)
    assert str(handler.validate(B, fake.driver_socket, ["1.0.0"])) == "1.0.0"
    with pytest.raises(StorageDriverError, match=f"is named '{A}', not '{B}'"):
        handler.register(B, fake.driver_socket)
    assert store.names() == [A]


def test_one_driver_known_in_two_ways(handler, store, plugin) -> None:
    """A driver that this host started has a registration socket too: no conflict, and either may leave."""
    fake = plugin()
    started = handler.register(A, fake.driver_socket, origin=DriverOrigin.INSTALLED)
    by_socket = handler.register(A, fake.driver_socket, identity="socket")
    assert store.instances(A) == (started, by_socket)
    assert handler.deregister(A, fake.driver_socket, identity="socket")
    assert store.get(A) is started


def test_a_failed_registration_leaves_the_present_one_alone(handler, store, publisher, plugin) -> None:
    """CSI-REG-08, -11 improved: what runs is in use throughout, and published again if need be."""
    first, second = plugin(node_id="n1"), plugin(node_id="")
    running = handler.register(A, first.driver_socket, ["1.0.0"])
    with pytest.raises(StorageDriverError, match="empty node id"):
        handler.register(A, second.driver_socket, ["1.1.0"], identity="second")
    assert store.instances(A) == (running,)
    assert publisher.told[-1] == ("install", A, "n1")
    assert running.channel()


def test_a_first_registration_that_fails_leaves_nothing(handler, store, publisher, plugin) -> None:
    """CSI-REG-08, -10: a stale entry of the cluster goes too."""
    fake = plugin()
    publisher.failing.add("install")
    with pytest.raises(StoreError, match="install does not work"):
        handler.register(A, fake.driver_socket)
    assert store.names() == []
    assert publisher.told == [("uninstall", A, "")]


def test_the_first_error_is_told_when_cleaning_up_fails_too(handler, publisher, plugin, caplog) -> None:
    """CSI-REG-08."""
    fake = plugin(fail={"NodeGetInfo": "INTERNAL"})
    publisher.failing.add("uninstall")
    with caplog.at_level(logging.ERROR), pytest.raises(StorageDriverError, match="NodeGetInfo does not work"):
        handler.register(A, fake.driver_socket)
    assert "could not be put right" in caplog.text


def test_deregistering_never_raises(handler, store, publisher, plugin) -> None:
    """CSI-REG-12, -14."""
    fake = plugin()
    handler.register(A, fake.driver_socket)
    publisher.failing.add("uninstall")
    assert handler.deregister(A, fake.driver_socket)
    assert store.names() == []
    assert not handler.deregister("never.example.com", "/nowhere")


def test_deregistering_another_endpoint_changes_nothing(handler, store, plugin) -> None:
    """CSI-REG-13 improved."""
    fake = plugin()
    handler.register(A, fake.driver_socket, identity="x")
    assert not handler.deregister(A, "/elsewhere.sock")
    assert not handler.deregister(A, fake.driver_socket, identity="y")
    assert store.names() == [A]


def test_a_driver_that_does_not_answer_in_time(handler, store, plugin) -> None:
    """CSI-REG-07: the caller's own deadline."""
    fake = plugin(held="NodeGetInfo")
    with pytest.raises(StorageDriverError, match="DEADLINE_EXCEEDED"):
        handler.register(A, fake.driver_socket, timeout=0.2)
    assert store.names() == []


def test_a_driver_that_nobody_runs(handler, short_dir) -> None:
    """BR-25: a socket file is there, its process is not."""
    path = f"{short_dir}/stale.sock"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)
    with pytest.raises(StorageDriverError, match="UNAVAILABLE"):
        handler.register(A, path)
    with pytest.raises(StorageDriverUnavailableError, match="no such socket"):
        handler.register(A, f"{short_dir}/none.sock")


def test_an_identity_service_that_says_nothing_is_no_obstacle(handler, store, plugin) -> None:
    handler.register(A, plugin(fail={"GetPluginInfo": "UNIMPLEMENTED"}).driver_socket)
    assert store.names() == [A]


def test_names_are_handled_one_at_a_time_each(handler, store, plugin) -> None:
    """CSI-PM-09, CSI-REG-06: of many at once with one name one is registered."""
    fakes = [plugin() for _ in range(6)]
    refused: list[Exception] = []

    def register(number: int) -> None:
        try:
            handler.register(A, fakes[number].driver_socket, identity=number)
        except DriverNameTakenError as error:
            refused.append(error)

    threads = [threading.Thread(target=register, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(store.instances(A)) == 1
    assert len(refused) == 5
    assert handler._names._locks == {}


def test_refresh(handler, store, publisher, plugin) -> None:
    """CSI-REG-16: only CSINode is updated; nothing is unregistered when it fails."""
    fake = plugin(max_volumes=5)
    handler.register(A, fake.driver_socket)
    heard: list[str] = []
    store.subscribe(heard.append)
    fake.says["max_volumes"] = 9
    assert handler.refresh(A).max_volumes == 9
    assert store.get(A).node_info.max_volumes == 9
    assert publisher.told[-1] == ("update", A, "node-1")
    handler.refresh(A)
    assert heard == [A], "told once: the second time nothing had changed"
    fake.says["fail"] = {"NodeGetInfo": "UNAVAILABLE"}
    with pytest.raises(StorageDriverError):
        handler.refresh(A)
    assert store.get(A).node_info.max_volumes == 9
    with pytest.raises(StorageDriverUnavailableError, match="not registered"):
        handler.refresh(B)


def test_a_driver_that_hangs_while_it_is_asked_again_can_be_replaced(
    handler, store, publisher, plugin, wait_until
) -> None:
    """CSI-REG-16: its late answer is of no interest then."""
    old, new = plugin(node_id="old"), plugin(node_id="new")
    handler.register(A, old.driver_socket, identity="old")
    old._held = "NodeGetInfo"
    thread = threading.Thread(target=handler.refresh, args=(A,))
    thread.start()
    wait_until(lambda: old.calls.count("NodeGetInfo") == 2, "asked again")
    handler.register(A, new.driver_socket, identity="new", replaces="old")
    old.hold.set()
    thread.join(30)
    assert store.get(A).node_info.node_id == "new"
    assert publisher.told[-1] == ("install", A, "new")


def test_nothing_is_registered_after_the_end(handler, store, plugin) -> None:
    fake = plugin()
    handler.close()
    with pytest.raises(StorageDriverUnavailableError, match="shutting down"):
        handler.register(A, fake.driver_socket)
    assert store.names() == []
