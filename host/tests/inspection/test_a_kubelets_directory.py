"""A kubelet's directory with real mounts of every sort: all of it is told, and nothing is found wrong with it."""

import os

import pytest

from volumehost.errors import ObjectNotFoundError, RootDirectoryError
from volumehost.inspection.inspect import inspect_root
from volumehost.inspection.report import PodState, RootKind

from .conftest import DRIVER, kinds, pod_uid

pytestmark = pytest.mark.root


def volumes(inspection, uid):
    return {volume.name: volume for volume in inspection.pod(uid).volumes}


def test_every_volume_of_every_pod_is_told(kubelet):
    uid = kubelet.pod(1)
    kubelet.empty_dir(uid)
    kubelet.empty_dir(uid, "cache", memory=True)
    kubelet.projected(uid)
    kubelet.nfs(uid)
    os.makedirs(kubelet.volume_dir(uid, "kubernetes.io/configmap", "config"))
    target = kubelet.csi(uid)
    device = kubelet.block(uid)
    kubelet.subpath(uid, "pv-1", f"{target}/file")
    found = kubelet.inspect(uid)
    assert found.kind is RootKind.KUBELET
    assert kinds(found) == []
    assert found.pod(uid).state is PodState.KNOWN
    assert found.pod(uid).label == "default/pod-00000001"
    told = volumes(found, uid)
    assert {name: (each.plugin, each.state) for name, each in told.items()} == {
        "scratch": ("kubernetes.io/empty-dir", "directory"),
        "cache": ("kubernetes.io/empty-dir", "mounted"),
        "kube-api-access": ("kubernetes.io/projected", "mounted"),
        "share": ("kubernetes.io/nfs", "mounted"),
        "config": ("kubernetes.io/configmap", "directory"),
        "pv-1": ("kubernetes.io/csi", "mounted"),
        "pv-raw": ("kubernetes.io/csi", "mounted"),
    }
    assert (told["pv-1"].driver, told["pv-1"].handle) == (DRIVER, "vol-1")
    assert told["pv-1"].mount_path == target
    assert [mount.fs_type for mount in told["cache"].mounts] == ["tmpfs"]
    assert "size=1024k" in told["cache"].mounts[0].options
    assert told["pv-raw"].mode == "Block"
    assert told["pv-raw"].mounts[0].root == device.removeprefix("/dev")
    assert all(not each.witnesses.disagreements for each in told.values())


def test_devices_are_told_with_the_pods_that_have_them(kubelet):
    uid, other = kubelet.pod(1), kubelet.pod(2)
    kubelet.csi(uid)
    kubelet.csi(other)
    kubelet.block(uid)
    found = kubelet.inspect(uid, other)
    assert kinds(found) == []
    assert {(device.mode, device.driver, device.handle, device.state, device.used_by) for device in found.devices} == {
        ("Filesystem", DRIVER, "vol-1", "mounted", (uid, other)),
        ("Block", DRIVER, "vol-raw", "mounted", (uid,)),
    }


def test_the_older_place_of_staged_volumes_is_known_too(kubelet):
    """Releases before 1.24: ``plugins/kubernetes.io/csi/pv/<pv>/globalmount``."""
    uid = kubelet.pod(1)
    directory = f"{kubelet.root}/plugins/kubernetes.io/csi/pv/pv-1"
    kubelet.record(directory, driverName=DRIVER, volumeHandle="vol-1")
    kubelet.bind(kubelet.data("vol-1"), f"{directory}/globalmount")
    path = kubelet.volume_dir(uid, "kubernetes.io/csi", "pv-1")
    kubelet.record(path, driverName=DRIVER, volumeHandle="vol-1", specVolID="pv-1")
    kubelet.bind(f"{directory}/globalmount", f"{path}/mount")
    found = kubelet.inspect(uid)
    assert kinds(found) == []
    (device,) = found.devices
    assert (device.path, device.used_by) == (f"{directory}/globalmount", (uid,))


def test_devices_of_built_in_plugins_are_known_by_their_mounts(kubelet):
    uid = kubelet.pod(1)
    staged = kubelet.bind(
        kubelet.data("disk"), f"{kubelet.root}/plugins/kubernetes.io/iscsi/iface-default/portal-lun-0"
    )
    kubelet.bind(staged, kubelet.volume_dir(uid, "kubernetes.io/iscsi", "disk"))
    kubelet.bind(kubelet.data("local"), f"{kubelet.root}/plugins/kubernetes.io/local-volume/mounts/pv-local")
    found = kubelet.inspect(uid)
    assert {(device.plugin, device.path.removeprefix(kubelet.root), device.state) for device in found.devices} == {
        ("kubernetes.io/iscsi", "/plugins/kubernetes.io/iscsi/iface-default/portal-lun-0", "mounted"),
        ("kubernetes.io/local-volume", "/plugins/kubernetes.io/local-volume/mounts/pv-local", "unused"),
    }
    assert [kind for kind, _ in kinds(found)] == ["leaked-device-mount"]


def test_a_volume_that_its_driver_does_not_stage_is_as_it_should_be(kubelet):
    """The kubelet writes a record beside an empty ``globalmount`` for a driver without that step."""
    uid = kubelet.pod(1)
    kubelet.record(kubelet.staging("vol-1"), driverName=DRIVER, volumeHandle="vol-1")
    os.makedirs(f"{kubelet.staging('vol-1')}/globalmount")
    path = kubelet.volume_dir(uid, "kubernetes.io/csi", "pv-1")
    kubelet.record(path, driverName=DRIVER, volumeHandle="vol-1", specVolID="pv-1")
    kubelet.bind(kubelet.data("vol-1"), f"{path}/mount")
    found = kubelet.inspect(uid)
    assert kinds(found) == []
    assert [device.state for device in found.devices] == ["directory"]


def test_what_a_mount_hides_is_not_looked_into(kubelet):
    """10,000 files in a volume cost nothing; a volume is never listed."""
    uid = kubelet.pod(1)
    target = kubelet.csi(uid)
    os.symlink("/", f"{target}/root")
    os.makedirs(f"{target}/volumes/kubernetes.io~csi/inner")
    found = kubelet.inspect(uid)
    assert kinds(found) == []
    assert list(volumes(found, uid)) == ["pv-1"]


def test_a_root_directory_behind_a_link_is_told_by_its_resolved_path(kubelet, tmp_path):
    """BR-69."""
    uid = kubelet.pod(1)
    kubelet.csi(uid)
    link = tmp_path / "link"
    link.symlink_to(kubelet.root)
    found = inspect_root(str(link))
    assert found.root_dir == kubelet.root
    assert found.pod(uid).volumes[0].state == "mounted"


def test_pods_on_a_disk_of_their_own_are_entered_and_told(kubelet):
    kubelet.tmpfs(f"{kubelet.root}/pods", "disk")
    uid = kubelet.pod(1)
    kubelet.csi(uid)
    found = kubelet.inspect(uid)
    assert kinds(found) == [("unexpected-entry", f"{kubelet.root}/pods")]
    assert volumes(found, uid)["pv-1"].state == "mounted"


def test_what_is_no_root_directory_is_refused(tmp_path):
    with pytest.raises(ObjectNotFoundError, match="no such directory"):
        inspect_root(str(tmp_path / "absent"))
    (tmp_path / "file").touch()
    with pytest.raises(RootDirectoryError):
        inspect_root(str(tmp_path / "file"))
    with pytest.raises(RootDirectoryError, match="no pods and no plugins"):
        inspect_root(str(tmp_path))


def test_without_a_source_of_pods_nothing_is_called_orphaned(kubelet):
    kubelet.csi(kubelet.pod(1))
    kubelet.stage("vol-unused")
    found = inspect_root(kubelet.root)
    assert found.pod(pod_uid(1)).state is PodState.UNKNOWN
    assert [(finding.kind, finding.severity) for finding in found.findings] == [
        ("leaked-device-mount", "info"),
        ("unknown-pod", "info"),
    ]
    assert "no source of pods" in found.findings[0].advice
