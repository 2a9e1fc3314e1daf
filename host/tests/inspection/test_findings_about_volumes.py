"""Bare, half removed, dead, hung, stacked volumes; files under mount points; damaged records (BR-56, -58, -64, -70)."""

import os
from pathlib import Path

import pytest

from volumehost.mount import syscalls

from .conftest import DRIVER, kinds

pytestmark = pytest.mark.root


def finding(inspection, kind):
    (found,) = [each for each in inspection.findings if each.kind == kind]
    return found


def state(inspection, uid):
    return {volume.name: volume.state for volume in inspection.pod(uid).volumes}


def test_br58_a_bare_directory_where_a_mount_is_promised(kubelet):
    """Of CSI, projected and network volumes; an emptyDir on disk is none."""
    uid = kubelet.pod(1)
    places = [kubelet.csi(uid), kubelet.projected(uid), kubelet.nfs(uid)]
    kubelet.empty_dir(uid)
    for path in places:
        syscalls.umount2(path, 0)
    found = kubelet.inspect(uid)
    assert {subject for kind, subject in kinds(found) if kind == "bare-directory"} == set(places)
    assert state(found, uid) == {"pv-1": "bare", "kube-api-access": "bare", "share": "bare", "scratch": "directory"}
    assert {each.severity for each in found.findings if each.kind == "bare-directory"} == {"error"}


def test_br58_a_block_volume_whose_device_is_gone_is_bare(kubelet):
    uid = kubelet.pod(1)
    kubelet.block(uid)
    syscalls.umount2(f"{kubelet.root}/plugins/kubernetes.io/csi/volumeDevices/pv-raw/dev/{uid}", syscalls.MNT_DETACH)
    found = kubelet.inspect(uid)
    assert state(found, uid) == {"pv-raw": "bare"}
    assert finding(found, "bare-directory").subject.endswith("/volumeDevices/kubernetes.io~csi/pv-raw")


def test_br70_files_written_under_a_mount_point_after_the_unmount(kubelet):
    uid = kubelet.pod(1)
    path = kubelet.csi(uid)
    syscalls.umount2(path, 0)
    Path(path, "late").write_text("written to the disk below")
    found = kubelet.inspect(uid)
    told = finding(found, "files-under-mount-point")
    assert (told.subject, told.severity) == (path, "error")
    assert "late" in told.evidence[0]
    assert "move the files away" in told.advice


def test_br70_files_under_a_global_mount(kubelet):
    path = kubelet.stage("vol-1")
    syscalls.umount2(path, 0)
    Path(path, "late").write_text("x")
    assert finding(kubelet.inspect(), "files-under-mount-point").subject == path


def test_a_volume_of_a_known_pod_that_is_half_removed(kubelet):
    uid = kubelet.pod(1)
    path = kubelet.volume_dir(uid, "kubernetes.io/csi", "pv-1")
    kubelet.record(path, driverName=DRIVER, volumeHandle="vol-1", specVolID="pv-1")
    found = kubelet.inspect(uid)
    assert finding(found, "half-removed-volume").subject == path
    assert state(found, uid) == {"pv-1": "leftover"}


def test_a_device_of_which_only_the_record_or_nothing_is_left(kubelet):
    kubelet.record(kubelet.staging("vol-1"), driverName=DRIVER, volumeHandle="vol-1")
    os.makedirs(kubelet.staging("vol-2"))
    found = kubelet.inspect()
    assert kinds(found) == sorted(
        [("half-removed-volume", kubelet.staging("vol-1")), ("half-removed-volume", kubelet.staging("vol-2"))]
    )


def test_br64_a_dead_mount_is_told_and_does_not_hinder(kubelet, dead):
    uid = kubelet.pod(1)
    path = dead(kubelet.volume_dir(uid, "example.com/fuse", "v"))
    kubelet.csi(uid)
    found = kubelet.inspect(uid)
    told = finding(found, "corrupted-mount")
    assert (told.subject, told.severity) == (path, "error")
    assert "not connected" in told.evidence[0]
    assert state(found, uid) == {"v": "corrupted", "pv-1": "mounted"}


def test_br52_a_hung_mount_is_told_in_time_and_the_others_too(kubelet, hung):
    uid = kubelet.pod(1)
    path = hung(kubelet.volume_dir(uid, "example.com/fuse", "v"))
    kubelet.csi(uid)
    found = kubelet.inspect(uid)
    assert finding(found, "hung-mount").subject == path
    assert "no answer" in finding(found, "hung-mount").evidence[0]
    assert state(found, uid) == {"v": "hung", "pv-1": "mounted"}


def test_mounts_stacked_on_one_place(kubelet):
    uid = kubelet.pod(1)
    path = kubelet.csi(uid)
    kubelet.tmpfs(path, "over")
    found = kubelet.inspect(uid)
    told = finding(found, "stacked-mounts")
    assert told.subject == path
    assert told.evidence[-1] == "tmpfs from over"
    volume = found.pod(uid).volumes[0]
    assert [mount.source for mount in volume.mounts] == ["area", "over"]
    assert volume.witnesses.mount_table == "stacked"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\0" * 300, "empty"),
        (b'{"driverName": "csi.exam', "not JSON"),
        (b'{"driverName": "csi.example.com", "volumeHandle": "vol-1"}{}', "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"volumeHandle": "vol-1"}', "lacks driverName"),
        (b"[" * 100000, "not JSON"),
    ],
)
def test_br56_a_damaged_record_is_told_with_who_else_knows(kubelet, content, reason):
    uid = kubelet.pod(1)
    path = kubelet.csi(uid)
    record = Path(path).parent / "vol_data.json"
    record.write_bytes(content)
    found = kubelet.inspect(uid)
    told = finding(found, "damaged-record")
    assert told.subject == str(record)
    assert reason in told.evidence[0]
    assert told.evidence[1] == f"the record of the volume's global mount tells: {DRIVER}, vol-1"
    assert state(found, uid) == {"pv-1": "mounted"}


def test_br56_without_another_witness_the_api_may_know(kubelet):
    uid = kubelet.pod(1)
    path = kubelet.csi(uid)
    syscalls.umount2(path, 0)
    (Path(path).parent / "vol_data.json").write_bytes(b"")
    assert "persistent volume pv-1" in finding(kubelet.inspect(uid), "damaged-record").evidence[1]


def test_a_record_that_is_no_file_is_not_opened(kubelet):
    """A FIFO would never answer, a device might do anything."""
    uid = kubelet.pod(1)
    path = Path(kubelet.csi(uid)).parent / "vol_data.json"
    path.unlink()
    os.mkfifo(path)
    assert "no regular file" in finding(kubelet.inspect(uid), "damaged-record").evidence[0]
    path.unlink()
    path.symlink_to("/dev/zero")
    assert finding(kubelet.inspect(uid), "damaged-record").evidence


def test_a_record_that_speaks_of_another_volume_than_is_mounted(kubelet):
    uid = kubelet.pod(1)
    path = kubelet.csi(uid)
    kubelet.record(os.path.dirname(path), driverName=DRIVER, volumeHandle="vol-other", specVolID="pv-1")
    volume = kubelet.inspect(uid).pod(uid).volumes[0]
    assert volume.witnesses.disagreements == ("the record says vol-other, what is mounted there is vol-1",)


def test_what_a_write_that_was_cut_short_left_behind(kubelet):
    uid = kubelet.pod(1)
    left = Path(kubelet.csi(uid)).parent / ".vol_data.json.new"
    left.write_text("{")
    staged = Path(kubelet.staging("vol-1")) / ".vol_data.json.new"
    staged.write_text("{")
    assert kinds(kubelet.inspect(uid)) == sorted([("temporary-file", str(left)), ("temporary-file", str(staged))])


def test_a_mount_behind_a_damaged_record_is_found_though_its_pod_is_gone(kubelet):
    orphan = kubelet.pod(1)
    path = kubelet.csi(orphan)
    (Path(path).parent / "vol_data.json").write_bytes(b"")
    found = kubelet.inspect()
    assert {kind for kind, _ in kinds(found)} == {"orphaned-pod", "damaged-record"}
    (device,) = found.devices
    assert device.used_by == (orphan,)


def test_secrets_among_mount_options_are_masked(kubelet):
    """BR-74."""
    from volumehost.inspection.mounts import mount_facts
    from volumehost.mount.mountinfo import parse_line

    line = "36 35 0:44 / /mnt rw - cifs //s/share rw,username=me,password=hunter2,sec_token=abc,keyring=k,vers=3.0"
    told = mount_facts(parse_line(line))
    assert told.options == (
        "rw",
        "username=me",
        "password=<masked>",
        "sec_token=<masked>",
        "keyring=<masked>",
        "vers=3.0",
    )
