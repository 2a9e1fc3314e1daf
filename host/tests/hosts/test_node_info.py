"""What the machine itself tells of a node (HOST-05)."""

import os

import pytest

from volumehost.hosts import node_info


def test_allocatable_is_plausible(tmp_path):
    found = node_info.local_allocatable(str(tmp_path))
    assert found["cpu"] == len(os.sched_getaffinity(0)) * 1000
    assert 16 << 20 < found["memory"] < 1 << 50
    statvfs = os.statvfs(tmp_path)
    assert found["ephemeral-storage"] == statvfs.f_blocks * statvfs.f_frsize


def test_a_root_directory_that_is_not_there_leaves_storage_out(tmp_path):
    assert "ephemeral-storage" not in node_info.local_allocatable(str(tmp_path / "absent"))


def test_memory_comes_from_meminfo(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal:        4096 kB\nMemFree: 1 kB\n")
    assert node_info.local_memory(str(tmp_path / "meminfo")) == 4096 * 1024


def test_memory_that_cannot_be_told_is_an_error(tmp_path):
    (tmp_path / "meminfo").write_text("MemFree: 1 kB\n")
    with pytest.raises(OSError, match="MemTotal"):
        node_info.local_memory(str(tmp_path / "meminfo"))
    with pytest.raises(FileNotFoundError):
        node_info.local_memory(str(tmp_path / "absent"))


def test_labels():
    labels = node_info.local_labels("n1")
    assert labels["kubernetes.io/hostname"] == "n1"
    assert labels["kubernetes.io/os"] == "linux"
    assert labels["kubernetes.io/arch"]


def test_the_nodes_name_is_lower_case():
    assert node_info.local_node_name() == os.uname().nodename.lower()
