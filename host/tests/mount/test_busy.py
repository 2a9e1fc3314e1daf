"""Busy mounts name who holds them (BR-84)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from volumehost.errors import UnmountError
from volumehost.mount import busy, loop
from volumehost.mount.mounter import LinuxMounter

pytestmark = pytest.mark.root

HOLD = {
    "cwd": "import os; os.chdir(path)",
    "file": "held = open(path + '/file', 'w')",
    # Python's own mmap keeps a descriptor, which would be found first.
    "map": "import ctypes; f = open(path + '/file', 'w+b'); f.truncate(9); libc = ctypes.CDLL(None);"
    " libc.mmap.restype = ctypes.c_void_p; libc.mmap(None, ctypes.c_size_t(9), 1, 1, f.fileno(), 0); f.close()",
    "root": "import os; d = os.open('/', 0); os.chroot(path); os.fchdir(d)",
    "directory": "import os; d = os.open(path, os.O_PATH)",
}


@contextmanager
def holding(how: str, path: Path) -> Iterator[int]:
    program = f"import sys; path = sys.argv[1]\n{HOLD[how]}\nprint('ready', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("cwd", "working directory"),
        ("file", "open file"),
        ("map", "mapped file"),
        ("root", "root directory"),
        ("directory", "open file"),
    ],
)
def test_the_process_and_what_it_holds_are_named(how: str, text: str, tmpfs: Path, mounter: LinuxMounter) -> None:
    with holding(how, tmpfs) as pid:
        with pytest.raises(UnmountError, match=rf"process {pid} \(.*\): {text}.*{tmpfs.name}") as caught:
            mounter.unmount(str(tmpfs))
        assert caught.value.hint == "end what uses it"
        assert mounter.is_mount_point(str(tmpfs))
    mounter.unmount(str(tmpfs))


def test_a_mount_below_is_named(tmpfs: Path, mounter: LinuxMounter) -> None:
    (tmpfs / "below").mkdir()
    mounter.mount("tmpfs", str(tmpfs / "below"), "tmpfs")
    with pytest.raises(UnmountError, match=rf"{tmpfs}/below is mounted in it"):
        mounter.unmount(str(tmpfs))


def test_a_loop_device_on_a_file_is_named(tmpfs: Path, mounter: LinuxMounter) -> None:
    image = tmpfs / "disk"
    with image.open("wb") as file:
        file.truncate(1 << 20)
    device = loop.attach(str(image))
    try:
        with pytest.raises(UnmountError, match=rf"{device} is attached to {image}"):
            mounter.unmount(str(tmpfs))
    finally:
        loop.detach(device)
    mounter.unmount(str(tmpfs))


def test_holders_of_another_mount_of_the_same_filesystem_are_not_blamed(tmpfs: Path, mounter: LinuxMounter) -> None:
    (tmpfs / "a").mkdir()
    (tmpfs / "b").mkdir()
    mounter.mount(str(tmpfs / "a"), str(tmpfs / "b"), "", ["bind"])
    with holding("cwd", tmpfs / "a"):
        assert busy.find_holders(str(tmpfs / "b")) == []
        mounter.unmount(str(tmpfs / "b"))


def test_the_list_is_limited_and_one_line_for_each_process(tmpfs: Path) -> None:
    with holding("file", tmpfs), holding("cwd", tmpfs), holding("directory", tmpfs):
        assert len(busy.find_holders(str(tmpfs))) == 3
        assert len(busy.find_holders(str(tmpfs), limit=2)) == 2


def test_nothing_mounted_nobody_holds(area: Path) -> None:
    assert busy.find_holders(str(area)) == []
    assert busy.find_other_reasons(str(area)) == []


def test_a_process_that_ends_meanwhile_is_no_error(tmpfs: Path, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "123").mkdir(parents=True)
    (proc / "self").mkdir()
    assert busy.find_holders(str(tmpfs), proc=str(proc)) == []


def test_who_looks_in_for_a_moment_is_waited_for(tmpfs: Path, mounter: LinuxMounter) -> None:
    looker = (
        "import os, sys\nprint('ready', flush=True)\n"
        "while os.getppid() == int(sys.argv[2]):\n    os.path.exists(sys.argv[1] + '/x')"
    )
    command = [sys.executable, "-c", looker, str(tmpfs), str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(200):
                mounter.unmount(str(tmpfs))
                mounter.mount("tmpfs", str(tmpfs), "tmpfs")
        finally:
            process.send_signal(signal.SIGKILL)


def test_one_look_at_the_processes_serves_many_mounts(area: Path, mounter: LinuxMounter) -> None:
    places = [area / name for name in ("a", "b", "free")]
    for place in places:
        place.mkdir()
        mounter.mount("tmpfs", str(place), "tmpfs")
    mounts = {entry.path: entry for entry in mounter.list_mounts() if entry.path.startswith(f"{area}/")}
    with holding("cwd", places[0]) as first, holding("file", places[0]) as second, holding("file", places[1]) as third:
        found = busy.find_holders_of(mounts.values())
        assert {path: {holder.pid for holder in found.get(mounts[path].mount_id, ())} for path in mounts} == {
            str(places[0]): {first, second},
            str(places[1]): {third},
            str(places[2]): set(),
        }
        assert len(busy.find_holders_of([mounts[str(places[0])]], limit=1)[mounts[str(places[0])].mount_id]) == 1
    assert busy.find_holders_of([]) == {}


def test_the_process_that_asks_is_named_last(tmpfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where its number is the lowest, as when the numbers of processes have begun anew."""
    listed = os.listdir
    monkeypatch.setattr(
        os,
        "listdir",
        lambda path: sorted(listed(path), key=lambda name: name != own) if path == "/proc" else listed(path),
    )
    own = str(os.getpid())
    with holding("cwd", tmpfs) as pid, open(tmpfs / "file", "w"):
        assert [holder.pid for holder in busy.find_holders(str(tmpfs))] == [pid, int(own)]
