"""What an agent loads that has one CSI driver and no volumes: nothing that only a volume, claim or snapshot needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from volumehost_csi_kit.fake import FakeDriverProcess

pytestmark = pytest.mark.root

DRIVER = "null.csi.example.com"
AGENT = """
import sys
from volumehost import VolumeManager

root, driver, endpoint = sys.argv[1:]
with VolumeManager(root, adopt=True) as manager:
    manager.drivers.register(driver, endpoint)
    manager.drivers.driver(driver, timeout=30).capabilities()
    manager.control.wait_until(manager.control.settled, 30, "the controllers")
    print(*sys.modules)
"""
#: With all below each.
UNNEEDED = (
    *("packaging", "zipfile", "ipaddress", "tomllib", "secrets"),
    *("volumehost.hosts.tokens", "volumehost.mount.loop", "volumehost.mount.mounter", "volumehost.mount.removal"),
    *(
        "volumehost.node.operations.attach_operations",
        "volumehost.node.operations.device_operations",
        "volumehost.node.operations.expansion",
    ),
    *(
        "volumehost.node.operations.mount_operation",
        "volumehost.node.operations.unmount_operation",
        "volumehost.node.restart.orphans",
    ),
    *(
        "volumehost.control.binding.claim_binder",
        "volumehost.control.attaching.attach_controller",
        "volumehost.control.provisioning.provisioner",
    ),
    *("volumehost.control.snapshots.snapshot_controller", "volumehost.control.expanding.expand_controller"),
    *("volumehost.api.validation.pods", "volumehost.api.validation.claims", "volumehost.api.validation.sources"),
    *("volumehost_csi.attacher", "volumehost_csi.block", "volumehost_csi.device", "volumehost_csi.mounter"),
    *("volumehost_csi.reconstruct", "volumehost_csi.drivers.keeper", "volumehost_csi.drivers.supervised"),
    *("volumehost_hostpath.provisioner", "volumehost_emptydir.mounter", "volumehost_projected.mounter"),
)


def test_an_agent_without_volumes_loads_nothing_that_volumes_need(tmp_path, sockets):
    endpoint = f"{sockets}/csi.sock"
    with FakeDriverProcess(endpoint, str(tmp_path / "driver"), null=True, name=DRIVER):
        command = [sys.executable, "-c", AGENT, str(tmp_path / "root"), DRIVER, endpoint]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    modules = set(done.stdout.split())
    assert {"grpc", "volumehost.control.plane", "volumehost_csi.registration.service"} <= modules
    assert [name for name in UNNEEDED if any(f"{each}.".startswith(f"{name}.") for each in modules)] == []
