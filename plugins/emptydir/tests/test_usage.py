"""Metrics of an emptyDir: EMPTYDIR-04, and the limit that only metrics watch on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volumehost import MounterArgs
from volumehost.errors import FsInfoMetricsError

pytestmark = pytest.mark.root

MIB = 1 << 20


def test_on_disk_the_volumes_own_use_and_the_filesystems_capacity(plugin, make_spec, pod, data_dir):
    mounter = plugin.new_mounter(make_spec(), pod)
    mounter.set_up(MounterArgs())
    empty = mounter.get_metrics()
    Path(data_dir, "file").write_bytes(bytes(MIB))
    os.sync()
    full = mounter.get_metrics()
    assert full.used - empty.used == os.stat(f"{data_dir}/file").st_blocks * 512 >= MIB
    assert full.inodes_used - empty.inodes_used == 1
    assert full.capacity > 16 * MIB
    assert full.abnormal is None
    assert mounter.metric_source == "du"
    assert plugin.new_unmounter("scratch", pod.metadata.uid).metric_source == "du"


def test_on_disk_more_than_the_limit_is_reported_not_prevented(plugin, make_spec, pod, data_dir):
    mounter = plugin.new_mounter(make_spec("", "1Mi"), pod)
    mounter.set_up(MounterArgs(desired_size=MIB))
    assert mounter.get_metrics().abnormal is None
    Path(data_dir, "file").write_bytes(bytes(2 * MIB))
    os.sync()
    metrics = mounter.get_metrics()
    assert metrics.abnormal is True
    assert metrics.message.startswith('Usage of EmptyDir volume "scratch" exceeds the limit: ')


def test_in_memory_everything_is_the_volumes_own(plugin, make_spec, pod, data_dir):
    mounter = plugin.new_mounter(make_spec("Memory", "4Mi"), pod)
    mounter.set_up(MounterArgs())
    Path(data_dir, "file").write_bytes(bytes(MIB))
    unlinked = os.open(f"{data_dir}/unlinked", os.O_CREAT | os.O_RDWR)
    os.write(unlinked, bytes(MIB))
    os.unlink(f"{data_dir}/unlinked")
    unmounter = plugin.new_unmounter("scratch", pod.metadata.uid)
    for volume in (mounter, unmounter):
        metrics = volume.get_metrics()
        assert metrics.capacity == 4 * MIB
        assert metrics.used == 2 * MIB  # unlinked files occupy memory until they are closed
        assert metrics.available == 2 * MIB
        assert volume.metric_source == "statfs"
    os.close(unlinked)
    unmounter.tear_down()


def test_before_set_up_there_is_nothing_to_measure(plugin, make_spec, pod):
    with pytest.raises(FsInfoMetricsError):
        plugin.new_mounter(make_spec(), pod).get_metrics()
