"""Whatever lies in a root directory: an inspection comes to its end, is not led astray; repair touches nothing else."""

import json
import logging
import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from volumehost.cli.inspection_report import inspection_data
from volumehost.inspection.inspect import Sources
from volumehost.inspection.repair import apply_repair
from volumehost.mount import syscalls

from .conftest import kinds, pod_uid

pytestmark = pytest.mark.root

LEVELS = [
    "pods",
    "pods/{uid}",
    "pods/{uid}/volumes",
    "pods/{uid}/volumes/kubernetes.io~csi",
    "pods/{uid}/volumes/kubernetes.io~csi/pv-1",
    "pods/{uid}/volumes/kubernetes.io~csi/pv-1/mount",
    "pods/{uid}/volumes/kubernetes.io~csi/pv-1/vol_data.json",
    "pods/{uid}/volumeDevices",
    "pods/{uid}/volume-subpaths",
    "pods/{uid}/volume-subpaths/v/c",
    "pods/{uid}/plugins",
    "pods/{uid}/containers",
    "pods/{uid}/etc-hosts",
    "plugins",
    "plugins/kubernetes.io",
    "plugins/kubernetes.io/csi",
    "plugins/kubernetes.io/csi/csi.example.com",
    "plugins/kubernetes.io/csi/volumeDevices",
    "plugins/kubernetes.io/csi/volumeDevices/pv-9",
    "plugins_registry",
]


@pytest.fixture
def outside(area):
    """A directory of somebody else, that looks like a pod's."""
    base = area / "outside"
    for name in ("pv-1/mount", "kubernetes.io~csi/pv-1/mount", "volumes/kubernetes.io~csi/pv-1", "app", "v/c/0"):
        (base / name).mkdir(parents=True)
        (base / name / "vol_data.json").write_text(json.dumps({"driverName": "d", "volumeHandle": "h"}))
    (base / "etc-hosts").write_text("x")
    return base


@pytest.fixture(autouse=True)
def quiet(caplog):
    """What is logged here is no text that processes of tests could tell one another."""
    caplog.set_level(logging.CRITICAL + 1)


def everything(path):
    return sorted((str(each), each.lstat().st_mode) for each in path.rglob("*"))


@pytest.mark.parametrize("level", LEVELS)
def test_a_link_at_any_level_is_not_followed(kubelet, outside, level):
    uid = kubelet.pod(1)
    path = Path(kubelet.root, level.format(uid=uid))
    if path.is_dir():
        os.rename(path, kubelet.area / "moved")
    elif path.exists():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside)
    before = everything(outside)
    told = json.dumps(inspection_data(kubelet.repair().inspection))
    assert '"handle": "h"' not in told
    assert everything(outside) == before


@pytest.mark.parametrize("level", [level for level in LEVELS if "/" in level])
def test_a_mount_over_any_directory_is_not_entered(kubelet, level):
    """What is mounted over a directory of the layout is told, and never repaired from within."""
    uid = kubelet.pod(1)
    kubelet.csi(uid)
    place = Path(kubelet.root, level.format(uid=uid))
    place.parent.mkdir(parents=True, exist_ok=True)
    source = kubelet.data("over")
    if place.name in ("vol_data.json", "etc-hosts"):
        source = f"{source}/file"
    kubelet.bind(source, str(place))
    kubelet.repair()
    assert Path(kubelet.data("over"), "file").read_text() == "over"
    assert Path(kubelet.data("vol-1"), "file").read_text() == "vol-1"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "file"])
@pytest.mark.parametrize("level", [level for level in LEVELS if level.startswith("pods/") or level.count("/") > 1])
def test_anything_in_the_place_of_a_directory_does_no_harm(kubelet, kind, level):
    uid = kubelet.pod(1)
    path = Path(kubelet.root, level.format(uid=uid))
    if path.is_dir():
        os.rename(path, kubelet.area / "moved")
    elif path.exists():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path, kind)
    kubelet.repair()
    belongs_there = kind == "file" and path.name in ("vol_data.json", "etc-hosts")
    assert os.path.lexists(path) != belongs_there


def make(path, kind):
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    elif kind == "file":
        path.write_text("x")
    else:
        directory = os.open(path.parent, os.O_PATH)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{directory}/{path.name}")
        os.close(directory)


@pytest.mark.parametrize("base", ["pods", "plugins"])
def test_a_link_in_the_place_of_a_whole_directory_does_not_look_like_order(kubelet, base):
    """What an administrator may have meant is said, and not done."""
    os.rename(f"{kubelet.root}/{base}", kubelet.area / "moved")
    os.symlink(kubelet.area / "moved", f"{kubelet.root}/{base}")
    found = kubelet.inspect()
    assert kinds(found) == [("unexpected-entry", f"{kubelet.root}/{base}")]
    assert found.findings[0].severity == "error"
    assert "mount the directory here instead" in found.findings[0].advice


def test_ten_thousand_entries_are_no_hindrance(kubelet):
    uid = kubelet.pod(1)
    volume = kubelet.volume_dir(uid, "example.com/x", "v")
    for base in (f"{kubelet.root}/pods", volume, f"{kubelet.root}/plugins_registry"):
        os.makedirs(base, exist_ok=True)
        descriptor = os.open(base, os.O_RDONLY)
        for number in range(10_000 if base == volume else 500):
            os.close(os.open(f"{number:05}", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=descriptor))
        os.close(descriptor)
    found = kubelet.inspect(uid)
    assert sum(kind == "unexpected-entry" for kind, _ in kinds(found)) == 500
    assert len(json.dumps(inspection_data(found))) < 1_000_000


def test_a_directory_that_holds_itself_by_a_bind_is_no_endless_way(kubelet):
    uid = kubelet.pod(1)
    kubelet.bind(f"{kubelet.root}/pods", f"{kubelet.root}/pods/{uid}/volumes/a.b~p/v")
    found = kubelet.inspect()
    assert [pod.uid for pod in found.pods] == [uid]
    assert kubelet.repair().complete
    assert kubelet.pods() == []


def test_names_that_are_no_text_are_told_as_text(kubelet):
    names = [
        b"new\nline",
        b"tab\tand\\esc\x1b[2J",
        b"\xff\xfe",
        "\N{RIGHT-TO-LEFT OVERRIDE}x".encode(),
        b" ",
        b"-rf",
        b"a" * 255,
    ]
    base = os.fsencode(f"{kubelet.root}/pods")
    for name in names:
        os.makedirs(os.path.join(base, name, b"volumes", b"example.com~" + name[:200], name))
    done = kubelet.repair()
    assert len(done.inspection.pods) == len(names)
    json.dumps(inspection_data(done.inspection), ensure_ascii=False).encode()
    assert done.complete
    assert os.listdir(base) == []


def test_a_mount_at_a_hostile_name_is_found_and_unmounted(kubelet):
    orphan = kubelet.pod(1)
    target = f"{kubelet.root}/pods/{orphan}/volumes/example.com~p/a b\\040\n\tc#d\udcff"
    kubelet.bind(kubelet.data("a"), target)
    found = kubelet.inspect()
    assert found.pods[0].volumes[0].mounts[0].path == target
    assert kubelet.repair().complete
    assert kubelet.mounts() == []


def test_a_mount_point_whose_directory_was_removed_elsewhere_is_told(kubelet):
    """In another mount namespace; since Linux 3.18 that takes the mount away, so most kernels never show it."""
    orphan = kubelet.pod(1)
    target = f"{kubelet.root}/pods/{orphan}/volumes/example.com~p/v"
    kubelet.bind(kubelet.data("a"), target)
    syscalls.umount2(target, syscalls.MNT_DETACH)
    assert kubelet.repair().complete


# Names as a directory can have them.
_NAMES = st.binary(min_size=1, max_size=40).filter(lambda name: not {0, 47} & set(name) and name not in (b".", b".."))
_PATHS = st.tuples(_NAMES, _NAMES, _NAMES, st.sampled_from(["volumes", "volumeDevices", "plugins", "strange"]))


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(_PATHS, max_size=4))
def test_any_names_are_told_and_empty_directories_go(kubelet, paths):
    base = f"{kubelet.root}/pods"
    os.rename(base, f"{kubelet.area}/{len(os.listdir(kubelet.area))}")  # what an earlier example has left
    os.mkdir(base)
    for uid, plugin, volume, child in paths:
        os.makedirs(os.path.join(os.fsencode(base), uid, child.encode(), plugin, volume), exist_ok=True)
    found = apply_repair(kubelet.root, Sources(pods=kubelet.pods_file())).inspection
    assert {pod.uid for pod in found.pods} == {os.fsdecode(uid) for uid, *_ in paths}
    told = json.dumps(inspection_data(found), ensure_ascii=False).encode().decode()
    assert json.loads(told)["rootDir"] == kubelet.root
    strange = {os.fsdecode(uid) for uid, _, _, child in paths if child == "strange"}
    assert set(os.listdir(base)) <= strange  # nobody knows whether what is in there may go


def test_uids_that_lead_elsewhere_lead_nowhere(kubelet):
    """A list of pods is as hostile as a directory."""
    uid = kubelet.pod(1)
    names = {"namespace": "\n", "name": "\x1b[2J"}
    evil = [{"metadata": {"uid": each, **names}, "spec": {}} for each in ("../..", "/", uid)]
    found = kubelet.inspect(pods=kubelet.pods_file(more=evil))
    assert [pod.uid for pod in found.pods] == [pod_uid(1)]
