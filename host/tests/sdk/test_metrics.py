"""Metrics providers on real files, filesystems and devices: METRICS-01 to -10."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from volumehost import VolumeMetrics
from volumehost.errors import FsInfoMetricsError, MetricsError, NoPathMetricsError, NotSupportedMetricsError
from volumehost.mount.mounter import LinuxMounter
from volumehost.sdk import (
    BlockMetrics,
    CachedMetrics,
    DuMetrics,
    NilMetrics,
    StatFsMetrics,
    disk_usage,
    filesystem_magic,
)
from volumehost.sdk.filesystem import TMPFS_MAGIC

MIB = 1 << 20


@pytest.fixture
def tree(directory) -> str:
    """Files, links, hard links, a sparse file, directories: what makes du disagree with naive sums."""
    path = f"{directory}/volume"
    os.makedirs(f"{path}/sub/deep")
    Path(path, "file").write_bytes(b"x" * 10_000)
    Path(path, "sub", "other").write_bytes(b"x" * 100_000)
    os.link(f"{path}/file", f"{path}/sub/same")
    os.link(f"{path}/file", f"{path}/again")
    os.symlink("/usr", f"{path}/link")
    os.truncate(_touch(f"{path}/sparse"), 50 * MIB)
    os.sync()
    return path


def _touch(path: str) -> str:
    Path(path).touch()
    return path


def du(*arguments: str) -> int:
    result = subprocess.run(["du", *arguments], capture_output=True, text=True, timeout=60, check=True)
    return int(result.stdout.split()[0])


def test_the_same_as_du(tree):
    """METRICS-07."""
    usage = disk_usage(tree)
    assert usage.used == du("-sx", "-B1", tree)
    assert usage.inodes_used == du("-sx", "--inodes", tree)


def test_one_file_more_is_exactly_its_size_and_one_inode(tree):
    before = disk_usage(tree)
    Path(tree, "new").write_bytes(b"x" * MIB)
    os.sync()
    after = disk_usage(tree)
    assert after.used - before.used == os.stat(f"{tree}/new").st_blocks * 512
    assert after.inodes_used - before.inodes_used == 1


def test_an_empty_directory_is_one_inode(directory):
    os.mkdir(f"{directory}/empty")
    assert disk_usage(f"{directory}/empty").inodes_used == 1


def test_only_the_root_is_followed_when_it_is_a_link(tree, directory):
    os.symlink(tree, f"{directory}/root-link")
    assert disk_usage(f"{directory}/root-link") == disk_usage(tree)


@pytest.mark.root
def test_other_filesystems_are_left_out_entry_by_entry(tree):
    """METRICS-06, improved: a file of another device does not hide its neighbours."""
    before = disk_usage(tree)
    os.mkdir(f"{tree}/mounted")
    _touch(f"{tree}/a-file-on-tmpfs")
    mounter = LinuxMounter()
    mounter.mount("tmpfs", f"{tree}/mounted", "tmpfs", ["size=1M"])
    Path(tree, "mounted", "data").write_bytes(bytes(500_000))
    mounter.mount(f"{tree}/mounted/data", f"{tree}/a-file-on-tmpfs", options=["bind"])
    Path(tree, "z-neighbour").write_bytes(b"x" * 100_000)
    os.sync()
    try:
        after = disk_usage(tree)
        assert after.inodes_used - before.inodes_used == 1
        assert after.used - before.used == os.stat(f"{tree}/z-neighbour").st_blocks * 512
    finally:
        mounter.unmount(f"{tree}/a-file-on-tmpfs")
        mounter.unmount(f"{tree}/mounted")


def test_files_that_come_and_go_do_not_disturb(tree):
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            os.makedirs(f"{tree}/churn/sub", exist_ok=True)
            _touch(f"{tree}/churn/sub/file")
            os.unlink(f"{tree}/churn/sub/file")
            os.rmdir(f"{tree}/churn/sub")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(300):
            assert disk_usage(tree).inodes_used >= 7
    finally:
        stop.set()
        thread.join()


def test_du_takes_the_rest_from_the_filesystem_and_the_time_from_before(tree):
    metrics = DuMetrics(tree, clock=lambda: 1234.5).get_metrics()
    filesystem = os.statvfs(tree)
    assert metrics.time == 1234.5
    assert (metrics.used, metrics.inodes_used) == (disk_usage(tree).used, disk_usage(tree).inodes_used)
    assert metrics.capacity == filesystem.f_blocks * filesystem.f_frsize
    assert metrics.inodes == filesystem.f_files
    assert metrics.available is not None
    assert metrics.inodes_free is not None


@pytest.mark.root
def test_statfs_of_a_filesystem_of_its_own(directory):
    os.mkdir(f"{directory}/mnt")
    LinuxMounter().mount("tmpfs", f"{directory}/mnt", "tmpfs", ["size=4M", "nr_inodes=100"])
    try:
        Path(directory, "mnt", "file").write_bytes(bytes(MIB))
        metrics = StatFsMetrics(f"{directory}/mnt", clock=lambda: 7.0).get_metrics()
        assert metrics == VolumeMetrics(
            time=7.0,
            used=MIB,
            capacity=4 * MIB,
            available=3 * MIB,
            inodes=100,
            inodes_used=2,
            inodes_free=98,
            source="statfs",
        )
        assert filesystem_magic(f"{directory}/mnt") == TMPFS_MAGIC
    finally:
        LinuxMounter().unmount(f"{directory}/mnt")


@pytest.mark.root
def test_the_size_of_a_device(directory):
    image = f"{directory}/image"
    os.truncate(_touch(image), 3 * MIB)
    device = subprocess.run(
        ["losetup", "--find", "--show", image], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()
    try:
        measured = BlockMetrics(device, clock=lambda: 7.0).get_metrics()
        assert measured == VolumeMetrics(time=7.0, capacity=3 * MIB, source="block")
    finally:
        subprocess.run(["losetup", "--detach", device], timeout=60, check=True)


@pytest.mark.parametrize("provider", [DuMetrics, StatFsMetrics, BlockMetrics])
def test_without_a_path_there_is_the_time_and_an_error(provider):
    with pytest.raises(NoPathMetricsError) as caught:
        provider("", clock=lambda: 7.0).get_metrics()
    assert caught.value.code == 2
    assert caught.value.partial == VolumeMetrics(time=7.0, source=provider.metric_source)


@pytest.mark.parametrize("provider", [DuMetrics, StatFsMetrics, BlockMetrics])
def test_what_is_missing_is_named(provider, directory):
    with pytest.raises(FsInfoMetricsError, match=f"{directory}/missing: No such file") as caught:
        provider(f"{directory}/missing").get_metrics()
    assert caught.value.code == 3
    assert isinstance(caught.value.__cause__, FileNotFoundError)


@pytest.mark.root
def test_a_directory_that_does_not_answer_stops_the_walk(tree):
    from volumehost.mount import syscalls

    os.mkdir(f"{tree}/dead")
    fd = os.open("/dev/fuse", os.O_RDWR)
    syscalls.mount("fuse", f"{tree}/dead", "fuse", 0, f"fd={fd},rootmode=40000,user_id=0,group_id=0")
    os.close(fd)
    try:
        with pytest.raises(FsInfoMetricsError, match="Transport endpoint is not connected"):
            DuMetrics(tree).get_metrics()
    finally:
        LinuxMounter().unmount(f"{tree}/dead")


def test_no_metrics():
    with pytest.raises(NotSupportedMetricsError) as caught:
        NilMetrics().get_metrics()
    assert caught.value.code == 1
    assert not NilMetrics().supports_metrics()


def test_sources_and_support(tree):
    assert [provider.metric_source for provider in (DuMetrics, StatFsMetrics, BlockMetrics, NilMetrics)] == [
        "du",
        "statfs",
        "block",
        "",
    ]
    assert all(provider(tree).supports_metrics() for provider in (DuMetrics, StatFsMetrics, BlockMetrics))


class Counting:
    """A provider that fails as often as told, and counts."""

    metric_source = "counting"

    def __init__(self, failures: int = 0) -> None:
        self.calls = 0
        self._failures = failures
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def get_metrics(self) -> VolumeMetrics:
        self.calls += 1
        self.entered.set()
        self.go_on.wait(timeout=30)
        if self.calls <= self._failures:
            raise FsInfoMetricsError("not yet")
        return VolumeMetrics(time=float(self.calls))


class TestCached:
    def test_only_success_is_remembered(self):
        provider = Counting(failures=2)
        cached = CachedMetrics(provider)
        for _ in range(2):
            with pytest.raises(MetricsError):
                cached.get_metrics()
        assert cached.get_metrics() == cached.get_metrics() == VolumeMetrics(time=3.0)
        assert provider.calls == 3

    def test_concurrent_callers_share_one_measurement(self):
        provider = Counting()
        provider.go_on.clear()
        cached = CachedMetrics(provider)
        results = []
        threads = [threading.Thread(target=lambda: results.append(cached.get_metrics())) for _ in range(8)]
        for thread in threads:
            thread.start()
        assert provider.entered.wait(timeout=30)
        provider.go_on.set()
        for thread in threads:
            thread.join(timeout=30)
        assert results == [VolumeMetrics(time=1.0)] * 8
        assert provider.calls == 1

    def test_it_answers_for_the_provider_behind(self):
        assert CachedMetrics(Counting()).metric_source == "counting"
        assert CachedMetrics(Counting()).supports_metrics()
        assert not CachedMetrics(NilMetrics()).supports_metrics()


def test_the_magic_of_what_is_missing(directory):
    with pytest.raises(FileNotFoundError):
        filesystem_magic(f"{directory}/missing")
