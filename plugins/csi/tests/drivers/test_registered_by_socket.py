"""Drivers with a registration socket are found without ``start()``, and waited for (BR-25, BR-27)."""

from __future__ import annotations

import os
import threading

import pytest

from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import DriverOrigin, DriverState
from volumehost_csi.registration.attempts import RegistrationState
from volumehost_csi_kit.fake import FakeDriver, Rule

FAKE = "fake.example.com"


@pytest.fixture
def registering(root):
    """A fake driver that puts a socket into the registration directory when it is started."""
    driver = FakeDriver(
        f"unix://{root}/fake.sock", name=FAKE, node_id="node-1", registration_dir=f"{root}/plugins_registry"
    )
    yield driver
    driver.stop(0)


def test_a_look_up_finds_what_lies_in_the_directory(registering, new_drivers, status_of):
    registering.start()
    drivers = new_drivers()
    driver = drivers.driver(FAKE, timeout=30)
    assert driver.node_id == "node-1"
    assert driver.capabilities().controls("CREATE_DELETE_VOLUME")
    status = status_of(drivers, FAKE)
    assert (status.origin, status.state) == (DriverOrigin.SOCKET, DriverState.READY)
    assert status.capabilities == driver.capabilities()


def test_so_does_a_list(registering, new_drivers, status_of):
    registering.start()
    assert status_of(new_drivers(), FAKE).node_id == "node-1"


def test_nothing_is_begun_after_the_end(registering, new_drivers):
    registering.start()
    drivers = new_drivers()
    drivers.close()
    assert [status.name for status in drivers.statuses() if status.name == FAKE] == []
    assert not [thread.name for thread in threading.enumerate() if thread.name == "volumehost-registration"]


def test_a_registration_that_fails_at_first_is_waited_for(registering, new_drivers):
    """BR-25."""
    registering.script(Rule("NodeGetInfo", code="UNAVAILABLE", times=2))
    registering.start()
    assert new_drivers().driver(FAKE, timeout=30).node_id == "node-1"


def test_its_reason_is_told_when_the_time_is_up(registering, new_drivers, status_of, wait_until):
    """BR-25, BR-27."""
    registering.script(Rule("NodeGetInfo", code="INTERNAL", message="no licence", times=None))
    registering.start()
    drivers = new_drivers()
    drivers.start()
    wait_until(lambda: (found := status_of(drivers, FAKE)) and found.error, "the failure")
    with pytest.raises(StorageDriverUnavailableError, match=r"not registered.*no licence"):
        drivers.driver(FAKE, timeout=0.1)
    status = status_of(drivers, FAKE)
    assert status.state is DriverState.FAILED
    assert "no licence" in status.error
    assert status.retry_at is not None


def test_a_driver_that_registers_while_it_is_waited_for_is_had(registering, new_drivers, wait_until):
    registering.script(Rule("NodeGetInfo", hang=True))
    registering.start()
    drivers, found = new_drivers(), []
    thread = threading.Thread(target=lambda: found.append(drivers.driver(FAKE, timeout=30)))
    thread.start()
    registering.wait_for("NodeGetInfo")
    registering.release()
    thread.join(30)
    assert found[0].node_id == "node-1"


def test_a_driver_that_leaves_is_gone_and_back_when_it_is_back(registering, new_drivers, wait_until):
    registering.start()
    drivers = new_drivers()
    changes = []
    drivers.on_change(changes.append)
    drivers.start()
    first = wait_until(lambda: drivers.store.get(FAKE), "the driver")
    registered = [RegistrationState.REGISTERED]
    wait_until(lambda: [each.state for each in drivers.registry.settle(0)] == registered, "that it has been told so")
    registering.stop(0)
    wait_until(lambda: drivers.store.get(FAKE) is None, "its end")

    def why_not():
        with pytest.raises(StorageDriverUnavailableError) as caught:
            drivers.driver(FAKE, timeout=0)
        return str(caught.value)

    wait_until(lambda: "was removed" in why_not(), "the reason")
    registering.start()
    wait_until(lambda: drivers.store.get(FAKE), "its return")
    assert drivers.driver(FAKE, timeout=30).instance is not first
    assert set(changes) == {FAKE}


def test_a_socket_with_a_hostile_name_is_shown_as_refused_and_gets_no_path(new_drivers, root, status_of):
    from volumehost_csi_kit.server import RegistrationServer

    driver = FakeDriver(f"unix://{root}/fake.sock", name=FAKE, node_id="node-1")
    with driver:
        server = RegistrationServer("x", f"{root}/fake.sock", f"{root}/plugins_registry")
        server._info.name = "../../etc"
        server.start()
        try:
            status = status_of(new_drivers(), "../../etc")
        finally:
            server.stop()
    assert status.state is DriverState.FAILED
    assert "not the name of a CSI driver" in status.error
    assert not (set(os.listdir(root)) - {"plugins_registry", "fake.sock"})
