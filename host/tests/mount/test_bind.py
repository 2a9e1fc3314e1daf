"""Bind mounts with options: one step where the kernel can, two otherwise, nothing left on failure (MOUNT-07 to -11)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost.errors import MountError
from volumehost.host_services import MountPoint
from volumehost.mount import syscalls
from volumehost.mount.bind import bind_mount, bind_mount_in_two_steps
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import read_mount_table
from volumehost.mount.options import parse_options

pytestmark = pytest.mark.root


def entry_at(path: Path) -> MountPoint:
    return next(entry for entry in reversed(read_mount_table()) if entry.path == str(path))


@pytest.fixture
def pair(tmpfs: Path) -> tuple[Path, Path]:
    source, target = tmpfs / "source", tmpfs / "target"
    source.mkdir()
    target.mkdir()
    (source / "file").write_text("content")
    return source, target


@pytest.mark.parametrize("bind", [bind_mount, bind_mount_in_two_steps])
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], {"rw"}),
        (["ro"], {"ro"}),
        (["noexec", "nosuid", "nodev"], {"rw", "noexec", "nosuid", "nodev"}),
        (["ro", "noatime"], {"ro", "noatime"}),
        (["nodiratime"], {"rw", "nodiratime"}),
        (["nosymfollow"], {"nosymfollow"}),
    ],
)
def test_options_of_the_mount_and_only_of_the_mount(bind, options, shown, pair) -> None:
    source, target = pair
    bind(str(source), str(target), parse_options(["bind", *options]))
    assert shown <= set(entry_at(target).options)
    assert (target / "file").read_text() == "content"
    (source / "still writable").touch()


@pytest.mark.parametrize("bind", [bind_mount, bind_mount_in_two_steps])
def test_flags_of_the_source_are_kept_and_never_loosened_mount09(bind, area: Path, mounter: LinuxMounter) -> None:
    source, target = area / "source", area / "target"
    source.mkdir()
    target.mkdir()
    mounter.mount("tmpfs", str(source), "tmpfs", ["nosuid", "nodev", "noexec", "noatime"])
    bind(str(source), str(target), parse_options(["bind", "ro", "exec", "suid", "rw", "ro"]))
    assert {"ro", "nosuid", "nodev", "noexec", "noatime"} <= set(entry_at(target).options)


@pytest.mark.parametrize("bind", [bind_mount, bind_mount_in_two_steps])
def test_rw_does_not_make_a_read_only_source_writable(bind, area: Path, mounter: LinuxMounter) -> None:
    source, target = area / "source", area / "target"
    source.mkdir()
    target.mkdir()
    mounter.mount("tmpfs", str(source), "tmpfs")
    mounter.mount("", str(source), "", ["remount", "bind", "ro"])
    bind(str(source), str(target), parse_options(["bind", "rw", "noexec"]))
    with pytest.raises(OSError, match="Read-only"):
        (target / "x").touch()


WRITER = """
import os, sys
path = sys.argv[1] + "/written"
print("ready", flush=True)
while os.getppid() == int(sys.argv[2]):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError:
        pass
"""


def test_a_read_only_bind_is_never_seen_read_write_mount10(pair: tuple[Path, Path], mounter: LinuxMounter) -> None:
    """A process writes below the target all the time; nothing reaches the source, not even while it is mounted."""
    source, target = pair
    command = [sys.executable, "-c", WRITER, str(target), str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            for _ in range(1000):
                mounter.mount(str(source), str(target), "", ["bind", "ro"])
                syscalls.umount2(str(target), syscalls.MNT_DETACH)
        finally:
            writer.kill()
    assert (target / "written").exists()
    assert not (source / "written").exists()


def test_recursive_binds_take_what_is_mounted_below_mount11(tmpfs: Path, mounter: LinuxMounter) -> None:
    source, target = tmpfs / "source", tmpfs / "target"
    (source / "below").mkdir(parents=True)
    target.mkdir()
    mounter.mount("tmpfs", str(source / "below"), "tmpfs")
    (source / "below" / "inner").touch()
    mounter.mount(str(source), str(target), "", ["rbind", "ro"])
    assert (target / "below" / "inner").exists()
    assert "ro" in entry_at(target).options
    assert "rw" in entry_at(target / "below").options


@pytest.mark.parametrize(("option", "field"), [("shared", "shared:"), ("unbindable", "unbindable")])
@pytest.mark.parametrize("bind", [bind_mount, bind_mount_in_two_steps])
def test_propagation_is_set_with_the_bind(bind, option: str, field: str, pair: tuple[Path, Path]) -> None:
    source, target = pair
    bind(str(source), str(target), parse_options(["bind", option]))
    assert any(item.startswith(field) for item in entry_at(target).optional_fields)


def test_a_file_a_socket_and_a_device_can_be_bound(tmpfs: Path, mounter: LinuxMounter) -> None:
    for name, path in (("null", "/dev/null"), ("file", str(tmpfs / "file"))):
        (tmpfs / "file").write_text("x")
        place = tmpfs / f"place of {name}"
        place.touch()
        mounter.mount(path, str(place), "", ["bind"])
        assert os.path.samestat(os.stat(path), place.stat())
        mounter.unmount(str(place))


def test_a_directory_on_a_file_is_refused_and_explained(pair: tuple[Path, Path], mounter: LinuxMounter) -> None:
    source, target = pair
    with pytest.raises(MountError, match="both be directories or both be files") as caught:
        mounter.mount(str(source / "file"), str(target), "", ["bind"])
    assert caught.value.errno == errno.ENOTDIR
    assert caught.value.subject == str(target)


def test_a_failed_second_step_is_undone_mount10(tmpfs: Path, mounter: LinuxMounter) -> None:
    """The source is unbindable no more after step one; a wrong propagation pair makes the last step fail."""
    source, target = tmpfs / "source", tmpfs / "target"
    source.mkdir()
    target.mkdir()
    broken = parse_options(["bind", "ro"])
    impossible = type(broken)(broken.flags, (syscalls.MS_SHARED | syscalls.MS_PRIVATE,), ())
    for bind in (bind_mount, bind_mount_in_two_steps):
        with pytest.raises(OSError, match="Invalid argument"):
            bind(str(source), str(target), impossible)
        assert not mounter.is_mount_point(str(target))


def test_an_unbindable_source_is_refused(tmpfs: Path, mounter: LinuxMounter) -> None:
    source, target = tmpfs / "source", tmpfs / "target"
    source.mkdir()
    target.mkdir()
    mounter.mount("tmpfs", str(source), "tmpfs", ["unbindable"])
    with pytest.raises(MountError, match="Invalid argument"):
        mounter.mount(str(source), str(target), "", ["bind"])


def test_sensitive_options_bind_too_mount07(pair: tuple[Path, Path], mounter: LinuxMounter) -> None:
    source, target = pair
    mounter.mount(str(source), str(target), "", ["_netdev"], sensitive_options=["bind", "ro"])
    assert "ro" in entry_at(target).options
    assert entry_at(target).root == "/source"
