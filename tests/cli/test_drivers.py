"""``drivers list|show|register|unregister|logs`` with real drivers: the installed one, and one that runs by itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

LOOP = "loop.csi.volumehost"
OTHER = "csi.example.com"

DRIVER = f"""
import sys
from volumehost_csi_kit import csi
from volumehost_csi_kit.server import Driver, serve

class Node:
    def node_get_info(self, request, context):
        return csi.NodeGetInfoResponse(node_id="node-7", max_volumes_per_node=3)
    def node_publish_volume(self, request, context):
        return None
    def node_unpublish_volume(self, request, context):
        return None

driver = Driver("{OTHER}", "2.5", node=Node())
sys.exit(serve(driver, sys.argv[1:], on_serving=lambda *_: print("serving", flush=True)))
"""


@pytest.fixture
def root():
    """A root directory whose path leaves room for a socket's name."""
    path = tempfile.mkdtemp(prefix="vh", dir="/tmp")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def drivers(volumehost, root):
    """``drivers("list")`` on that root directory."""
    return lambda *arguments, **options: volumehost("drivers", *arguments, root_dir=root, **options)


@pytest.fixture
def serving(root):
    """``serving(...)``: a driver that somebody else has started; returns its endpoint."""
    started = []

    def start(*arguments):
        endpoint = f"{root}/other.sock"
        command = [sys.executable, "-c", DRIVER, "--endpoint", f"unix://{endpoint}", *arguments]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        assert started[-1].stdout.readline() == "serving\n"
        return endpoint

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_an_installed_driver_is_listed_and_shown_without_starting_it_or_making_anything(volumehost, root) -> None:
    absent = f"{root}/absent"
    done = volumehost("drivers", "list", root_dir=absent)
    assert (done.code, done.err) == (0, "")
    head, *rows = done.lines()
    assert head.split() == ["NAME", "ORIGIN", "VERSION", "UPTIME", "RESTARTS", "STATE"]
    assert [row.split()[:2] + row.split()[-1:] for row in rows] == [[LOOP, "installed", "stopped"]]
    shown = volumehost("drivers", "show", LOOP, root_dir=absent)
    assert "not known yet; --start asks the driver" in shown.out
    assert volumehost("drivers", "list", "-o", "name", root_dir=absent).lines() == [LOOP]
    assert not os.path.exists(absent)


def test_show_start_asks_the_driver_and_what_it_said_is_remembered(drivers) -> None:
    done = drivers("show", LOOP, "--start", "-o", "json")
    assert done.code == 0, done.err
    told = done.json()
    assert (told["state"], told["origin"]) == ("ready", "installed")
    assert "CREATE_DELETE_VOLUME" in told["capabilities"]["controller"]
    assert told["manifest"].endswith("csi-driver.json")
    with pytest.raises(ProcessLookupError):
        os.kill(told["pid"], 0)
    later = drivers("show", LOOP, "-o", "json").json()
    assert (later["state"], later["pid"], later["capabilities"]) == ("stopped", None, told["capabilities"])
    assert "CREATE_DELETE_VOLUME" in drivers("show", LOOP).out


def test_logs_prints_what_the_driver_printed(drivers) -> None:
    drivers("show", LOOP, "--start")
    everything = drivers("logs", LOOP)
    assert everything.code == 0
    assert "serves endpoint=" in everything.out
    last = drivers("logs", LOOP, "-n", "1").lines()
    assert last == everything.lines()[-1:]
    assert drivers("logs", LOOP, "-n", "0").out == ""


def test_logs_follow_goes_on_over_a_log_that_was_moved_aside(drivers, volumehost, root) -> None:
    drivers("show", LOOP, "--start")
    log = Path(drivers("show", LOOP, "-o", "json").json()["logFile"])
    following = volumehost.start("drivers", "logs", LOOP, "-f", "-n", "0", "--root-dir", root)
    timer = threading.Timer(60, following.kill)
    timer.start()
    try:
        with log.open("a") as out:
            # The first lines may come before it follows; so they are written until one is seen.
            seen = threading.Event()

            def write() -> None:
                number = 0
                while not seen.wait(0.05):
                    number += 1
                    out.write(f"line {number} \x1b[31m\n")
                    out.flush()

            writer = threading.Thread(target=write)
            writer.start()
            line = following.stdout.readline()
            seen.set()
            writer.join()
        assert line.startswith("line ")
        assert "\x1b" not in line
        log.write_text("begun again\n")
        while line and line != "begun again\n":
            line = following.stdout.readline()
        assert line == "begun again\n"
    finally:
        timer.cancel()
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=30)
    assert following.returncode == 130


def test_a_driver_is_registered_by_command_shown_and_forgotten(drivers, serving) -> None:
    endpoint = serving()
    done = drivers("register", OTHER, endpoint)
    assert (done.code, done.out) == (0, f"driver {OTHER} registered at {endpoint}\n")
    shown = drivers("show", OTHER, "-o", "json").json()
    assert (shown["origin"], shown["endpoint"], shown["nodeID"], shown["maxVolumes"]) == (
        "registered",
        endpoint,
        "node-7",
        3,
    )
    assert shown["version"] == "2.5"
    assert shown["capabilities"]["plugin"] == []
    assert drivers("show", OTHER, "--start", "-o", "json").json()["state"] == "ready"
    assert drivers("logs", OTHER).code == 1
    assert drivers("unregister", OTHER).out == f"driver {OTHER} unregistered\n"
    assert drivers("list", "-o", "name").lines() == [LOOP]


def test_a_wrong_name_is_refused_with_the_right_one_and_nothing_is_kept(drivers, serving) -> None:
    done = drivers("register", "acme.example.com", serving())
    assert done.code == 1
    assert f"'{OTHER}'" in done.err
    assert drivers("list", "-o", "name").lines() == [LOOP]


@pytest.mark.parametrize("endpoint", ["/nonexistent/csi.sock", "tcp://127.0.0.1:1", "/etc/passwd"])
def test_an_endpoint_that_nothing_serves_is_refused(drivers, endpoint: str) -> None:
    done = drivers("register", OTHER, endpoint)
    assert done.code == 1
    assert f"error: registering the CSI driver {OTHER}" in done.err


def test_an_installed_driver_cannot_be_registered_or_forgotten_by_command(drivers, serving) -> None:
    done = drivers("register", LOOP, serving())
    assert done.code == 1
    assert "volumehost-loop-driver" in done.err
    assert drivers("unregister", LOOP).code == 1


@pytest.mark.parametrize("command", [["show"], ["logs"], ["unregister"]])
def test_an_unknown_driver_is_not_found(drivers, command: list[str]) -> None:
    done = drivers(*command, "none.example.com")
    assert done.code == 3
    assert f"known drivers: {LOOP}" in done.err


def test_a_driver_with_a_registration_socket_is_listed(drivers, serving, root) -> None:
    os.mkdir(f"{root}/plugins_registry")
    serving("--registration-dir", f"{root}/plugins_registry")
    found = {each["name"]: each for each in drivers("list", "-o", "json").json()["drivers"]}
    assert (found[OTHER]["origin"], found[OTHER]["state"], found[OTHER]["nodeID"]) == ("socket", "ready", "node-7")


def test_what_keeps_drivers_from_being_noticed_is_told(drivers, root) -> None:
    """BR-24."""
    data = Path(root, "plugins_registry", "data")
    data.mkdir(parents=True)
    for number in range(600):
        (data / str(number)).touch()
    done = drivers("list")
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert done.err.startswith(f"warning: the registration directory {root}/plugins_registry: {data} holds data")
    (problem,) = drivers("list", "-o", "json").json()["problems"]
    assert f"warning: {problem}\n" == done.err


def test_without_the_plugin_it_says_what_to_install(drivers) -> None:
    done = drivers("list", environment={"VOLUMEHOST_PLUGINS_DISABLE": "volumehost-csi"})
    assert done.code == 1
    assert "hint: pip install volumehost-csi" in done.err


def test_names_are_completed(volumehost, root) -> None:
    line = "volumehost drivers show lo"
    done = volumehost(
        environment={"_VOLUMEHOST_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": "3"}, root_dir=root
    )
    assert [entry.partition(",")[2] for entry in done.lines()] == [LOOP]
