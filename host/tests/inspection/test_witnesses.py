"""Small witnesses by themselves: processes, sockets, records, names of log directories; whatever they hold."""

import json
import os
import socket
import stat
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.cli.inspection_report import text
from volumehost.inspection.pod_sources import read_pod_logs
from volumehost.inspection.pods import KnownPods
from volumehost.inspection.processes import command_of, is_alive, is_listened_to, kubelet_at_work
from volumehost.inspection.records import parse_flat_json
from volumehost.inspection.tree import Tree


@contextmanager
def called(name, tmp_path, *arguments):
    """A process whose program is called so, with these arguments behind it."""
    program = tmp_path / name
    if not program.exists():
        program.symlink_to("/bin/bash")
    command = [str(program), "-c", "echo ready; read", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("style", ["--root-dir={}", "--root-dir {}", "-root-dir={}"])
def test_a_kubelet_is_known_by_its_program_and_root_directory(tmp_path, style):
    root = tmp_path / "kubelet root"
    root.mkdir()
    arguments = [part.format(root) for part in style.split(" ")]
    with called("kubelet", tmp_path, "--v=2", *arguments) as process:
        assert kubelet_at_work(str(root)) == f"process {process.pid} (kubelet)"
        assert kubelet_at_work(str(tmp_path)) == ""
    assert kubelet_at_work(str(root)) == ""


def test_a_program_of_another_name_is_no_kubelet(tmp_path):
    with called("kubelet-helper", tmp_path, f"--root-dir={tmp_path}"):
        assert kubelet_at_work(str(tmp_path)) == ""


def test_a_kubelet_of_any_name_is_known_by_its_socket(tmp_path):
    """k3s and others are one program with many parts."""
    (tmp_path / "pod-resources").mkdir()
    directory = os.open(tmp_path / "pod-resources", os.O_PATH)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{directory}/kubelet.sock")
        assert kubelet_at_work(str(tmp_path)) == ""
        server.listen(1)
        assert kubelet_at_work(str(tmp_path)).startswith("a kubelet, which listens on ")
    os.close(directory)


def test_a_socket_is_asked_by_a_way_that_is_short_enough(tmp_path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    directory = os.open(deep, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{directory}/s")
        assert is_listened_to(f"{deep}/s") is False
        server.listen(1)
        assert is_listened_to(f"{deep}/s") is True
    os.close(directory)
    (deep / "file").touch()
    os.mkfifo(deep / "fifo")
    (deep / "link").symlink_to(deep / "s")
    assert [is_listened_to(f"{deep}/{name}") for name in ("file", "fifo", "link", "absent")] == [None] * 4


def test_a_process_is_known_by_more_than_its_number():
    began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    assert is_alive(os.getpid(), began)
    assert not is_alive(os.getpid(), began + 1)
    assert not is_alive(1 << 30, began)
    assert command_of(1 << 30) == "?"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_a_reason(data):
    found = parse_flat_json(data)
    assert isinstance(found, dict | str)
    assert found != ""


@given(st.dictionaries(st.text(), st.text()))
def test_a_record_comes_back_whatever_it_says(record):
    assert parse_flat_json(json.dumps(record).encode()) == record


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=30))
def test_any_name_becomes_text_for_programs(name):
    text(name).encode()
    assert name.isascii() <= (text(name) == name)


def test_names_come_from_directories_of_logs(tmp_path):
    for name in ("shop_web_u1", "kube-system_etcd-node-1_0123", "odd", "a_b", "_x_u", "shop__u2", "n_a_b_u3"):
        (tmp_path / name).mkdir()
    known = KnownPods()
    read_pod_logs(known, str(tmp_path))
    read_pod_logs(known, str(tmp_path / "absent"))
    assert {uid: (name.namespace, name.name) for uid, name in known.names.items()} == {
        "u1": ("shop", "web"),
        "0123": ("kube-system", "etcd-node-1"),
        "u3": ("n", "a_b"),
    }


@pytest.mark.root
@pytest.mark.parametrize("kind", ["fifo", "directory", "device", "link"])
@pytest.mark.parametrize("name", ["volumes.journal", "store.sqlite3", "manager.lock", "agent.sock", "config.toml"])
def test_anything_in_the_place_of_a_file_of_this_host_is_told_and_holds_up_nobody(own, name, kind):
    own.forget_pods()
    os.makedirs(f"{own.root}/drivers", exist_ok=True)
    path = f"{own.root}/{name}"
    if os.path.exists(path):
        os.unlink(path)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        os.mkdir(path)
    elif kind == "device":
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    else:
        os.symlink("/dev/zero", path)
    found = own.inspect()
    if name == "volumes.journal":
        assert "no regular file" in found.findings[0].evidence[0]
    elif name == "store.sqlite3":
        assert any("store" in note for note in found.notes)


@pytest.mark.root
def test_a_tree_that_is_moved_away_meanwhile_is_still_the_one_that_was_opened(area):
    (area / "root" / "pods" / "u").mkdir(parents=True)
    with Tree(str(area / "root")) as tree:
        os.rename(area / "root", area / "other")
        (area / "root" / "pods" / "evil").mkdir(parents=True)
        assert tree.names("pods") == ["u"]
