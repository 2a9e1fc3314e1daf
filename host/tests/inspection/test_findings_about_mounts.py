"""Leaked mounts, devices and loop devices; mounts that live on in other namespaces (ORPHAN, BR-55)."""

import os
import socket
from pathlib import Path

import pytest

from volumehost.mount import loop, syscalls

from .conftest import DRIVER, kinds

pytestmark = pytest.mark.root


def finding(inspection, kind):
    (found,) = [each for each in inspection.findings if each.kind == kind]
    return found


def test_a_mount_that_is_nobodys_is_leaked(kubelet):
    uid = kubelet.pod(1)
    nfs = kubelet.nfs(uid)
    stray = kubelet.bind(kubelet.data("a"), f"{kubelet.root}/pods/{uid}/x")
    inner = kubelet.tmpfs(f"{nfs}/inner")
    other = kubelet.tmpfs(f"{kubelet.root}/lost")
    found = kubelet.inspect(uid)
    assert [subject for kind, subject in kinds(found) if kind == "leaked-mount"] == sorted([stray, inner, other])
    told = {each.subject: each for each in found.findings if each.kind == "leaked-mount"}
    assert any(nfs in line for line in told[inner].evidence)
    assert any("default/pod-00000001" in line for line in told[stray].evidence)
    assert told[other].pod_uid == ""


def test_mounts_of_an_orphan_are_told_with_it(kubelet):
    orphan = kubelet.pod(1)
    kubelet.bind(kubelet.data("a"), f"{kubelet.root}/pods/{orphan}/x")
    kubelet.csi(orphan)
    assert {kind for kind, _ in kinds(kubelet.inspect())} == {"orphaned-pod"}


def test_br55_a_global_mount_without_a_pod_is_leaked(kubelet):
    """A crash between unpublishing and unstaging: no pod's directory tells of the volume any more."""
    uid = kubelet.pod(1)
    kubelet.csi(uid)
    path = kubelet.stage("vol-2")
    found = kubelet.inspect(uid)
    told = finding(found, "leaked-device-mount")
    assert (told.subject, told.severity) == (path, "warning")
    assert f"it is volume vol-2 of the driver {DRIVER}" in told.evidence
    assert {(device.handle, device.state) for device in found.devices} == {("vol-1", "mounted"), ("vol-2", "unused")}


def test_a_global_mount_that_a_pod_may_be_about_to_use_is_not_called_leaked(kubelet):
    uid = kubelet.pod(1)
    kubelet.stage("vol-2")
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    waiting = {"metadata": {"uid": uid, "namespace": "shop", "name": "web"}, "spec": {"volumes": [claim]}}
    found = kubelet.inspect(pods=kubelet.pods_file(more=[waiting]))
    told = finding(found, "leaked-device-mount")
    assert told.severity == "info"
    assert "shop/web" in told.advice


def test_a_mount_under_another_is_hidden(kubelet):
    uid = kubelet.pod(1)
    path = kubelet.bind(kubelet.data("a"), f"{kubelet.root}/pods/{uid}/volumes/x/y")
    kubelet.tmpfs(f"{kubelet.root}/pods/{uid}/volumes/x", "over")
    found = kubelet.inspect(uid)
    told = {each.subject: each for each in found.findings if each.kind == "leaked-mount"}
    assert "another mount lies over it" in told[path].evidence


# --- loop devices ---------------------------------------------------------------------------------------------------


def image(path):
    with open(path, "wb") as file:
        file.truncate(1 << 20)
    return path


def test_a_loop_device_that_nothing_uses_is_leaked(kubelet):
    file = image(f"{kubelet.root}/plugins/disk.img")
    device = loop.attach(file)
    told = finding(kubelet.inspect(), "leaked-loop-device")
    assert told.subject == device
    assert file in told.evidence[0]
    os.unlink(file)
    told = finding(kubelet.inspect(), "leaked-loop-device")
    assert "which was deleted" in told.evidence[0]


def test_a_loop_device_outside_of_the_root_is_none_of_ours(kubelet, area):
    loop.attach(image(str(area / "disk.img")))
    assert kinds(kubelet.inspect()) == []


def test_a_loop_device_that_locks_a_mapped_device_is_no_leak_until_the_mapping_is_gone(kubelet):
    """BLOCK-07."""
    uid = kubelet.pod(1)
    kubelet.block(uid)
    assert kinds(kubelet.inspect(uid)) == []
    place = f"{kubelet.root}/plugins/kubernetes.io/csi/volumeDevices/pv-raw/dev/{uid}"
    syscalls.umount2(place, syscalls.MNT_DETACH)
    told = finding(kubelet.inspect(uid), "leaked-loop-device")
    assert place in told.evidence[-1]


def test_a_loop_device_below_another_that_is_in_use_is_no_leak(kubelet):
    """A read-only view over the device of a volume."""
    lower = loop.attach(image(f"{kubelet.root}/plugins/disk.img"))
    upper = loop.attach(lower, read_only=True)
    try:
        kubelet.bind(upper, f"{kubelet.root}/plugins/example.com/view/dev")
        assert "leaked-loop-device" not in {kind for kind, _ in kinds(kubelet.inspect())}
    finally:
        syscalls.umount2(f"{kubelet.root}/plugins/example.com/view/dev", syscalls.MNT_DETACH)
        loop.detach(upper)


# --- other namespaces -----------------------------------------------------------------------------------------------


def test_a_mount_that_lives_on_in_another_namespace_is_told_with_the_process(kubelet, holding):
    """A service with mounts of its own keeps a volume busy that is unmounted here long since."""
    uid = kubelet.pod(1)
    path = kubelet.csi(uid)
    with holding("namespace", path) as process:
        assert "mount-in-other-namespace" not in {kind for kind, _ in kinds(kubelet.inspect(uid))}
        syscalls.umount2(path, 0)
        told = finding(kubelet.inspect(uid), "mount-in-other-namespace")
    assert told.subject == path
    assert any(f"process {process.pid} " in line for line in told.evidence)
    assert "mount-in-other-namespace" not in {kind for kind, _ in kinds(kubelet.inspect(uid))}


# --- sockets --------------------------------------------------------------------------------------------------------


def bind(sock, path):
    """By a way that is short enough for the kernel."""
    directory = os.open(os.path.dirname(path), os.O_PATH)
    try:
        sock.bind(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    finally:
        os.close(directory)


def test_a_socket_on_which_nobody_listens_is_stale_when_it_is_not_new(kubelet):
    os.makedirs(f"{kubelet.root}/plugins/{DRIVER}")
    alive = f"{kubelet.root}/plugins/{DRIVER}/csi.sock"
    gone, young = (f"{kubelet.root}/plugins_registry/{name}.sock" for name in ("gone", "young"))
    with socket.socket(socket.AF_UNIX) as server:
        bind(server, alive)
        server.listen(1)
        for path in (gone, young):
            with socket.socket(socket.AF_UNIX) as other:
                bind(other, path)
        for path in (alive, gone):
            os.utime(path, (0, 0))
        assert kinds(kubelet.inspect()) == [("stale-socket", gone)]
    assert Path(young).exists()
