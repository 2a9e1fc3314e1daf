"""Drivers that do not start, end, or are not what they should be: errors that say what to do; restarts with backoff."""

from __future__ import annotations

import os
import signal

import pytest

from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import DriverState

NAME = "acme.example.com"


def test_a_driver_that_does_not_start_is_told_with_its_status_and_its_last_words(drivers, behave, places, status_of):
    behave(exit=3, print=["reading /etc/acme.conf", "no such file: /etc/acme.conf"])
    with pytest.raises(StorageDriverUnavailableError) as caught:
        drivers.driver(NAME, timeout=30)
    text = str(caught.value)
    assert f"starting the CSI driver {NAME}" in text
    assert "exit status 3" in text
    assert "reading /etc/acme.conf | no such file: /etc/acme.conf" in text
    assert places.log_file in text
    status = status_of(drivers)
    assert status.state is DriverState.FAILED
    assert "exit status 3" in status.error
    assert caught.value.driver == NAME


def test_an_import_error_of_the_driver_is_its_failure_alone(drivers, site, status_of):
    site.install("1.1", value="acme_missing:main")
    with pytest.raises(StorageDriverUnavailableError, match="No module named 'acme_missing'"):
        drivers.driver(NAME, timeout=30)


def test_what_a_driver_prints_of_passwords_is_not_in_the_error(drivers, behave):
    """BR-74."""
    behave(exit=1, print=["connecting with password=hunter2"])
    with pytest.raises(StorageDriverUnavailableError) as caught:
        drivers.driver(NAME, timeout=30)
    assert "connecting" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_it_is_started_again_after_a_failure_with_growing_delays(drivers, behave, places, status_of, wait_until):
    behave(exit=1)
    with pytest.raises(StorageDriverUnavailableError):
        drivers.driver(NAME, timeout=30)

    def starts():
        with open(f"{places.data_directory}/starts") as file:
            return len(file.readlines())

    wait_until(lambda: starts() >= 3, "three starts")
    wait_until(lambda: status_of(drivers).retry_at, "a time of the next try")
    behave()
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"
    assert status_of(drivers).error == ""


def test_a_driver_that_dies_while_it_is_needed_is_started_again(drivers, running, status_of, wait_until):
    first = drivers.driver(NAME, timeout=30)
    record = running()
    os.kill(record.process.pid, signal.SIGKILL)
    wait_until(lambda: drivers.store.get(NAME) is not first.instance, "the end to be noticed")
    second = drivers.driver(NAME, timeout=30)
    assert second is not first
    assert second.node_id == "node-1"
    assert running().instance != record.instance
    assert status_of(drivers).restarts == 1
    assert drivers.node_client(NAME).get_info().node_id == "node-1"


def test_the_reason_of_its_last_end_is_shown_while_it_waits(new_drivers, site, running, status_of, wait_until, quick):
    from dataclasses import replace

    drivers = new_drivers(replace(quick, first_delay=60, longest_delay=60))
    drivers.driver(NAME, timeout=30)
    os.kill(running().process.pid, signal.SIGSEGV)
    status = wait_until(lambda: (s := status_of(drivers)).state is DriverState.FAILED and s, "the failure")
    assert "signal SIGSEGV" in status.error
    assert status.retry_at is not None
    with pytest.raises(StorageDriverUnavailableError, match=r"SIGSEGV.*started again in \d"):
        drivers.driver(NAME, timeout=1)


def test_a_driver_with_another_name_is_refused_and_ended(drivers, behave, running, wait_until):
    behave(name="other.example.com")
    with pytest.raises(StorageDriverUnavailableError, match=r"other\.example\.com"):
        drivers.driver(NAME, timeout=30)
    drivers.close()
    assert running() is None


def test_an_empty_node_id_is_refused(drivers, behave):
    behave(node_id="")
    with pytest.raises(StorageDriverUnavailableError, match="node_id"):
        drivers.driver(NAME, timeout=30)


def test_a_driver_that_never_serves_is_given_up_and_ended(new_drivers, site, behave, running, places, quick):
    from dataclasses import replace

    behave(hang=True)
    drivers = new_drivers(replace(quick, start_timeout=1.5, first_delay=60, longest_delay=60))
    with pytest.raises(StorageDriverUnavailableError, match="nothing answers at") as caught:
        drivers.driver(NAME, timeout=30)
    assert places.log_file in str(caught.value)
    assert running() is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("acme_driver", "is not module:function"),
        ("acme_driver:main [keep-alive, turbo]", "unknown extra: turbo"),
        ("acme-driver:main", "is not module:function"),
    ],
)
def test_an_entry_point_that_cannot_be_used_says_why(drivers, site, status_of, value, words):
    site.install("1.0", value=value)
    status = status_of(drivers)
    assert status.state is DriverState.FAILED
    assert words in status.error
    with pytest.raises(StorageDriverUnavailableError, match=words):
        drivers.driver(NAME, timeout=30)


def test_two_distributions_with_one_driver_are_told_by_name(drivers, site, status_of):
    site.install("2.0", distribution="zenith_driver")
    status = status_of(drivers)
    assert "acme-driver 1.0 and zenith-driver 2.0" in status.error
    with pytest.raises(StorageDriverUnavailableError, match="uninstall one of them"):
        drivers.driver(NAME, timeout=30)
    site.uninstall("zenith_driver")
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"


@pytest.mark.parametrize("name", ["../../etc", "a/b", "x" * 64])
def test_a_misnamed_driver_costs_the_others_nothing(drivers, site, status_of, root, name):
    site.install("2.0", name=name, distribution="zenith_driver")
    status = status_of(drivers, name)
    assert status.state is DriverState.FAILED
    assert "not the name of a CSI driver" in status.error
    assert status.distribution == "zenith-driver"
    assert status_of(drivers).state is DriverState.STOPPED
    assert os.listdir(root) == ["plugins_registry"]
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"


@pytest.mark.parametrize("name", ["", "../../etc", "a/b", "x" * 64, "-a"])
def test_a_name_that_no_driver_can_have_touches_nothing(drivers, root, name):
    with pytest.raises(StorageDriverUnavailableError):
        drivers.driver(name, timeout=0)
    assert not os.path.exists(f"{root}/drivers")


def test_an_unknown_driver_says_where_it_was_looked_for(drivers):
    """BR-27."""
    with pytest.raises(StorageDriverUnavailableError) as caught:
        drivers.driver("none.example.com", timeout=5)
    text = str(caught.value)
    assert "it is not registered" in text
    assert "plugins_registry" in text
    assert "volumehost drivers list" in text


def test_another_process_is_told_how_the_last_one_failed(drivers, new_drivers, behave, status_of):
    behave(exit=3, print=["no licence"])
    with pytest.raises(StorageDriverUnavailableError):
        drivers.driver(NAME, timeout=30)
    drivers.close()
    status = status_of(new_drivers())
    assert status.state is DriverState.FAILED
    assert "exit status 3; it printed last: no licence" in status.error
    behave()
    assert new_drivers().driver(NAME, timeout=30).node_id == "node-1"


def test_a_driver_that_was_ended_has_not_failed(drivers, new_drivers, status_of):
    drivers.driver(NAME, timeout=30)
    drivers.close()
    status = status_of(new_drivers())
    assert (status.state, status.error, status.restarts) == (DriverState.STOPPED, "", 0)


def test_a_failing_record_stops_no_driver(drivers, places):
    places.prepare()
    os.mkdir(places.facts_file)
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"


def test_a_lock_that_cannot_be_had_is_told(drivers, places, tmp_path):
    places.prepare()
    os.symlink(f"{tmp_path}/elsewhere", places.start_lock)
    with pytest.raises(StorageDriverUnavailableError, match=r"symbolic links \(.*start\.lock\)"):
        drivers.driver(NAME, timeout=10)
