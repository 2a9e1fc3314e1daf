"""Repairs go through the CSI plugin, so that drivers hear of them, in a kubelet's directory and in this host's own."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from volumehost.api.store import EmbeddedStore
from volumehost.inspection.inspect import Sources, inspect_root
from volumehost.inspection.repair import apply_repair, plan_repair
from volumehost.mount import loop, syscalls
from volumehost.mount.mountinfo import read_mount_table
from volumehost.node.manager import VolumeManager
from volumehost_csi_kit.fake import FakeDriverProcess, Rule

pytestmark = pytest.mark.root

DRIVER = "fake.csi.example.com"
UID = "00000001-aaaa-4bbb-8ccc-dddddddddddd"


@pytest.fixture
def area():
    """A tmpfs whose path is short enough for sockets."""
    place = tempfile.mkdtemp(prefix="csi-")
    syscalls.mount("area", place, "tmpfs", 0, "")
    yield Path(place)
    for path in reversed([mount.path for mount in read_mount_table() if f"{mount.path}/".startswith(f"{place}/")]):
        with contextlib.suppress(OSError):
            syscalls.umount2(path, syscalls.MNT_DETACH)
    for device in loop.list_attached():
        if device.backing_file.startswith(place) or device.label.startswith(place):
            loop.detach(device.device, timeout=1)
    shutil.rmtree(place, ignore_errors=True)


def staging(area):
    digest = hashlib.sha256(b"vol-1").hexdigest()
    return f"{area}/k/plugins/kubernetes.io/csi/{DRIVER}/{digest}/globalmount"


def target(area):
    return f"{area}/k/pods/{UID}/volumes/kubernetes.io~csi/pv-1/mount"


@pytest.fixture
def driver(area):
    """A driver that registers with the kubelet whose directory is ``<area>/k``."""
    os.makedirs(area / "k" / "plugins_registry")
    os.makedirs(area / "driver")
    known = {"volume_id": "vol-1", "staged": staging(area), "published": {target(area): ""}}
    (area / "driver" / "state.json").write_text(json.dumps({"volumes": {"vol-1": known}, "snapshots": {}}))
    made = FakeDriverProcess(
        f"{area}/csi.sock",
        f"{area}/driver",
        registration_dir=f"{area}/k/plugins_registry",
        name=DRIVER,
        mounts="bind",
    )
    with made:
        yield made


class Kubelet:
    """A directory with one pod, of which one CSI volume is staged and published."""

    def __init__(self, area):
        self.root = f"{area}/k"
        data = area / "data"
        data.mkdir()
        (data / "file").write_text("mine")
        self.data = data
        self.staging, self.target = staging(area), target(area)
        self.device, self.volume = os.path.dirname(self.staging), os.path.dirname(self.target)
        for directory, fields in ((self.device, {}), (self.volume, {"specVolID": "pv-1", "nodeName": "n"})):
            os.makedirs(directory)
            record = {"driverName": DRIVER, "volumeHandle": "vol-1", **fields}
            Path(f"{directory}/vol_data.json").write_text(json.dumps(record))
        for source, place in ((str(data), self.staging), (self.staging, self.target)):
            os.makedirs(place)
            syscalls.mount(source, place, "", syscalls.MS_BIND, "")
        pods = area / "pods.json"
        pods.write_text(json.dumps({"kind": "List", "items": []}))
        self.sources = Sources(pods=str(pods))

    def mounts(self):
        return [mount.path for mount in read_mount_table() if mount.path.startswith(f"{self.root}/")]

    def repair(self):
        return apply_repair(self.root, self.sources)


def told(driver):
    """What the driver was asked that changes something."""
    return [call.name for call in driver.calls() if call.name.startswith("Node") and call.name.endswith("Volume")]


def test_a_kubelets_orphan_is_unpublished_and_unstaged_by_its_driver(area, driver):
    kubelet = Kubelet(area)
    done = kubelet.repair()
    assert [result.detail for _, result in done.results if result.detail] == []
    assert done.complete
    assert told(driver) == ["NodeUnpublishVolume", "NodeUnstageVolume"]
    assert kubelet.mounts() == []
    assert not os.path.exists(kubelet.device)
    assert os.listdir(f"{kubelet.root}/pods") == []
    assert (kubelet.data / "file").read_text() == "mine"
    # A registrar that hears of a failure ends, and takes the driver with it.
    assert f"driver={DRIVER} is registered" in driver.log()
    assert "refused" not in driver.log()


def test_a_kubelets_directory_gets_nothing_of_this_hosts_own(area, driver):
    """No lock, no journal, no store, no directory of drivers is left in it."""
    kubelet = Kubelet(area)
    before = set(os.listdir(kubelet.root))
    assert kubelet.repair().complete
    assert set(os.listdir(kubelet.root)) <= before


def test_a_driver_that_fails_keeps_the_pod_and_the_next_repair_goes_on(area, driver):
    kubelet = Kubelet(area)
    driver.script(Rule("NodeUnpublishVolume", code="INTERNAL", message="not now", times=1))
    done = kubelet.repair()
    assert not done.complete
    assert [result.outcome.value for _, result in done.results][:2] == ["failed", "skipped"]
    assert "not now" in done.results[0][1].detail
    assert kubelet.target in kubelet.mounts()
    assert kubelet.repair().complete
    assert kubelet.mounts() == []


def test_a_driver_that_is_gone_is_said_not_to_be_told(area, driver):
    kubelet = Kubelet(area)
    driver.kill()
    plan = plan_repair(kubelet.root, kubelet.sources).plan
    assert {step.driver for _, step in plan.steps() if step.plugin} == {DRIVER}
    done = kubelet.repair()
    notes = [result.detail for _, result in done.results if result.detail]
    assert len(notes) == 2
    assert all(note.startswith(f"the driver {DRIVER} was not told:") for note in notes)
    assert done.complete
    assert kubelet.mounts() == []
    assert told(driver) == []


def test_what_a_driver_may_have_staged_is_unstaged_before_its_record_goes(area, driver):
    """It died while it staged the volume, or was not answered: nothing is mounted, and it may hold the device."""
    kubelet = Kubelet(area)
    for place in (kubelet.target, kubelet.staging):
        syscalls.umount2(place, 0)
    os.unlink(f"{kubelet.volume}/vol_data.json")
    os.removedirs(kubelet.target)
    driver.script(Rule("NodeUnstageVolume", reply={}))
    plan = plan_repair(kubelet.root, kubelet.sources).plan
    assert [step.action.value for _, step in plan.steps()] == ["unstage", "remove-device-directory"]
    done = kubelet.repair()
    assert done.complete, done.results
    assert told(driver) == ["NodeUnstageVolume"]
    assert not os.path.exists(kubelet.device)


# --- this host's own, with the loop driver --------------------------------------------------------------------------

OBJECTS = [
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": "loop",
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": mode,
            "resources": {"requests": {"storage": "16Mi"}},
        },
    }
    for name, mode in (("data", "Filesystem"), ("raw", "Block"))
]
POD = {
    "metadata": {"name": "web"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "volumeDevices": [{"name": "raw", "devicePath": "/dev/raw"}],
            }
        ],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "raw", "persistentVolumeClaim": {"claimName": "raw"}},
        ],
    },
}


def test_volumes_of_the_loop_driver_whose_pod_was_lost_are_taken_away_to_the_last_device(area):
    root = f"{area}/r"
    with VolumeManager(root) as manager:
        for each in OBJECTS:
            manager.api.create(each)
        status = manager.mount_pod(POD, timeout=60)
        data = next(volume.path for volume in status.volumes if volume.volume == "data")
        Path(data, "file").write_text("mine")
    found = inspect_root(root)
    assert found.findings == ()
    assert {(device.mode, device.state) for device in found.devices} == {
        ("Filesystem", "mounted"),
        ("Block", "mounted"),
    }
    assert all(volume.witnesses.loop_device for volume in found.pods[0].volumes)
    os.rename(f"{root}/store.sqlite3", f"{area}/kept")
    EmbeddedStore(f"{root}/store.sqlite3").close()
    done = apply_repair(root)
    assert [result.detail for _, result in done.results if result.detail] == []
    assert done.complete
    assert [mount.path for mount in read_mount_table() if mount.path.startswith(f"{root}/")] == []
    assert [each for each in loop.list_attached() if each.backing_file.startswith(root)] == []
    assert {finding.kind for finding in inspect_root(root).findings} <= {"attachment-without-volume"}
    # The data is where it was.
    os.rename(f"{area}/kept", f"{root}/store.sqlite3")
    with VolumeManager(root) as manager:
        status = manager.mount_pod(POD, timeout=60)
        data = next(volume.path for volume in status.volumes if volume.volume == "data")
        assert Path(data, "file").read_text() == "mine"
        manager.unmount_pod("web", timeout=60)
