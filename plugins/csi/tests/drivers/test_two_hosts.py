"""Two hosts at once on one root directory: one process of a driver, for as long as one of them needs it."""

from __future__ import annotations

import os
import signal

NAME = "acme.example.com"


def test_they_share_one_process_which_ends_with_the_last_of_them(new_drivers, site, running):
    first, second = new_drivers(), new_drivers()
    first.driver(NAME, timeout=30)
    second.driver(NAME, timeout=30)
    record = running()
    first.close()
    assert record.alive
    assert second.node_client(NAME).get_info().node_id == "node-1"
    second.close()
    assert not record.alive


def test_two_processes_that_start_at_once_start_one(host_process, places):
    first, second = host_process(), host_process()
    for each in (first, second):
        each.process.stdin.write("need\n")
        each.process.stdin.flush()
    assert [each.process.stdout.readline() for each in (first, second)] == ["node-1\n", "node-1\n"]
    with open(f"{places.data_directory}/starts") as file:
        assert len(file.readlines()) == 1
    for each in (first, second):
        assert each.ask("close") == "closed"


def test_both_find_the_one_that_took_over_after_a_crash(new_drivers, site, running, wait_until, places):
    first, second = new_drivers(), new_drivers()
    before = {each: each.driver(NAME, timeout=30).instance for each in (first, second)}
    os.kill(running().process.pid, signal.SIGKILL)
    for each in (first, second):
        wait_until(lambda each=each: each.store.get(NAME) not in {None, before[each]}, "a new registration")
        assert each.driver(NAME, timeout=30).node.get_info().node_id == "node-1"
    with open(f"{places.data_directory}/starts") as file:
        assert len(file.readlines()) == 2


def test_a_host_that_comes_while_the_driver_is_ending_starts_another(new_drivers, site, running):
    first = new_drivers()
    for _ in range(3):
        first.driver(NAME, timeout=30)
        record = running()
        second = new_drivers()
        first.close()
        assert second.driver(NAME, timeout=30).node_id == "node-1"
        assert running().instance != record.instance
        first = second
