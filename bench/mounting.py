"""The mount room against the bare system calls, against mount(8), and against parsing the mount table."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import bare
from bench.measuring import Figure, alternating, interleaved, once
from volumehost.mount.mount_point import is_mount_point
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import read_mount_table


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory on a tmpfs of its own."""
    with tempfile.TemporaryDirectory() as directory:
        bare.mount("bench", directory, "tmpfs")
        try:
            yield Path(directory)
        finally:
            bare.umount(directory)


def figures() -> list[Figure]:
    """Bind cycle and mount point test."""
    return [*_bind_cycle(), *_mount_point()]


def _bind_cycle() -> list[Figure]:
    with _directory() as base:
        source, target = str(base / "source"), str(base / "target")
        Path(source).mkdir()
        Path(target).mkdir()
        mounter = LinuxMounter()

        def ours() -> None:
            mounter.mount(source, target, options=["bind"])
            mounter.unmount(target, timeout=30)

        def calls() -> None:
            bare.mount(source, target, flags=bare.MS_BIND)
            bare.umount(target)

        def commands() -> None:
            subprocess.run(["mount", "--bind", source, target], check=True)
            subprocess.run(["umount", target], check=True)

        cycle, bare_cycle = interleaved(ours, calls)
        slow_cycle, command_cycle = alternating([lambda: once(ours), lambda: once(commands)], rounds=15)
    return [
        Figure("bind mount and unmount", cycle, bare_cycle, "the two bare system calls", 3, 1.5),
        Figure("bind mount and unmount", slow_cycle, command_cycle, "mount(8) and umount(8)", 0.06, 0.03),
    ]


def _mount_point() -> list[Figure]:
    count = 1000
    with _directory() as base:
        source = base / "source"
        source.mkdir()
        targets = [base / f"target-{number}" for number in range(count)]
        mounted: list[Path] = []
        try:
            for target in targets:
                target.mkdir()
                bare.mount(str(source), str(target), flags=bare.MS_BIND)
                mounted.append(target)
            wanted = str(targets[count // 2])
            assert is_mount_point(wanted)
            assert not is_mount_point(str(source))
            ours, parsing = interleaved(lambda: is_mount_point(wanted), read_mount_table)
        finally:
            for target in mounted:
                bare.umount(str(target))
    return [Figure(f"is it a mount point, {count} mounts", ours, parsing, "parsing mountinfo", 0.01, 0.002)]
