"""Root directories of every kind: those that work and those that get a clear error before anything is done."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from volumehost.mount.mounter import LinuxMounter

MEMORY = "emptyDir: {medium: Memory, sizeLimit: 1Mi}"


@pytest.mark.root
@pytest.mark.parametrize("name", ["with spaces", "ünïcode 日本", "per%20cent?#", "-dash", "new\nline", "quote'\"\\"])
def test_any_path_works(volumehost, manifest, pod_manifest, mounts_below, tmp_path: Path, name: str) -> None:
    root = tmp_path / name / "deep"
    path = manifest(pod_manifest(a=MEMORY, b="emptyDir: {}"))
    assert volumehost("--root-dir", root, "mount", "-f", path).code == 0
    assert len(mounts_below(root)) == 1
    status = volumehost("status", "--root-dir", root, "-o", "json").json()
    assert status["rootDir"] == str(root)
    assert status["pods"][0]["ready"] is True
    assert volumehost("unmount", "web", "--root-dir", root).code == 0
    assert mounts_below(root) == []


@pytest.mark.root
def test_br69_a_root_directory_that_is_a_link_works_and_the_effective_one_is_shown(
    volumehost, manifest, pod_manifest, mounts_below, tmp_path: Path
) -> None:
    real, link = tmp_path / "real disk", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    path = manifest(pod_manifest(a=MEMORY))
    assert volumehost("mount", "-f", path, root_dir=link).code == 0
    assert len(mounts_below(real)) == 1
    status = volumehost("status", "-o", "json", root_dir=link).json()
    assert status["rootDir"] == str(real)
    assert status["pods"][0]["ready"] is True
    assert volumehost("mount", "web", root_dir=real).code == 0
    assert len(mounts_below(real)) == 1
    assert volumehost("unmount", "web", root_dir=link).code == 0
    assert mounts_below(real) == []


@pytest.mark.root
def test_a_relative_path_is_taken_from_where_the_command_runs(volumehost, manifest, pod_manifest, mounts_below) -> None:
    path = manifest(pod_manifest(a=MEMORY))
    assert volumehost("mount", "-f", path, "--root-dir", "state/").code == 0
    assert len(mounts_below(volumehost.cwd / "state")) == 1


COMMANDS = (["apply", "-f", "-"], ["mount", "-f", "-"])


def check_refused(volumehost, root: Path, pod: str, *words: str) -> None:
    for command in COMMANDS:
        done = volumehost(*command, stdin=pod, root_dir=root)
        assert (done.code, done.out) == (1, ""), done.err
        assert done.err.startswith("error: ")
        assert "hint: " in done.err
        for word in (str(root), *words):
            assert word in done.err, done.err


@pytest.mark.root
def test_a_file_is_no_root_directory(volumehost, pod_manifest, tmp_path: Path) -> None:
    root = tmp_path / "file"
    root.write_text("mine")
    check_refused(volumehost, root, pod_manifest(a="emptyDir: {}"), "not a directory")
    check_refused(volumehost, root / "below", pod_manifest(a="emptyDir: {}"), "not a directory")
    assert root.read_text() == "mine"
    for command in (["get", "pods"], ["status"], ["describe", "pods"], ["unmount", "--all"]):
        assert volumehost(*command, root_dir=root).code in {0, 1}


def test_the_root_of_the_filesystem_is_no_root_directory(volumehost) -> None:
    for command in (["status"], ["get", "pods"], ["unmount", "--all"]):
        done = volumehost(*command, root_dir="/")
        assert done.code == 1
        assert "the root of the filesystem cannot be the root directory" in done.err


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "read only"
    directory.mkdir()
    mounter = LinuxMounter()
    mounter.mount(str(directory), str(directory), "", ["bind", "ro"])
    yield directory
    mounter.unmount(str(directory))


@pytest.mark.root
def test_a_read_only_filesystem(volumehost, pod_manifest, read_only: Path) -> None:
    check_refused(volumehost, read_only, pod_manifest(a="emptyDir: {}"), "read-only")
    check_refused(volumehost, read_only / "new", pod_manifest(a="emptyDir: {}"), "read-only")
    assert list(read_only.iterdir()) == []


@pytest.mark.root
def test_looking_needs_no_right_to_write(volumehost, manifest, pod_manifest, mounts_below) -> None:
    path = manifest(pod_manifest(a=MEMORY))
    assert volumehost("mount", "-f", path).code == 0
    assert len(mounts_below(volumehost.root_dir)) == 1
    mounter, root = LinuxMounter(), str(volumehost.root_dir)
    mounter.mount(root, root, "", ["rbind", "ro"])
    try:
        status = volumehost("status", "-o", "json")
        assert status.code == 0, status.err
        assert status.json()["pods"][0]["name"] == "web"
        assert status.json()["notes"] == []
        assert volumehost("get", "pods", "-o", "name").out == "pod/web\n"
        assert "Volumes on this node" in volumehost("describe", "pod", "web").out
    finally:
        for entry in reversed(mounts_below(volumehost.root_dir)[1:]):
            mounter.unmount(entry)
    assert volumehost("unmount", "web").code == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 256 KiB."""
    directory = tmp_path / "small disk"
    directory.mkdir()
    mounter = LinuxMounter()
    mounter.mount("tmpfs", str(directory), "tmpfs", ["size=256k"])
    yield directory
    mounter.unmount(str(directory))


@pytest.mark.root
def test_a_full_filesystem(volumehost, pod_manifest, small: Path) -> None:
    (small / "filler").write_bytes(b"x" * (256 << 10))
    root = small / "root"
    check_refused(volumehost, root, pod_manifest(a="emptyDir: {}"), "full")
    assert [path for path in small.rglob("*") if path.is_file()] == [small / "filler"]
    (small / "filler").unlink()
    assert volumehost("apply", "-f", "-", stdin=pod_manifest(a="emptyDir: {}"), root_dir=root).code == 0


@pytest.mark.root
def test_a_filesystem_that_fills_up_leaves_what_was_there_usable(volumehost, pod_manifest, small: Path) -> None:
    root = small / "root"
    assert volumehost("apply", "-f", "-", stdin=pod_manifest("one", a="emptyDir: {}"), root_dir=root).code == 0
    filler = small / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    done = volumehost("apply", "-f", "-", stdin=pod_manifest("two", a="emptyDir: {}"), root_dir=root)
    assert done.code == 1
    assert "hint: " in done.err
    assert volumehost("get", "pods", "-o", "name", root_dir=root).out == "pod/one\n"
    assert volumehost("status", root_dir=root).code == 0
    filler.unlink()
    assert volumehost("get", "pods", "-o", "name", root_dir=root).out == "pod/one\n"
    assert volumehost("apply", "-f", "-", stdin=pod_manifest("two", a="emptyDir: {}"), root_dir=root).code == 0


def test_a_damaged_store_is_left_alone_and_what_to_do_is_said(volumehost, manifest) -> None:
    path = manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    assert volumehost("apply", "-f", path).code == 0
    store = volumehost.root_dir / "store.sqlite3"
    junk = os.urandom(8192)
    store.write_bytes(junk)
    for command in (["get", "cm"], ["describe", "cm"], ["apply", "-f", str(path)], ["delete", "cm", "c"]):
        done = volumehost(*command)
        assert done.code == 1, command
        assert "store.sqlite3 is damaged" in done.err
        assert "hint: " in done.err
    status = volumehost("status")
    assert status.code == 0
    assert "damaged" in status.err
    assert store.read_bytes() == junk


WITHOUT_OVERRIDE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
PR_CAPBSET_DROP = 24
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.root
@pytest.mark.parametrize("command", [["get", "cm"], ["status"], ["apply", "-f", "pod.yaml"], ["delete", "cm", "c"]])
def test_a_root_directory_that_this_user_may_not_enter(volumehost, manifest, command: list[str]) -> None:
    path = manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    assert volumehost("apply", "-f", path).code == 0
    volumehost.root_dir.chmod(0o700)
    os.chown(volumehost.root_dir, 65534, 65534)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OVERRIDE, str(Path(sys.executable).with_name("volumehost")), *command],
        capture_output=True,
        text=True,
        env=volumehost.variables(),
        cwd=volumehost.cwd,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done
    assert "ermission denied" in done.stderr or "unable to open" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.root
@pytest.mark.parametrize("command", [["unmount", "web"], ["unmount", "--all"], ["delete", "pod", "web"]])
def test_a_volume_that_filled_the_filesystem_can_be_unmounted(
    volumehost, pod_manifest, mounts_below, tmp_path: Path, command: list[str]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounter = LinuxMounter()
    mounter.mount("tmpfs", str(disk), "tmpfs", ["size=12m"])
    try:
        root = disk / "root"
        text = pod_manifest(full="emptyDir: {}", memory="emptyDir: {medium: Memory}")
        done = volumehost("mount", "-f", "-", "-o", "json", stdin=text, root_dir=root)
        assert done.code == 0, done.err
        volumes = {each["volume"]: each["path"] for each in done.json()["pods"][0]["volumes"]}
        with Path(volumes["full"], "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        assert os.statvfs(disk).f_bavail == 0
        done = volumehost(*command, root_dir=root)
        assert done.code == 0, done.err
        assert mounts_below(root) == []
        assert list((root / "pods").iterdir()) == []
        done = volumehost("mount", "-f", "-", stdin=text, root_dir=root)
        assert done.code == 0, done.err
        assert volumehost("unmount", "web", root_dir=root).code == 0
    finally:
        for entry in reversed(mounts_below(disk)):
            mounter.unmount(entry)


@pytest.mark.parametrize("command", [["unmount", "--all"], ["unmount", "web"]])
def test_unmounting_below_a_file_says_that_it_is_no_directory(volumehost, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "file").touch()
    done = volumehost(*command, root_dir=tmp_path / "file")
    assert done.code == 1
    assert "not a directory" in done.err


@pytest.mark.root
@pytest.mark.parametrize(
    "command",
    [["status"], ["explain", "web"], ["plan", "web"], ["inspect"], ["repair"], ["drivers", "list"], ["get", "pods"]],
    ids=" ".join,
)
def test_who_may_not_look_into_it_is_told_so(volumehost, tmp_path: Path, command: list[str]) -> None:
    """And not that it is empty, or that a plugin is missing."""
    root = tmp_path / "root"
    root.mkdir(0o700)
    os.chown(root, 65534, 65534)
    done = subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "volumehost", *command],
        capture_output=True,
        text=True,
        env=volumehost.variables(root),
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "permission denied" in done.stderr.lower()
    assert done.stderr.splitlines()[-1].startswith("hint: run as ")
    assert len(done.stderr.splitlines()) == 2
