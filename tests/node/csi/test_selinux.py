"""The label of a pod's containers reaches a driver that can mount with it, and is known after a restart (CSI-SEL-01 to
-07, SEL-02, RECON-23). This machine's SELinux is a directory."""

import json
import os
from pathlib import Path

import pytest

from volumehost.api.objects import CSIDriver
from volumehost.mount.selinux import SELinux

pytestmark = pytest.mark.root

LABEL = "system_u:object_r:container_file_t:s0:c1,c2"


@pytest.fixture
def selinux(tmp_path):
    (tmp_path / "fs").mkdir()
    (tmp_path / "fs" / "enforce").write_text("1")
    contexts = tmp_path / "etc" / "targeted" / "contexts"
    contexts.mkdir(parents=True)
    (contexts / "lxc_contexts").write_text('file = "system_u:object_r:container_file_t:s0"\n')
    return SELinux(str(tmp_path / "fs"), str(tmp_path / "etc"))


def labelled(manifest):
    (container,) = manifest["spec"]["containers"]
    container["securityContext"] = {"seLinuxOptions": {"level": "s0:c1,c2"}}
    return manifest


def flags(driver, call):
    (made,) = driver.calls(call)
    return list(made.request.volume_capability.mount.mount_flags)


@pytest.mark.parametrize(
    ("can", "access", "expected"),
    [
        (True, "ReadWriteOncePod", [f'context="{LABEL}"']),
        (True, "ReadWriteOnce", []),
        (False, "ReadWriteOncePod", []),
    ],
)
def test_csi_sel01_02_03_the_label_is_a_mount_option(manager, driver, claim, pod, root, selinux, can, access, expected):
    node = manager(selinux=selinux)
    own = node.api.get(CSIDriver, "fake.csi.example.com")
    own.spec.se_linux_mount = can
    node.api.replace(own)
    claim(node.api, access=access)
    node.mount_pod(labelled(pod()), timeout=60)
    assert flags(driver, "NodeStageVolume") == flags(driver, "NodePublishVolume") == expected
    records = [json.loads(path.read_text()) for path in Path(root).rglob("vol_data.json")]
    assert {record.get("seLinuxMountContext", "") for record in records} == {LABEL if expected else ""}
    node.unmount_pod("web", timeout=60)


def test_recon23_without_the_journal_the_drivers_record_tells_the_label(manager, driver, claim, pod, root, selinux):
    with manager(selinux=selinux, enter=False) as first:
        first.drivers.register("fake.csi.example.com", driver.endpoint)
        for each in (
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fake"},
             "provisioner": "fake.csi.example.com"},
            {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "fake.csi.example.com"},
             "spec": {"attachRequired": False, "seLinuxMount": True}},
        ):  # fmt: skip
            first.api.create(each)
        claim(first.api, access="ReadWriteOncePod")
        first.mount_pod(labelled(pod()), timeout=60)
    os.unlink(f"{root}/volumes.journal")
    driver.clear_calls()
    with manager(selinux=selinux, enter=False) as second:
        second.mount_pod(labelled(pod()), timeout=60)
        names = [call.name for call in driver.calls()]
        assert "NodeUnpublishVolume" not in names
        assert "NodeUnstageVolume" not in names
        second.unmount_pod("web", timeout=60)
