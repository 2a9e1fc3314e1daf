"""Whoever is killed, and when: no driver is leaked, none is ended that is needed, none is hit by a recycled number."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from volumehost.storage_driver import DriverState
from volumehost_csi.drivers import keeper
from volumehost_csi.drivers.processes import ProcessIdentity, identify, wait_for_end

NAME = "acme.example.com"


def test_a_killed_host_takes_its_driver_along(host_process, running):
    host = host_process()
    assert host.ask("need") == "node-1"
    record = running()
    host.kill()
    assert wait_for_end(record.process, 20)
    assert wait_for_end(record.keeper, 20)


@pytest.mark.parametrize("condition", ["keeper", "process.json", "serving"])
def test_a_host_killed_in_the_middle_of_a_start_leaks_nothing(
    host_process, places, root, wait_until, condition, left_running
):

    host = host_process()
    assert host.ask("begin") == "begun"
    wait_until(
        {
            "keeper": left_running,
            "process.json": lambda: os.path.exists(places.process_file),
            "serving": lambda: os.path.exists(f"{root}/plugins/{NAME}/csi.sock"),
        }[condition],
        condition,
    )
    host.kill()
    wait_until(lambda: not left_running(), "the driver and its keeper to end")


def test_the_driver_of_a_killed_host_goes_on_for_one_that_uses_it(host_process, drivers, running, places):
    first = host_process()
    first.ask("need")
    record = running()
    driver = drivers.driver(NAME, timeout=30)
    assert running().instance == record.instance
    first.kill()
    assert not wait_for_end(record.process, 3 * keeper.TICK)  # two looks of the keeper at least
    assert driver.node.get_info().node_id == "node-1"
    drivers.close()
    assert not record.alive


def test_a_killed_keeper_takes_the_driver_along_which_is_started_again(drivers, running, wait_until, status_of):
    drivers.driver(NAME, timeout=30)
    record = running()
    os.kill(record.keeper.pid, signal.SIGKILL)
    assert wait_for_end(record.process, 20)
    wait_until(lambda: (now := running()) and now.instance != record.instance, "another process")
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"


def test_children_of_a_driver_end_with_it(drivers, behave, places, wait_until):
    behave(child=True)
    drivers.driver(NAME, timeout=30)
    with open(f"{places.data_directory}/child") as file:
        child = identify(int(file.read()))
    drivers.close()
    assert wait_for_end(child, 20)


def test_children_of_a_driver_that_was_killed_with_its_keeper_end_at_the_next_start(
    drivers, behave, places, running, wait_until
):
    behave(child=True)
    drivers.driver(NAME, timeout=30)
    with open(f"{places.data_directory}/child") as file:
        child = identify(int(file.read()))
    record = running()
    os.kill(record.keeper.pid, signal.SIGKILL)
    assert wait_for_end(record.process, 20)
    wait_until(lambda: (now := running()) and now.instance != record.instance, "another process")
    assert wait_for_end(child, 20)


def test_a_driver_that_ignores_sigterm_is_killed(new_drivers, site, behave, running, quick):
    from dataclasses import replace

    from volumehost_csi.drivers.launch import LaunchSettings

    behave(ignore_term=True)
    drivers = new_drivers(replace(quick, launch=LaunchSettings(grace=0.3)))
    drivers.driver(NAME, timeout=30)
    record = running()
    drivers.close()
    assert not record.alive


def test_the_keeper_of_a_host_that_is_gone_starts_nothing(places, tmp_path):
    places.prepare()
    job = {"users_lock": places.users_lock, "instance": "x", "program": ["/bin/touch", f"{tmp_path}/ran"]}
    done = subprocess.run(
        [sys.executable, "-I", "-S", keeper.__file__, json.dumps(job)],
        stdin=subprocess.DEVNULL,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0
    assert not os.path.exists(f"{tmp_path}/ran")
    assert not os.path.exists(places.process_file)


def test_a_record_that_names_somebody_elses_process_hits_nobody(drivers, places, running, root):
    """A recycled pid: the number lives, the process of the record does not."""
    drivers.driver(NAME, timeout=30)
    drivers.close()
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        with open(places.process_file) as file:
            record = json.load(file)
        record["pid"] = record["keeper_pid"] = stranger.pid
        with open(places.process_file, "w") as file:
            json.dump(record, file)
        assert running() is None
        from volumehost_csi.drivers import Drivers

        with_stranger = Drivers(drivers.host, supervision=drivers._supervision)
        try:
            assert with_stranger.driver(NAME, timeout=30).node_id == "node-1"
        finally:
            with_stranger.close()
        assert stranger.poll() is None
        stranger.kill()


def test_an_identity_of_another_boot_is_nobodys():
    me = identify(os.getpid())
    from volumehost_csi.drivers.processes import is_alive, send_signal

    assert is_alive(me)
    assert not is_alive(ProcessIdentity(me.pid, me.start_time, "0" * 36))
    assert not is_alive(ProcessIdentity(me.pid, me.start_time + 1, me.boot_id))
    assert not send_signal(ProcessIdentity(me.pid, me.start_time + 1, me.boot_id), signal.SIGKILL)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}', "null", '{"instance": 1}'])
def test_records_that_make_no_sense_count_as_absent(drivers, places, content, status_of):
    places.prepare()
    for path in (places.process_file, places.facts_file, places.exit_file, places.registered_file):
        with open(path, "w") as file:
            file.write(content)
    assert status_of(drivers).state is DriverState.STOPPED
    assert drivers.driver(NAME, timeout=30).node_id == "node-1"
