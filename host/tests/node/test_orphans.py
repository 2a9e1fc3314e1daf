"""Orphaned pod directories: cleaned safely, or kept with the reason (ORPHAN-09, BR-62, BR-84, RMALL-05)."""

import os

import pytest

from volumehost.errors import RemovalError, StillMountedError
from volumehost.hosts.layout import Layout
from volumehost.mount import syscalls
from volumehost.node.restart.orphans import remove_pod_directory

pytestmark = pytest.mark.root


@pytest.fixture
def layout(root):
    os.makedirs(f"{root}/pods/u/volumes/a.b~p/v")
    return Layout(root)


def _write(path, text="x"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def _gone(layout):
    return not os.path.exists(layout.pod_dir("u"))


def test_empty_volume_directories_go(layout):
    remove_pod_directory(layout, "u")
    assert _gone(layout)
    remove_pod_directory(layout, "u")


def test_a_pod_without_volumes_goes(layout):
    os.makedirs(f"{layout.pod_dir('w')}/plugins")
    remove_pod_directory(layout, "w")
    assert os.listdir(layout.pods_dir()) == ["u"]


def test_a_file_in_a_volumes_directory_stops_it(layout):
    _write(f"{layout.pod_volumes_dir('u')}/a.b~p/v/data")
    _write(f"{layout.pod_dir('u')}/etc-hosts")
    with pytest.raises(RemovalError, match="data"):
        remove_pod_directory(layout, "u")
    assert os.path.exists(f"{layout.pod_volumes_dir('u')}/a.b~p/v/data")
    assert os.path.exists(f"{layout.pod_dir('u')}/etc-hosts")


def test_a_csi_record_beside_an_empty_mount_directory_keeps_it(layout):
    os.makedirs(f"{layout.pod_volumes_dir('u')}/kubernetes.io~csi/x/mount")
    _write(f"{layout.pod_volumes_dir('u')}/kubernetes.io~csi/x/vol_data.json", "{}")
    with pytest.raises(RemovalError, match=r"vol_data\.json"):
        remove_pod_directory(layout, "u")
    assert os.listdir(f"{layout.pod_volumes_dir('u')}/kubernetes.io~csi/x") == ["vol_data.json"]


def test_other_children_of_the_pod_go_with_their_files(layout):
    _write(f"{layout.pod_plugins_dir('u')}/a.b~p/v/ready")
    _write(f"{layout.pod_dir('u')}/etc-hosts")
    _write(f"{layout.pod_containers_dir('u')}/c/log")
    remove_pod_directory(layout, "u")
    assert _gone(layout)


def test_empty_subpath_files_and_directories_go_and_populated_ones_stay(layout):
    base = f"{layout.pod_subpaths_dir('u')}/v/c"
    os.makedirs(f"{base}/0")
    _write(f"{base}/1", "")
    remove_pod_directory(layout, "u")
    assert _gone(layout)
    _write(f"{base}/0/data")
    with pytest.raises(RemovalError, match="data"):
        remove_pod_directory(layout, "u")
    os.unlink(f"{base}/0/data")
    _write(f"{base}/1", "content")
    with pytest.raises(RemovalError, match="1"):
        remove_pod_directory(layout, "u")
    assert os.path.exists(f"{base}/1")


@pytest.mark.parametrize("where", ["volumes/a.b~p/v", "volume-subpaths/v/c/0", "plugins/a.b~p/v", "x"])
def test_br62_a_live_mount_anywhere_keeps_it_and_its_data(layout, data, where):
    target = f"{layout.pod_dir('u')}/{where}"
    os.makedirs(target, exist_ok=True)
    syscalls.mount(data, target, "", syscalls.MS_BIND, "")
    with pytest.raises(StillMountedError):
        remove_pod_directory(layout, "u")
    assert os.listdir(data) == ["file"]
    syscalls.umount2(target, 0)
    remove_pod_directory(layout, "u")
    assert _gone(layout)


def test_links_are_removed_and_not_followed(layout, data):
    os.symlink(data, f"{layout.pod_dir('u')}/link")
    os.makedirs(layout.pod_plugins_dir("u"))
    os.symlink(data, f"{layout.pod_plugins_dir('u')}/link")
    remove_pod_directory(layout, "u")
    assert _gone(layout)
    assert os.listdir(data) == ["file"]


def test_a_link_in_the_place_of_the_pods_directory_is_no_pod(layout, data):
    os.symlink(data, layout.pod_dir("evil"))
    with pytest.raises((RemovalError, OSError)):
        remove_pod_directory(layout, "evil")
    assert os.listdir(data) == ["file"]


# --- as the manager offers it ---------------------------------------------------------------------------------------


def test_br84_a_dry_run_by_default_then_unmount_first_then_remove(manager, bind, layout, data, mounts):
    target = f"{layout.pod_volumes_dir('u')}/a.b~p/v"
    syscalls.mount(data, target, "", syscalls.MS_BIND, "")
    node = manager(bind())
    (orphan,) = node.clean_orphans()
    assert (orphan.pod_uid, orphan.mounts, orphan.removed) == ("u", (target,), False)
    assert orphan.keeps == (f"still mounted: {target}",)
    assert mounts() == [target]
    (orphan,) = node.clean_orphans(dry_run=False)
    assert orphan.removed
    assert mounts() == []
    assert os.listdir(data) == ["file"]
    assert node.orphans() == []


def test_br84_a_busy_mount_stays_and_says_who_keeps_it(manager, bind, layout, data, mounts):
    target = f"{layout.pod_volumes_dir('u')}/a.b~p/v"
    syscalls.mount(data, target, "", syscalls.MS_BIND, "")
    node = manager(bind())
    with open(f"{target}/file"):
        (orphan,) = node.clean_orphans(dry_run=False)
        assert not orphan.removed
        assert "busy" in orphan.keeps[0]
        assert mounts() == [target]
    (orphan,) = node.clean_orphans(dry_run=False)
    assert orphan.removed


def test_br84_data_that_is_no_mount_is_never_deleted(manager, bind, layout):
    _write(f"{layout.pod_volumes_dir('u')}/a.b~p/v/data", "mine")
    node = manager(bind())
    (orphan,) = node.clean_orphans(dry_run=False)
    assert not orphan.removed
    assert "data" in orphan.keeps[0]
    with open(f"{layout.pod_volumes_dir('u')}/a.b~p/v/data") as file:
        assert file.read() == "mine"


def test_pods_that_are_known_are_no_orphans(manager, bind, nfs, layout):
    node = manager(bind())
    pod = {
        "metadata": {"name": "web"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [nfs()],
        },
    }
    node.mount_pod(pod, timeout=20)
    assert [orphan.pod_uid for orphan in node.orphans()] == ["u"]
