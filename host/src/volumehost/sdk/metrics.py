"""Metrics providers for volumes: disk usage, filesystem, block device, none, cached (METRICS rules).

A plugin's mounter holds one and answers ``get_metrics`` with it. ``metric_source`` is the label under which the host
records how long a collection took (METRICS-09): it finds it in what they return.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from volumehost.errors import FsInfoMetricsError, MetricsError, NoPathMetricsError, NotSupportedMetricsError
from volumehost.sdk.tree_walk import TreeWalk
from volumehost.volumes import MetricsProvider, VolumeMetrics

#: ``st_blocks`` counts units of this many bytes, whatever the filesystem's own block size.
STAT_BLOCK_SIZE = 512


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """What a directory tree occupies on its filesystem."""

    used: int
    inodes_used: int


class _UsageCounter:
    """Adds up one tree: one device, links not followed, a file with several names counted once (METRICS-06)."""

    def __init__(self, root: os.stat_result) -> None:
        self.used = root.st_blocks * STAT_BLOCK_SIZE
        self.inodes = 1
        self._device = root.st_dev
        self._seen: set[int] = set()

    def visit(self, _dir_fd: int, _name: str, status: os.stat_result) -> bool:
        if status.st_dev != self._device:
            return False
        is_directory = stat.S_ISDIR(status.st_mode)
        if status.st_nlink > 1 and not is_directory:
            if status.st_ino in self._seen:
                return False
            self._seen.add(status.st_ino)
        self.used += status.st_blocks * STAT_BLOCK_SIZE
        self.inodes += 1
        return is_directory

    @staticmethod
    def failed(_path: str, error: OSError) -> None:
        # Files come and go while a pod runs. A directory that became something else was replaced: gone as well.
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise error

    def enter(self, fd: int) -> bool:
        return os.fstat(fd).st_dev == self._device


def disk_usage(path: str) -> DiskUsage:
    """Bytes and inodes of the tree at ``path``, like ``du -s`` on one filesystem; a link at ``path`` is followed.

    :raises OSError: something other than a vanished entry stopped the walk.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        counter = _UsageCounter(os.fstat(fd))
        TreeWalk(visit=counter.visit, enter=counter.enter, failed=counter.failed).run(fd)
    finally:
        os.close(fd)
    return DiskUsage(counter.used, counter.inodes)


class NilMetrics:
    """For volumes without metrics (METRICS-02)."""

    metric_source: ClassVar[str] = ""

    def get_metrics(self) -> VolumeMetrics:
        """:raises NotSupportedMetricsError: always."""
        raise NotSupportedMetricsError("metrics are not supported for this volume")

    def supports_metrics(self) -> bool:
        """False."""
        return False


class DuMetrics:
    """Usage by walking the volume, the rest from its filesystem (METRICS-03): for volumes that share one."""

    metric_source: ClassVar[str] = "du"

    def __init__(self, path: str, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def get_metrics(self) -> VolumeMetrics:
        """Measure; ``used`` and ``inodes_used`` are the volume's, all else is the whole filesystem's.

        :raises NoPathMetricsError: there is no path.
        :raises FsInfoMetricsError: the walk or the filesystem failed; ``partial`` has what was found out before.
        """
        metrics = _started(self._path, self._clock, self.metric_source)
        try:
            usage = disk_usage(self._path)
        except OSError as error:
            raise _failure(f"measuring the disk usage of {self._path}", error, metrics) from error
        metrics = replace(metrics, used=usage.used, inodes_used=usage.inodes_used)
        filesystem = _statfs(self._path, metrics)
        return replace(
            metrics,
            available=filesystem.f_bavail * filesystem.f_frsize,
            capacity=filesystem.f_blocks * filesystem.f_frsize,
            inodes=filesystem.f_files,
            inodes_free=filesystem.f_ffree,
        )

    def supports_metrics(self) -> bool:
        """True."""
        return True


class StatFsMetrics:
    """Everything from the filesystem (METRICS-04): for volumes that are a filesystem of their own."""

    metric_source: ClassVar[str] = "statfs"

    def __init__(self, path: str, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def get_metrics(self) -> VolumeMetrics:
        """Measure.

        :raises NoPathMetricsError: there is no path.
        :raises FsInfoMetricsError: the filesystem failed; ``partial`` has the time.
        """
        metrics = _started(self._path, self._clock, self.metric_source)
        filesystem = _statfs(self._path, metrics)
        return replace(
            metrics,
            used=(filesystem.f_blocks - filesystem.f_bfree) * filesystem.f_frsize,
            available=filesystem.f_bavail * filesystem.f_frsize,
            capacity=filesystem.f_blocks * filesystem.f_frsize,
            inodes=filesystem.f_files,
            inodes_free=filesystem.f_ffree,
            inodes_used=filesystem.f_files - filesystem.f_ffree,
        )

    def supports_metrics(self) -> bool:
        """True."""
        return True


class BlockMetrics:
    """The size of a block device, nothing else (METRICS-05)."""

    metric_source: ClassVar[str] = "block"

    def __init__(self, device_path: str, *, clock: Callable[[], float] = time.time) -> None:
        self._path = device_path
        self._clock = clock

    def get_metrics(self) -> VolumeMetrics:
        """Measure.

        :raises NoPathMetricsError: there is no path.
        :raises FsInfoMetricsError: the device cannot be opened or has no size; ``partial`` has the time.
        """
        metrics = _started(self._path, self._clock, self.metric_source)
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                capacity = os.lseek(fd, 0, os.SEEK_END)
            finally:
                os.close(fd)
        except OSError as error:
            raise _failure(f"reading the size of the device {self._path}", error, metrics) from error
        return replace(metrics, capacity=capacity)

    def supports_metrics(self) -> bool:
        """True."""
        return True


class CachedMetrics:
    """Remembers the first success of another provider (METRICS-08): for volumes whose content never changes size.

    A failure is not remembered. Concurrent callers wait for one measurement.
    """

    def __init__(self, provider: MetricsProvider) -> None:
        self._provider = provider
        self._lock = threading.Lock()
        self._known: VolumeMetrics | None = None

    @property
    def metric_source(self) -> str:
        """That of the provider behind."""
        return getattr(self._provider, "metric_source", "")

    def get_metrics(self) -> VolumeMetrics:
        """The first successful measurement."""
        with self._lock:
            if self._known is None:
                self._known = self._provider.get_metrics()
            return self._known

    def supports_metrics(self) -> bool:
        """What the provider behind says; True when it does not say."""
        supports: Callable[[], bool] | None = getattr(self._provider, "supports_metrics", None)
        return supports() if supports is not None else True


def _started(path: str, clock: Callable[[], float], source: str) -> VolumeMetrics:
    """Metrics with nothing but the time, which is taken before measuring (METRICS-10), and how it is measured."""
    metrics = VolumeMetrics(time=clock(), source=source)
    if not path:
        error = NoPathMetricsError("no path defined for disk usage metrics", action="measuring a volume")
        error.partial = metrics
        raise error
    return metrics


def _statfs(path: str, metrics: VolumeMetrics) -> os.statvfs_result:
    try:
        return os.statvfs(path)
    except OSError as error:
        raise _failure(f"asking the filesystem of {path}", error, metrics) from error


def _failure(action: str, error: OSError, metrics: VolumeMetrics) -> MetricsError:
    failure = FsInfoMetricsError(str(error.strerror or error), action=action)
    failure.partial = metrics
    return failure
