"""What every HostUtils answers: the same tests for the real one and the fake one (HOSTUTIL-02 to -06, -12)."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from volumehost.errors import VolumeHostError
from volumehost.host_services import HostUtils
from volumehost.mount.hostutil import LinuxHostUtils, UnrecognisedFileTypeError
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.fake_hostutil import FakeHostUtils

KINDS = {
    stat.S_IFDIR: "Directory",
    stat.S_IFREG: "File",
    stat.S_IFSOCK: "Socket",
    stat.S_IFCHR: "CharDevice",
    stat.S_IFBLK: "BlockDevice",
    stat.S_IFIFO: "FIFO",
}


def fake_of(top: Path) -> FakeHostUtils:
    """A fake that knows what really lies there."""
    types: dict[str, str] = {}
    links: dict[str, str] = {}
    modes: dict[str, int] = {}
    owners: dict[str, tuple[int, int]] = {}
    for path in [top, *top.rglob("*")]:
        status = path.lstat()
        if path.is_symlink():
            links[str(path)] = os.readlink(path)
            continue
        types[str(path)] = KINDS[stat.S_IFMT(status.st_mode)]
        modes[str(path)] = stat.S_IMODE(status.st_mode)
        owners[str(path)] = (status.st_uid, status.st_gid)
    return FakeHostUtils(types, links=links, modes=modes, owners=owners)


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "top"
    (place / "dir").mkdir(parents=True)
    (place / "dir").chmod(0o3751)
    (place / "file").write_text("x")
    (place / "file").chmod(0o640)
    (place / "link").symlink_to("dir")
    (place / "chain").symlink_to("link")
    (place / "dangling").symlink_to("nowhere")
    (place / "loop").symlink_to("loop")
    os.mkfifo(place / "fifo")
    if os.geteuid() == 0:
        os.chown(place / "file", 12, 34)
        os.mknod(place / "char", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.mknod(place / "block", stat.S_IFBLK | 0o600, os.makedev(7, 4095))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place / "socket"))
        yield place


@pytest.fixture(params=["real", "fake"])
def utils(request: pytest.FixtureRequest, top: Path) -> HostUtils:
    make: dict[str, Callable[[], HostUtils]] = {
        "real": lambda: LinuxHostUtils(LinuxMounter()),
        "fake": lambda: fake_of(top),
    }
    return make[request.param]()


@pytest.mark.root
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dir", "Directory"),
        ("file", "File"),
        ("socket", "Socket"),
        ("char", "CharDevice"),
        ("block", "BlockDevice"),
        ("link", "Directory"),
        ("chain", "Directory"),
    ],
)
def test_types_with_links_followed_hostutil03(name: str, kind: str, utils: HostUtils, top: Path) -> None:
    assert utils.get_file_type(str(top / name)) == kind
    assert utils.path_exists(str(top / name))
    assert utils.path_is_device(str(top / name)) is (kind in {"CharDevice", "BlockDevice"})


@pytest.mark.parametrize("name", ["missing", "dangling"])
def test_what_does_not_exist_hostutil03_hostutil04(name: str, utils: HostUtils, top: Path) -> None:
    path = str(top / name)
    assert utils.path_exists(path) is False
    with pytest.raises(FileNotFoundError, match=f'path "{path}" does not exist'):
        utils.get_file_type(path)
    for question in (utils.path_is_device, utils.eval_host_symlinks, utils.get_owner, utils.get_mode):
        with pytest.raises(FileNotFoundError):
            question(path)


def test_other_types_are_not_recognised_hostutil03(utils: HostUtils, top: Path) -> None:
    with pytest.raises(UnrecognisedFileTypeError, match="only recognise file, directory, socket, block device"):
        utils.get_file_type(str(top / "fifo"))
    assert utils.path_exists(str(top / "fifo"))


def test_a_loop_of_links_is_an_error_and_not_missing_hostutil04(utils: HostUtils, top: Path) -> None:
    with pytest.raises(OSError, match="Too many levels"):
        utils.path_exists(str(top / "loop"))


def test_links_are_resolved_hostutil05(utils: HostUtils, top: Path) -> None:
    assert utils.eval_host_symlinks(str(top / "chain")) == str(top / "dir")
    assert utils.eval_host_symlinks(str(top / "file")) == str(top / "file")


@pytest.mark.root
def test_owner_and_mode_hostutil06(utils: HostUtils, top: Path) -> None:
    assert utils.get_owner(str(top / "file")) == (12, 34)
    assert utils.get_owner(str(top / "chain")) == (0, 0)
    assert utils.get_mode(str(top / "file")) == 0o640
    assert utils.get_mode(str(top / "chain")) == 0o3751


def test_making_directories_and_files_hostpath26(utils: HostUtils, top: Path) -> None:
    utils.make_dir(str(top / "new" / "below"))
    utils.make_dir(str(top / "new" / "below"))
    assert utils.get_file_type(str(top / "new" / "below")) == "Directory"
    assert utils.get_mode(str(top / "new")) == 0o755
    utils.make_file(str(top / "new" / "file"))
    utils.make_file(str(top / "new" / "file"))
    assert utils.get_file_type(str(top / "new" / "file")) == "File"
    assert utils.get_mode(str(top / "new" / "file")) == 0o644


def test_making_what_cannot_be_made(utils: HostUtils, top: Path) -> None:
    with pytest.raises(OSError, match="exists"):
        utils.make_dir(str(top / "file"))
    with pytest.raises(FileNotFoundError):
        utils.make_file(str(top / "no" / "file"))
    with pytest.raises(IsADirectoryError):
        utils.make_file(str(top / "dir"))
    assert not utils.path_exists(str(top / "no"))


def test_making_a_file_leaves_what_is_in_it(utils: HostUtils, top: Path) -> None:
    utils.make_file(str(top / "file"))
    assert (top / "file").read_text() == "x"


def test_what_is_no_device_is_not_opened_and_what_is_missing_is_an_error_hostutil01(
    utils: HostUtils, top: Path
) -> None:
    assert utils.device_opened(str(top / "file")) is False
    with pytest.raises((VolumeHostError, FileNotFoundError), match=f'"{top}/missing"'):
        utils.device_opened(str(top / "missing"))
