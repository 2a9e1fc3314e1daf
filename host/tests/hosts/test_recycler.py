"""The local recycler (RECYCLE-02, -03, -08): empties a directory, never more."""

import os

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import Pod
from volumehost.errors import OperationError, SpecError, UnsafePathError
from volumehost.hosts.recycler import LocalRecycler
from volumehost.mount import syscalls


@pytest.fixture
def recycle(tmp_path):
    (tmp_path / "root").mkdir()
    events = []

    def run(path, seconds=None, clock=None, volume=None):
        spec = {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [volume or {"name": "vol", "hostPath": {"path": str(path)}}],
        }
        if seconds:
            spec["activeDeadlineSeconds"] = seconds
        scrubber = to_object(Pod, {"metadata": {"name": "scrub"}, "spec": spec})
        recycler = LocalRecycler(str(tmp_path / "root"), clock) if clock else LocalRecycler(str(tmp_path / "root"))
        recycler.recycle("pv1", scrubber, lambda kind, message: events.append((kind, message)))

    run.events = events
    return run


def test_recycle02_everything_goes_but_the_directory(tmp_path, recycle):
    volume = tmp_path / "volume"
    (volume / "deep" / "er").mkdir(parents=True)
    (volume / "deep" / "er" / "file").write_text("x")
    (volume / ".hidden").write_text("x")
    (volume / "link").symlink_to(tmp_path)
    os.mkfifo(volume / "fifo")
    recycle(volume)
    assert os.listdir(volume) == []
    assert tmp_path.is_dir()
    assert recycle.events[0][0] == "Normal"


def test_recycle02_the_directory_must_exist(tmp_path, recycle):
    with pytest.raises(OperationError, match="No such file"):
        recycle(tmp_path / "absent")


def test_links_are_removed_and_not_followed(tmp_path, recycle):
    (tmp_path / "volume").mkdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (tmp_path / "volume" / "link").symlink_to(tmp_path / "precious")
    recycle(tmp_path / "volume")
    assert (tmp_path / "precious" / "file").read_text() == "x"


@pytest.mark.root
def test_br62_a_mount_in_it_is_left_untouched_and_reported(tmp_path, recycle):
    volume, precious = tmp_path / "volume", tmp_path / "precious"
    (volume / "mnt").mkdir(parents=True)
    (volume / "other").write_text("x")
    precious.mkdir()
    (precious / "file").write_text("x")
    syscalls.mount(str(precious), str(volume / "mnt"), "", syscalls.MS_BIND, "")
    try:
        with pytest.raises(OperationError, match="failed to recycle volume") as caught:
            recycle(volume)
        assert "mount point" in str(caught.value)
        assert (precious / "file").read_text() == "x"
        assert os.listdir(volume) == ["mnt"]
        assert recycle.events[-1][0] == "Warning"
    finally:
        syscalls.umount2(str(volume / "mnt"), syscalls.MNT_DETACH)


def test_the_deadline_is_kept(tmp_path, recycle):
    (tmp_path / "volume").mkdir()
    for number in range(5):
        (tmp_path / "volume" / str(number)).write_text("x")
    times = iter([0.0, 0.1, 0.2, 9.0])
    with pytest.raises(OperationError, match="deadline"):
        recycle(tmp_path / "volume", seconds=5, clock=lambda: next(times))
    assert len(os.listdir(tmp_path / "volume")) == 3


@pytest.mark.parametrize("path", ["/", "/..", "//", "relative"])
def test_paths_that_must_never_be_emptied(recycle, path):
    with pytest.raises(UnsafePathError):
        recycle(path)


def test_neither_the_root_directory_nor_what_holds_it_is_emptied(tmp_path, recycle):
    (tmp_path / "root" / "pods").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "root")
    for path in (tmp_path, tmp_path / "root", tmp_path / "root" / "pods", tmp_path / "link"):
        with pytest.raises(UnsafePathError):
            recycle(path)
    assert (tmp_path / "root" / "pods").is_dir()


def test_a_neighbour_with_the_same_beginning_is_no_part_of_the_root_directory(tmp_path, recycle):
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "file").write_text("x")
    recycle(tmp_path / "root2")
    assert os.listdir(tmp_path / "root2") == []


def test_recycle03_a_pod_without_a_host_path(recycle):
    with pytest.raises(SpecError, match="no hostPath"):
        recycle("", volume={"name": "vol", "emptyDir": {}})
