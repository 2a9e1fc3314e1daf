"""Resident memory of a host that has one CSI driver and no volumes, beside a process that could only make the calls."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile

from bench.measuring import Figure
from volumehost_csi_kit.fake import FakeDriverProcess

DRIVER = "null.csi.example.com"
ROUNDS = 5
_MIB = 1 << 20

_TELL = """
def tell():
    with open("/proc/self/status") as file:
        print(next(line.split()[1] for line in file if line.startswith("VmRSS")))
"""
#: As an agent has it: plugins loaded, registration watched, controllers at work, the driver registered and asked.
_HOST = """
import sys
from volumehost import VolumeManager
with VolumeManager(sys.argv[1], adopt=True) as manager:
    manager.drivers.register(sys.argv[2], sys.argv[3])
    manager.drivers.driver(sys.argv[2], timeout=30).capabilities()
    manager.control.wait_until(manager.control.settled, 30, "the controllers")
    tell()
"""
_CALLS = """
import grpc
from volumehost_csi_kit import csi, stubs
tell()
"""


def figures() -> list[Figure]:
    """Both in fresh processes, in turn."""
    ours, anchor = [], []
    with tempfile.TemporaryDirectory() as base:
        endpoint = f"{base}/csi.sock"
        with FakeDriverProcess(endpoint, f"{base}/driver", null=True, name=DRIVER):
            for number in range(ROUNDS):
                anchor.append(_resident(_CALLS))
                ours.append(_resident(_HOST, f"{base}/root-{number}", DRIVER, endpoint))
    name = "memory in MiB, host with one CSI driver and no volumes"
    taken = statistics.median(ours), statistics.median(anchor)
    return [Figure(name, *taken, "grpcio and the bindings imported", 1.25, 1.12, unit="")]


def _resident(program: str, *arguments: str) -> float:
    command = [sys.executable, "-c", _TELL + program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return int(done.stdout) * 1024 / _MIB
