"""Fixtures for tests with real mounts, loop devices, dead and stopped FUSE filesystems; each cleans up after itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from volumehost.host_services import Subpath
from volumehost.mount import loop, syscalls
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import read_mount_table
from volumehost.mount.subpath import LinuxSubpather

FUSE_DAEMON = Path(__file__).with_name("fuse_daemon.py")


def wait_until(condition: Callable[[], object], *, seconds: float = 30.0, what: str = "the condition") -> None:
    """Poll until the condition holds; fail the test after the deadline."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            pytest.fail(f"{what} did not come true within {seconds} s")
        time.sleep(0.005)


@pytest.fixture
def until() -> Callable[..., None]:
    return wait_until


@pytest.fixture
def area(tmp_path: Path) -> Iterator[Path]:
    """A directory in which a test may mount what it likes."""
    place = tmp_path / "area"
    place.mkdir()
    yield place
    detach_below(str(tmp_path))


def detach_below(path: str) -> None:
    for device in loop.list_attached():
        if device.backing_file.startswith(path + "/"):
            loop.detach(device.device, timeout=0)
    for _ in range(3):
        mounts = [entry.path for entry in read_mount_table() if entry.path == path or entry.path.startswith(path + "/")]
        if not mounts:
            return
        for mount in reversed(mounts):
            with suppress(OSError):
                syscalls.umount2(mount, syscalls.MNT_DETACH | syscalls.UMOUNT_NOFOLLOW)


@pytest.fixture
def mounter() -> LinuxMounter:
    return LinuxMounter(answer_seconds=1.0, unmount_seconds=10.0, mount_seconds=20.0)


@pytest.fixture
def tmpfs(area: Path, mounter: LinuxMounter) -> Path:
    """A tmpfs of its own."""
    place = area / "tmpfs"
    place.mkdir()
    mounter.mount("tmpfs", str(place), "tmpfs", ["size=64m"])
    return place


class FuseDaemon:
    """A FUSE filesystem in a process of its own."""

    def __init__(self, mount_point: Path, *device: str) -> None:
        self.mount_point = mount_point
        self.process = subprocess.Popen(
            [sys.executable, str(FUSE_DAEMON), str(mount_point), *device], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            self.end()
            pytest.skip("FUSE does not work here")
        # The kernel's greeting is answered now: without that it would not say farewell either.
        os.stat(mount_point)

    def kill(self) -> None:
        """As if it had crashed: the mount stays and is dead."""
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> None:
        """It answers no more, and does not die either."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def fuse(area: Path) -> Iterator[Callable[..., FuseDaemon]]:
    """Mounts FUSE filesystems; ends their daemons at the end of the test."""
    daemons: list[FuseDaemon] = []

    def start(mount_point: Path, *device: str) -> FuseDaemon:
        if not os.path.exists("/dev/fuse"):
            pytest.skip("needs /dev/fuse")
        mount_point.mkdir(parents=True, exist_ok=True)
        daemons.append(FuseDaemon(mount_point, *device))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.end()


class MakeImage(Protocol):
    def __call__(self, size: int = ..., name: str = ...) -> str: ...


@pytest.fixture
def image(tmp_path: Path) -> Iterator[MakeImage]:
    """Makes sparse files; loop devices on them are detached at the end of the test."""
    made: list[str] = []

    def make(size: int = 16 << 20, name: str = "disk.img") -> str:
        path = tmp_path / name
        with path.open("wb") as file:
            file.truncate(size)
        made.append(str(path))
        return str(path)

    yield make
    detach_below(str(tmp_path))
    for path in made:
        for device in loop.find(path):
            loop.detach(device)


@pytest.fixture
def device(image: MakeImage, area: Path) -> str:
    """An empty block device of 16 MiB."""
    if not os.path.exists("/dev/loop-control"):
        pytest.skip("needs loop devices")
    return loop.attach(image())


@pytest.fixture
def subpather(mounter: LinuxMounter) -> LinuxSubpather:
    """Makes and takes away subPath mounts."""
    return LinuxSubpather(mounter, seconds=20)


@pytest.fixture
def volume(area: Path) -> Path:
    """A volume of a pod, with links that lead everywhere."""
    place = area / "pod" / "volumes" / "x~y" / "vol"
    (place / "dir" / "below").mkdir(parents=True)
    (place / "dir" / "file").write_text("content")
    (place / "inside").symlink_to("dir")
    (place / "absolute").symlink_to(place / "dir")
    (place / "self").symlink_to(".")
    (place / "chain").symlink_to("inside")
    (place / "outside").symlink_to(area / "outside")
    (place / "up").symlink_to("../../../../outside")
    (place / "chain out").symlink_to("outside")
    (place / "dangling").symlink_to("nowhere")
    (area / "outside").mkdir()
    (area / "outside" / "secret").write_text("secret")
    return place


def subpath(volume: Path, inside: str, **changes: object) -> Subpath:
    """What asks for a path inside the volume."""
    pod = str(volume.parents[2])
    made = Subpath(0, str(volume / inside), "vol", str(volume), pod, "container")
    return replace(made, **changes)  # type: ignore[arg-type]


def leftovers(volume: Path) -> bool:
    """Whether the pod has subPath mounts, or what is left of them."""
    return (volume.parents[2] / "volume-subpaths").exists()
