"""emptyDir and hostPath, found by their entry points, mounted for real by the manager (BR-66)."""

import os
import stat

import pytest

from volumehost.errors import VolumesFailedError, WaitTimeoutError
from volumehost.mount import syscalls
from volumehost.node import upkeep

pytestmark = pytest.mark.root


def _paths(status):
    return {volume.volume: volume.path for volume in status.volumes}


def test_the_pod_of_the_quick_start(manager, make_pod, mounts, nothing_left, host_dir):
    node = manager()
    status = node.mount_pod(make_pod(), timeout=30)
    assert status.ready
    paths = _paths(status)
    assert mounts() == [paths["cache"]]
    assert os.statvfs(paths["cache"]).f_blocks * os.statvfs(paths["cache"]).f_frsize == 8 << 20
    assert paths["data"] == host_dir
    for name, path in paths.items():
        with open(f"{path}/{name}.txt", "w") as file:
            file.write(name)
        with open(f"{path}/{name}.txt") as file:
            assert file.read() == name
    (container,) = node.container_mounts(status)
    assert {mount.container_path: mount.host_path for mount in container.mounts} == {
        f"/{name}": path for name, path in paths.items()
    }
    node.unmount_pod("web", timeout=30)
    nothing_left()
    assert sorted(os.listdir(host_dir)) == ["data.txt", "file", "logs"]


def test_br66_contents_of_both_media_survive_a_restart_of_the_host(manager, make_pod, nothing_left):
    with manager(enter=False) as node:
        paths = _paths(node.mount_pod(make_pod(), timeout=30))
        for name in ("scratch", "cache"):
            with open(f"{paths[name]}/kept", "w") as file:
                file.write(name)
    with manager(enter=False) as node:
        assert _paths(node.mount_pod(make_pod(), timeout=30)) == paths
        for name in ("scratch", "cache"):
            with open(f"{paths[name]}/kept") as file:
                assert file.read() == name
        node.unmount_pod("web", timeout=30)
    nothing_left()


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("Directory", lambda path: open(path, "w").close()),
        ("File", os.mkdir),
        ("Socket", os.mkdir),
        ("CharDevice", os.mkdir),
        ("BlockDevice", os.mkdir),
        ("Directory", lambda path: None),
        ("File", lambda path: os.symlink("/nowhere/at/all", path)),
    ],
)
def test_br66_a_wrong_host_path_type_is_one_precise_message_and_the_others_mount(
    manager, make_pod, tmp_path, kind, make
):
    path = str(tmp_path / "thing")
    make(path)
    pod = make_pod({"name": "thing", "hostPath": {"path": path, "type": kind}}, {"name": "scratch", "emptyDir": {}})
    node = manager()
    with pytest.raises(VolumesFailedError) as caught:
        node.mount_pod(pod, timeout=30, attempts=1)
    (line,) = caught.value.details
    assert "hostPath type check failed" in line
    assert path in line
    states = {volume.volume: volume.state for volume in node.status()[0].volumes}
    assert states == {"thing": "failed", "scratch": "mounted"}
    node.unmount_pod("web", timeout=30)


def test_br66_the_type_is_checked_at_every_set_up(manager, make_pod, tmp_path):
    (tmp_path / "there").mkdir()
    pod = make_pod({"name": "v", "hostPath": {"path": str(tmp_path / "there"), "type": "Directory"}})
    with manager(enter=False) as node:
        assert node.mount_pod(pod, timeout=30).ready
    (tmp_path / "there").rmdir()
    with manager(enter=False) as node:
        with pytest.raises(VolumesFailedError, match="type check failed"):
            node.mount_pod(pod, timeout=30, attempts=1)
        (tmp_path / "there").mkdir()
        assert node.mount_pod(pod, timeout=30).ready


def test_br53_when_the_cause_is_gone_the_next_try_mounts_it(manager, make_pod, tmp_path):
    pod = make_pod({"name": "v", "hostPath": {"path": str(tmp_path / "later"), "type": "Directory"}})
    node = manager()
    with pytest.raises(WaitTimeoutError):
        node.mount_pod(pod, timeout=0.2)
    (tmp_path / "later").mkdir()
    assert node.mount_pod(pod, timeout=30).ready


def test_fs_group_owns_an_empty_dir(manager, make_pod):
    pod = make_pod({"name": "scratch", "emptyDir": {}}, spec={"securityContext": {"fsGroup": 4321}})
    (volume,) = manager().mount_pod(pod, timeout=30).volumes
    found = os.stat(volume.path)
    assert found.st_gid == 4321
    assert found.st_mode & stat.S_ISGID


def test_br61_a_marker_that_outlived_its_tmpfs_is_not_believed(manager, make_pod, mounts, nothing_left):
    pod = make_pod({"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
    with manager(enter=False) as node:
        (volume,) = node.mount_pod(pod, timeout=30).volumes
    syscalls.umount2(volume.path, syscalls.MNT_DETACH)
    with manager(enter=False) as node:
        (again,) = node.mount_pod(pod, timeout=30).volumes
        assert mounts() == [volume.path]
        assert again.mounted
        node.unmount_pod("web", timeout=30)
    nothing_left()


def test_br58_a_running_manager_notices_a_mount_that_went_away(manager, make_pod, mounts):
    pod = make_pod({"name": "cache", "emptyDir": {"medium": "Memory"}})
    node = manager()
    (volume,) = node.mount_pod(pod, timeout=30).volumes
    syscalls.umount2(volume.path, syscalls.MNT_DETACH)
    assert node.mount_pod(pod, timeout=30).ready
    assert mounts() == [volume.path]


def test_br58_an_agents_manager_notices_by_itself_and_mounts_again(manager, make_pod, mounts, until, monkeypatch):
    """Nobody asks about the pod: what was unmounted behind its back is set up again, and nothing else."""
    monkeypatch.setattr(upkeep, "SYNC_SECONDS", 0.05)
    node = manager(adopt=True)
    pods = [make_pod({"name": "cache", "emptyDir": {"medium": "Memory"}}, name=name) for name in ("web", "other")]
    paths = [node.mount_pod(pod, timeout=30).volumes[0].path for pod in pods]
    with open(f"{paths[1]}/file", "w") as file:
        file.write("kept")
    syscalls.umount2(paths[0], 0)
    until(lambda: mounts() == sorted(paths))
    assert os.path.exists(f"{paths[1]}/file")


def test_br62_a_live_mount_inside_an_empty_dir_is_not_emptied(manager, make_pod, host_dir, nothing_left, kept):
    node = manager()
    (volume,) = node.mount_pod(make_pod({"name": "scratch", "emptyDir": {}}), timeout=30).volumes
    os.mkdir(f"{volume.path}/mnt")
    syscalls.mount(host_dir, f"{volume.path}/mnt", "", syscalls.MS_BIND, "")
    kept(node, "web", "mount point")
    assert os.listdir(host_dir) == ["file"]
    syscalls.umount2(f"{volume.path}/mnt", 0)
    node.unmount_pod("web", timeout=30)
    nothing_left()
    assert os.listdir(host_dir) == ["file"]


def test_br64_a_dead_fuse_filesystem_on_a_volume_is_cleaned_and_never_stacked(
    manager, make_pod, fuse, mounts, nothing_left
):
    pod = make_pod({"name": "scratch", "emptyDir": {}})
    node = manager()
    (volume,) = node.mount_pod(pod, timeout=30).volumes
    daemon = fuse(volume.path)
    daemon.kill()
    daemon.wait()
    with pytest.raises(OSError, match="not connected"):
        os.listdir(volume.path)
    node.unmount_pod("web", timeout=30)
    nothing_left()
    assert node.mount_pod(pod, timeout=30).ready
    assert mounts() == []
    node.unmount_pod("web", timeout=30)
    nothing_left()


def test_subpaths_of_an_empty_dir_go_with_it(manager, make_pod, mounts, nothing_left):
    pod = make_pod({"name": "scratch", "emptyDir": {}})
    pod["spec"]["containers"][0]["volumeMounts"][0]["subPath"] = "a/b"
    node = manager()
    status = node.mount_pod(pod, timeout=30)
    ((mount,),) = [container.mounts for container in node.container_mounts(status)]
    with open(f"{mount.host_path}/file", "w") as file:
        file.write("x")
    assert os.path.exists(f"{status.volumes[0].path}/a/b/file")
    assert mounts() == [mount.host_path]
    node.unmount_pod("web", timeout=30)
    nothing_left()
