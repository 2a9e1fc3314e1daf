"""Drivers whose mounts need their process: left running by a host, adopted by the next."""

from __future__ import annotations

import os
import signal

import pytest

from volumehost.storage_driver import DriverState
from volumehost_csi.drivers.launch import LaunchSettings, end_process
from volumehost_csi.drivers.processes import wait_for_end

NAME = "acme.example.com"


@pytest.fixture(autouse=True)
def _installed(site, running, places):
    site.install("1.0", value="acme_driver:main [keep-alive]")
    yield
    record = running()
    if record is not None:
        end_process(record, places, LaunchSettings(grace=5))


def test_it_is_left_running_and_adopted_by_the_next_host(new_drivers, running, places, status_of, wait_until):
    first = new_drivers()
    first.driver(NAME, timeout=30)
    record = running()
    first.close()
    assert record.alive
    second = new_drivers()
    status = status_of(second)
    assert (status.state, status.pid, status.keep_alive) == (DriverState.READY, record.process.pid, True)
    second.start()
    wait_until(lambda: second.store.get(NAME), "the driver to be adopted")
    assert second.driver(NAME, timeout=30).node_id == "node-1"
    assert running().instance == record.instance


def test_it_outlives_a_killed_host(host_process, new_drivers, running):
    host = host_process()
    host.ask("need")
    record = running()
    host.kill()
    assert not wait_for_end(record.process, 3)
    assert new_drivers().driver(NAME, timeout=30).node_id == "node-1"
    assert running().instance == record.instance


def test_it_outlives_its_keeper_and_can_still_be_ended(new_drivers, running, places):
    drivers = new_drivers()
    drivers.driver(NAME, timeout=30)
    record = running()
    os.kill(record.keeper.pid, signal.SIGKILL)
    assert wait_for_end(record.keeper, 20)
    assert drivers.node_client(NAME).get_info().node_id == "node-1"
    end_process(record, places, LaunchSettings(grace=5))
    assert not record.alive


def test_an_adopted_one_that_dies_is_started_again(new_drivers, running, wait_until):
    first = new_drivers()
    first.driver(NAME, timeout=30)
    first.close()
    record = running()
    second = new_drivers()
    second.driver(NAME, timeout=30)
    os.kill(record.process.pid, signal.SIGKILL)
    wait_until(lambda: (now := running()) and now.instance != record.instance, "another process")
    assert second.driver(NAME, timeout=30).node_id == "node-1"


def test_uninstalled_and_without_mounts_it_ends_with_the_host(new_drivers, running, site):
    drivers = new_drivers()
    drivers.driver(NAME, timeout=30)
    record = running()
    site.uninstall()
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"
    drivers.close()
    assert not record.alive


def test_its_log_stays_within_bounds_without_its_keeper(new_drivers, running, places, wait_until, quick):
    from dataclasses import replace

    drivers = new_drivers(replace(quick, launch=LaunchSettings(grace=5, log_bytes=1000, log_parts=1)))
    drivers.driver(NAME, timeout=30)
    os.kill(running().keeper.pid, signal.SIGKILL)
    with open(places.log_file, "ab") as log:
        log.write(b"x" * 5000 + b"\n")
    wait_until(lambda: os.stat(places.log_file).st_size < 1000, "the log to be moved aside")
