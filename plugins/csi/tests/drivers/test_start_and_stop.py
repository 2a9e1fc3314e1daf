"""An installed driver is started when it is needed, and ends when nobody needs it (DESIGN section 10)."""

from __future__ import annotations

import os

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
        DriverState.READY, record.process.pid, "node-1", 7,
    )  # fmt: skip
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
