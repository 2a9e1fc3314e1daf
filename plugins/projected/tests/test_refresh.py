"""Refreshing what pods are using: PLUG-05, VOL-04, PAYLOAD-04, -05, -09, ATOMIC-08, -18, -22, BR-61, BR-72."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volumehost import MounterArgs
from volumehost.errors import MountError, ObjectNotFoundError, PayloadError, StillMountedError, UncertainProgressError
from volumehost.mount.mounter import LinuxMounter

pytestmark = pytest.mark.root

REFRESH = MounterArgs(is_remount=True)


def config_map(**source):
    return {"name": "settings", "configMap": {"name": "app", **source}}


def secret(**source):
    return {"name": "login", "secret": {"secretName": "db", **source}}


def generation(path):
    return os.readlink(f"{path}/..data")


def test_payload05_without_a_change_nothing_is_written(world):
    world.config_map("app", {"color": "blue"})
    path = world.mount(config_map())
    before = generation(path)
    world.mount(config_map(), args=REFRESH)
    assert generation(path) == before


@pytest.mark.parametrize("volume", [config_map, secret])
def test_a_change_is_swapped_in_and_the_old_files_go(world, volume):
    world.config_map("app", {"color": "blue", "size": "L"})
    world.secret("db", {"color": b"blue", "size": b"L"})
    path = world.mount(volume())
    before, mounts = generation(path), len(world.mounts(path))
    world.config_map("app", {"color": "red", "shape": "round"})
    world.secret("db", {"color": b"red", "shape": b"round"})
    world.mount(volume(), args=REFRESH)
    assert world.files(path) == {"color": b"red", "shape": b"round"}
    assert sorted(os.listdir(path)) == sorted(["..data", generation(path), "color", "shape"])
    assert generation(path) != before
    assert len(world.mounts(path)) == mounts


def test_atomic18_who_opened_a_generation_reads_it_to_its_end(world):
    world.config_map("app", {"a": "1", "b": "1"})
    path = world.mount(config_map())
    fd = os.open(f"{path}/..data", os.O_RDONLY | os.O_DIRECTORY)
    with open("a", opener=lambda name, flags: os.open(name, flags, dir_fd=fd)) as old:
        world.config_map("app", {"a": "2", "b": "2"})
        world.mount(config_map(), args=REFRESH)
        assert old.read() == "1"
    os.close(fd)
    assert world.files(path) == {"a": b"2", "b": b"2"}


def test_atomic22_a_file_that_a_container_mounts_by_subpath_keeps_its_content(world, directory):
    world.config_map("app", {"color": "blue"})
    path = world.mount(config_map())
    target = f"{directory}/in-the-container"
    Path(target).touch()
    LinuxMounter().mount(f"{path}/color", target, "", ["bind"])
    world.config_map("app", {"color": "red"})
    world.mount(config_map(), args=REFRESH)
    assert Path(target).read_bytes() == b"blue"
    assert world.files(path) == {"color": b"red"}
    LinuxMounter().unmount(target)


@pytest.mark.parametrize("volume", [config_map, secret])
def test_a_refresh_that_fails_keeps_the_old_files(world, volume):
    """VOL-04: the object is gone, or names paths that cannot be."""
    world.config_map("app", {"color": "blue"})
    world.secret("db", {"color": b"blue"})
    path = world.mount(volume())
    with pytest.raises(PayloadError, match=r"must not contain '\.\.'"):
        world.mount(volume(items=[{"key": "color", "path": "../x"}]), args=REFRESH)
    world.forget("app", "db")
    with pytest.raises(ObjectNotFoundError, match="not found"):
        world.mount(volume(), args=REFRESH)
    assert world.files(path) == {"color": b"blue"}
    world.mount(volume(optional=True), args=REFRESH)
    assert world.files(path) == {}


class _Stuck:
    """What lies in the way of the writer: a mount, which it never crosses."""

    def __init__(self, path):
        self.path = path
        os.makedirs(path)
        LinuxMounter().mount("tmpfs", path, "tmpfs", [])

    def gone(self):
        LinuxMounter().unmount(self.path)


@pytest.mark.parametrize(
    ("args", "error"), [(REFRESH, StillMountedError), (MounterArgs(reconstructed_volume=True), UncertainProgressError)]
)
def test_payload04_a_write_that_fails_keeps_the_volume_that_pods_read(world, args, error):
    """After a restart the volume is uncertain, so that it is taken down one day."""
    world.secret("db", {"color": b"blue"})
    path = world.mount(secret())
    stuck = _Stuck(f"{path}/..data_tmp")
    world.secret("db", {"color": b"red"})
    with pytest.raises(error):
        world.mount(secret(), args=args)
    assert world.files(path) == {"color": b"blue"}
    stuck.gone()
    world.mount(secret(), args=args)
    assert world.files(path) == {"color": b"red"}


@pytest.mark.parametrize("volume", [config_map, secret])
def test_payload04_a_first_write_that_fails_leaves_nothing(world, volume, monkeypatch):
    world.config_map("app", {"color": "blue"})
    world.secret("db", {"color": b"blue"})

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "symlink", full)
    with pytest.raises(PayloadError, match="No space left on device"):
        world.mount(volume())
    monkeypatch.undo()
    assert world.left() == []
    assert world.files(world.mount(volume())) == {"color": b"blue"}


def test_a_volume_whose_mount_fails_leaves_nothing(world):
    world.secret("db", {"color": b"blue"})

    class Refusing(LinuxMounter):
        def mount(self, *_args, **_options):
            raise MountError("Cannot allocate memory", action="mounting a tmpfs")

    world.host.use_mounter(Refusing())
    with pytest.raises(MountError, match="Cannot allocate memory"):
        world.mount(secret())
    assert world.left() == []


def test_payload09_after_a_reboot_the_content_is_that_of_now(world):
    """BR-61: directory, marker and files are from before, of the secret all but its mount."""
    world.config_map("app", {"color": "blue", "old": "1"})
    world.secret("db", {"color": b"blue"})
    paths = [world.mount(config_map()), world.mount(secret())]
    LinuxMounter().unmount(paths[1])
    Path(paths[0], "..data", "color").write_text("")  # a power cut may have left it empty
    world.config_map("app", {"color": "blue"})
    world.mount(config_map())
    world.mount(secret())
    assert [world.files(path) for path in paths] == [{"color": b"blue"}] * 2


def test_atomic08_lost_links_are_put_back(world):
    world.config_map("app", {"color": "blue"})
    path = world.mount(config_map())
    os.unlink(f"{path}/color")
    world.mount(config_map(), args=REFRESH)
    assert world.files(path) == {"color": b"blue"}


def test_br72_links_that_the_workload_put_there_are_not_followed(world, directory):
    """In no way: neither when the files are written nor when they are removed."""
    os.makedirs(f"{directory}/host/sub")
    Path(directory, "host", "color").write_text("the host's")
    world.config_map("app", {"color": "blue"})
    path = world.mount(config_map())
    os.unlink(f"{path}/..data")
    os.symlink(f"{directory}/host", f"{path}/..data")
    world.config_map("app", {"color": "red", "sub": "x"})
    world.mount(config_map(), args=REFRESH)
    assert world.files(path) == {"color": b"red", "sub": b"x"}
    os.unlink(f"{path}/..data")
    os.symlink(f"{directory}/host", f"{path}/..data")
    world.unmount(path)
    assert world.left() == []
    assert Path(directory, "host", "color").read_text() == "the host's"
    assert os.path.isdir(f"{directory}/host/sub")


def test_a_live_mount_inside_stops_the_teardown(world):
    world.config_map("app", {"color": "blue"})
    path = world.mount(config_map())
    stuck = _Stuck(f"{path}/there")
    Path(stuck.path, "precious").touch()
    with pytest.raises(MountError, match="mounted"):
        world.unmount(path)
    assert os.path.exists(f"{stuck.path}/precious")
    stuck.gone()
    world.unmount(path)
    assert world.left() == []


def test_util22_mount_points_for_volumes_below_are_made(world):
    world.config_map("app", {"color": "blue"})
    mounts = [{"name": "settings", "mountPath": "/etc/app"}, {"name": "login", "mountPath": "/etc/app/secret/s"}]
    containers = [{"name": "main", "image": "web", "volumeMounts": mounts}]
    path = world.mount(config_map(), containers=containers)
    assert os.path.isdir(f"{path}/secret/s")
    world.config_map("app", {"color": "red"})
    world.mount(config_map(), containers=containers, args=REFRESH)
    assert os.path.isdir(f"{path}/secret/s")
    assert (Path(path) / "color").read_bytes() == b"red"
    world.unmount(path)
    assert world.left() == []
