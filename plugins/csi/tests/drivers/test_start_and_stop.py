"""An installed driver is started when it is needed, and ends when nobody needs it (DESIGN section 10)."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import pytest

from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import DriverOrigin, DriverState

NAME = "acme.example.com"


def test_it_is_started_on_demand_registered_and_stopped_at_the_end(drivers, running, status_of):
    before = status_of(drivers)
    assert (before.state, before.origin, before.pid) == (DriverState.STOPPED, DriverOrigin.INSTALLED, None)
    driver = drivers.driver(NAME, timeout=30)
    assert (driver.name, driver.node_id) == (NAME, "node-1")
    assert driver.capabilities().controls("CREATE_DELETE_VOLUME")
    record = running()
    status = status_of(drivers)
    assert (status.state, status.pid, status.node_id, status.max_volumes) == (
        DriverState.READY,
        record.process.pid,
        "node-1",
        7,
    )
    assert status.capabilities == driver.capabilities()
    drivers.close()
    assert running() is None
    assert not record.alive


def test_what_it_told_is_known_while_it_does_not_run(drivers, new_drivers, status_of):
    capabilities = drivers.driver(NAME, timeout=30).capabilities()
    drivers.close()
    status = status_of(new_drivers())
    assert (status.state, status.node_id, status.capabilities) == (DriverState.STOPPED, "node-1", capabilities)
    assert (status.version, status.distribution) == ("1.0", "acme-driver")
    assert os.path.isfile(status.log_file)


def test_it_gets_what_a_driver_is_promised_and_a_group_of_its_own(drivers, running, places, root):
    drivers.driver(NAME, timeout=30)
    record = running()
    with open(f"/proc/{record.process.pid}/environ") as file:
        environment = dict(each.split("=", 1) for each in file.read().split("\0") if each)
    assert environment["CSI_ENDPOINT"] == f"unix://{root}/plugins/{NAME}/csi.sock"
    assert environment["KUBE_NODE_NAME"] == "node-a"
    assert environment["VOLUMEHOST_DRIVER_NAME"] == NAME
    assert environment["VOLUMEHOST_DRIVER_DATA_DIR"] == places.data_directory
    assert os.getsid(record.process.pid) == os.getpgid(record.process.pid) == record.process.pid
    assert os.readlink(f"/proc/{record.process.pid}/cwd") == places.data_directory


def test_records_logs_and_data_are_for_their_owner_alone(drivers, places):
    drivers.driver(NAME, timeout=30)
    for path in (places.directory, places.data_directory):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    for path in (places.log_file, places.process_file, places.facts_file, places.users_lock):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_same_client_serves_until_it_registers_again(drivers):
    client = drivers.node_client(NAME, 30)
    assert drivers.node_client(NAME) is client
    assert client.get_info().node_id == "node-1"


def test_without_time_to_wait_it_is_begun_all_the_same(drivers, wait_until):
    with pytest.raises(StorageDriverUnavailableError, match="not ready after 0 s"):
        drivers.node_client(NAME)
    assert wait_until(lambda: drivers.store.get(NAME), "the driver to be registered")
    assert drivers.node_client(NAME).driver == NAME


def test_many_callers_at_once_start_one_process(drivers, places):
    barrier, found = threading.Barrier(8), []

    def call():
        barrier.wait()
        found.append(drivers.driver(NAME, timeout=30))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    with open(f"{places.data_directory}/starts") as file:
        assert len(file.readlines()) == 1


def test_a_driver_that_is_still_starting_is_waited_for(drivers, behave, places, status_of):
    behave()
    open(f"{places.data_directory}/not_ready", "w").close()
    with pytest.raises(StorageDriverUnavailableError, match=r"not ready after 0\.1 s"):
        drivers.driver(NAME, timeout=0.1)
    assert status_of(drivers).state is DriverState.STARTING
    os.unlink(f"{places.data_directory}/not_ready")
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"


def test_node_information_that_is_not_there_yet_is_asked_for_again(drivers, behave, places, running, wait_until):
    """BR-25: NodeGetInfo fails for a while, then works."""
    behave()
    open(f"{places.data_directory}/unavailable", "w").close()
    drivers._begin(NAME)
    wait_until(lambda: "not yet" in drivers._supervised[NAME]._waits_for, "a NodeGetInfo that fails")
    with pytest.raises(StorageDriverUnavailableError, match=r"not ready after 0 s: .*UNAVAILABLE: not yet"):
        drivers.driver(NAME, timeout=0)
    record = running()
    os.unlink(f"{places.data_directory}/unavailable")
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"
    assert running().instance == record.instance


def test_the_end_of_the_host_ends_a_start_that_is_under_way(drivers, behave, places, running, wait_until):
    behave()
    open(f"{places.data_directory}/not_ready", "w").close()
    with pytest.raises(StorageDriverUnavailableError):
        drivers.node_client(NAME)
    wait_until(running, "the process to run")
    drivers.close()
    assert running() is None
    with pytest.raises(StorageDriverUnavailableError, match="about to end"):
        drivers.driver(NAME, timeout=1)


def test_loading_it_costs_neither_grpc_nor_the_bindings():
    code = (
        "import sys; import volumehost_csi.drivers as d; from volumehost.hosts.node_host import NodeHost; "
        "x = d.Drivers(NodeHost('/nonexistent')); x.close(); "
        "print([m for m in ('grpc', 'google.protobuf', 'volumehost_csi_kit') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
