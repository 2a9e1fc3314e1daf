"""Real driver processes, installed in directories that pip could have written; nothing of them may be left."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

import pytest

from volumehost.hosts.node_host import NodeHost
from volumehost_csi.drivers import Drivers
from volumehost_csi.drivers.driver_process import SupervisionSettings
from volumehost_csi.drivers.launch import LaunchSettings
from volumehost_csi.drivers.places import DriverPlaces
from volumehost_csi.drivers.processes import identify
from volumehost_csi.drivers.records import read_process

HERE = os.path.dirname(__file__)
NAME = "acme.example.com"
FAKE = "fake.example.com"
QUICK = SupervisionSettings(first_delay=0.05, longest_delay=0.4, tick=0.05, launch=LaunchSettings(grace=5))


def wait_until(condition, what="", seconds=30.0):
    """What ``condition`` returns, once that is true."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (result := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s for: {what or condition}"
        pause.wait(0.01)
    return result


@pytest.fixture(name="wait_until")
def wait_until_fixture():
    return wait_until


def status_of(drivers, name=NAME):
    """Its status, None when it is not known. Other drivers may be installed beside the tests'."""
    return next((status for status in drivers.statuses() if status.name == name), None)


@pytest.fixture(name="status_of")
def status_of_fixture():
    return status_of


@dataclass
class Site:
    """A directory on the path with one installed driver in it."""

    directory: str
    numbers: itertools.count

    def install(self, version="1.0", *, name=NAME, value="acme_driver:main", distribution="acme_driver"):
        """What ``pip install`` does: take the old version away, put the new one there, its RECORD last."""
        self.uninstall(distribution)
        with open(f"{HERE}/acme_driver.py") as source, open(f"{self.directory}/acme_driver.py", "w") as module:
            module.write(source.read().replace('VERSION = "1.0"', f'VERSION = "{version}"'))
        info = f"{self.directory}/{distribution}-{version}.dist-info"
        os.mkdir(info)
        for file, text in (
            ("METADATA", f"Metadata-Version: 2.1\nName: {distribution.replace('_', '-')}\nVersion: {version}\n"),
            ("entry_points.txt", f"[volumehost.csi_drivers]\n{name} = {value}\n"),
            ("INSTALLER", "pip\n"),
            ("RECORD", f"acme_driver.py,,\n{os.path.basename(info)}/RECORD,,\n"),
        ):
            with open(f"{info}/{file}", "w") as out:
                out.write(text)

    def uninstall(self, distribution="acme_driver"):
        for entry in os.listdir(self.directory):
            if entry.startswith(f"{distribution}-") and entry.endswith(".dist-info"):
                shutil.rmtree(f"{self.directory}/{entry}")


@pytest.fixture
def root():
    """A root directory whose path leaves room for a socket's name; at the end no process of a driver is left."""
    path = os.path.realpath(tempfile.mkdtemp(prefix="vh", dir="/tmp"))
    os.mkdir(f"{path}/plugins_registry")
    yield path
    left = list(processes_below(path))
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(path)
    assert not left, f"processes are left: {left}"


def processes_below(root):
    """Processes that were given a data directory below ``root``: keepers, drivers, and their children."""
    mark = f"VOLUMEHOST_DRIVER_DATA_DIR={root}/".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdecimal() or identify(int(entry)) is None:
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
            if any(variable.startswith(mark) for variable in file.read().split(b"\0")):
                yield int(entry)


@pytest.fixture
def left_running(root):
    """``left_running()``: pids of keepers, drivers and their children."""
    return lambda: list(processes_below(root))


@pytest.fixture
def quick():
    """Supervision in a hurry."""
    return QUICK


@pytest.fixture
def site(tmp_path):
    """A directory on ``sys.path`` with the driver acme.example.com 1.0 in it."""
    directory = str(tmp_path / "site")
    os.mkdir(directory)
    sys.path.append(directory)
    made = Site(directory, itertools.count())
    made.install()
    yield made
    sys.path.remove(directory)


@pytest.fixture
def host(root):
    return NodeHost(root, node_name="node-a")


@pytest.fixture
def places(host):
    return DriverPlaces.of(host, host.get_drivers_dir(), NAME)


@pytest.fixture
def behave(places):
    """``behave(exit=3)``: what the driver does from its next start on."""

    def behave(**behaviour):
        places.prepare()
        with open(f"{places.data_directory}/behaviour.json", "w") as file:
            json.dump(behaviour, file)

    return behave


@pytest.fixture
def new_drivers(host):
    """``new_drivers()``: the drivers of one more host on the same root directory."""
    made = []

    def make(supervision=QUICK, on=None, **arguments):
        made.append(Drivers(on or host, supervision=supervision, **arguments))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def drivers(new_drivers, site):
    return new_drivers()


@pytest.fixture
def running(places):
    """``running()``: the record of the process that runs now, None when none does."""

    def running():
        record = read_process(places)
        return record if record is not None and record.alive else None

    return running


@pytest.fixture
def fake(root):
    """A scriptable driver, served in this process."""
    from volumehost_csi_kit.fake import FakeDriver

    with FakeDriver(f"unix://{root}/fake.sock", name=FAKE, node_id="node-1") as driver:
        yield driver


@pytest.fixture
def called(fake, new_drivers, root):
    """The fake driver as the controllers see it, registered by command."""
    drivers = new_drivers()
    drivers.register(FAKE, f"{root}/fake.sock")
    return drivers.driver(FAKE, timeout=30)


HOST_PROGRAM = """\
import dataclasses, json, sys
site, root, name, tests = sys.argv[1:5]
sys.path[:0] = [site]
sys.path.append(tests)
from volumehost.hosts.node_host import NodeHost
from volumehost_csi.drivers import Drivers
from volumehost_csi.drivers.launch import LaunchSettings
from volumehost_csi.drivers.driver_process import SupervisionSettings
settings = SupervisionSettings(first_delay=0.05, longest_delay=0.4, tick=0.05, launch=LaunchSettings(grace=5))
drivers = Drivers(NodeHost(root, node_name="node-a"), supervision=settings)
for line in sys.stdin:
    command = line.strip()
    if command == "need":
        print(drivers.driver(name, timeout=60).node_id, flush=True)
    elif command == "begin":
        drivers._begin(name)
        print("begun", flush=True)
    elif command == "close":
        drivers.close()
        print("closed", flush=True)
        break
"""


class HostProcess:
    """A host in a process of its own, which can be killed."""

    def __init__(self, site, root):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST_PROGRAM, site, root, NAME, HERE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, command):
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    def end(self):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def host_process(site, root):
    """``host_process()``: one more host, in a process of its own."""
    made = []

    def start():
        made.append(HostProcess(site.directory, root))
        return made[-1]

    yield start
    for each in made:
        each.end()
