"""Loop devices by their ioctls (BLOCK-07)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.errors import MountError
from volumehost.mount import loop
from volumehost.mount.format import SafeFormatAndMount, device_size
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.resize import is_read_only

pytestmark = pytest.mark.root


@pytest.fixture(autouse=True)
def _needs_loop_devices() -> None:
    if not os.path.exists("/dev/loop-control"):
        pytest.skip("needs loop devices")


def test_a_file_becomes_a_device_and_is_found_and_let_go(image) -> None:
    path = image(8 << 20)
    device = loop.attach(path)
    assert device_size(device) == 8 << 20
    with open(device, "r+b") as file:
        file.write(b"through the device")
        os.fsync(file.fileno())
    with open(path, "rb") as file:
        assert file.read(18) == b"through the device"
    assert loop.find(path) == [device]
    assert loop.get_loop_device(path) == device
    described = next(item for item in loop.list_attached() if item.device == device)
    assert (described.backing_file, described.offset, described.read_only) == (path, 0, False)
    assert described.file_inode == os.stat(path).st_ino
    assert loop.detach(device) is True
    assert loop.find(path) == []
    assert loop.detach(device) is True, "once more changes nothing"


def test_losetup_agrees(image) -> None:
    path = image()
    device = loop.attach(path)
    shown = subprocess.run(["losetup", "-j", path], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(f"{device}:")


def test_nothing_attached_is_device_not_found_block07(image) -> None:
    path = image()
    assert loop.find(path) == []
    with pytest.raises(MountError, match="device not found"):
        loop.get_loop_device(path)


def test_options_of_a_device(image) -> None:
    path = image(8 << 20)
    device = loop.attach(path, read_only=True, offset=4096, size_limit=1 << 20, block_size=4096)
    assert device_size(device) == 1 << 20
    described = next(item for item in loop.list_attached() if item.device == device)
    assert (described.offset, described.read_only) == (4096, True)
    assert is_read_only(device)


def test_a_file_is_found_under_another_name_and_after_its_removal(image, tmp_path: Path) -> None:
    path = image()
    device = loop.attach(path)
    os.rename(path, tmp_path / "renamed")
    (tmp_path / "link").symlink_to("renamed")
    assert loop.find(str(tmp_path / "renamed")) == [device]
    assert loop.find(str(tmp_path / "link")) == [device]
    os.unlink(tmp_path / "renamed")
    assert loop.find(str(tmp_path / "renamed")) == [device], "the kernel marks it deleted (BLOCK-07)"
    loop.detach(device)


def test_another_file_in_the_place_of_a_removed_one_is_not_taken_for_it(image) -> None:
    path = image()
    device = loop.attach(path)
    os.unlink(path)
    image()
    assert loop.find(path) == []
    loop.detach(device)


def test_names_longer_than_the_kernels_field(image, tmp_path: Path) -> None:
    path = image(name="x" * 200)
    device = loop.attach(path)
    assert loop.find(path) == [device]


@pytest.mark.parametrize(("name", "reason"), [("missing", "No such file"), ("directory", "Is a directory")])
def test_what_cannot_be_attached_leaks_nothing(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    before = loop.list_attached()
    descriptors = set(os.listdir("/proc/self/fd"))
    with pytest.raises(MountError, match=reason) as caught:
        loop.attach(str(tmp_path / name))
    assert caught.value.subject == str(tmp_path / name)
    assert {item.backing_file for item in loop.list_attached()} <= {item.backing_file for item in before} | {
        item.backing_file for item in loop.list_attached() if not item.backing_file.startswith(str(tmp_path))
    }
    assert set(os.listdir("/proc/self/fd")) <= descriptors


def test_a_refused_setting_leaks_nothing(image) -> None:
    path = image()
    with pytest.raises(MountError, match="Invalid argument"):
        loop.attach(path, block_size=7)
    assert loop.find(path) == []


def test_the_two_steps_of_old_kernels(image, until: Callable) -> None:
    path = image(8 << 20)
    # A device that attach() chose, used again by the other way.
    device = loop.attach(path)
    loop.detach(device)
    file_fd, device_fd = os.open(path, os.O_RDWR), os.open(device, os.O_RDWR)
    try:
        info = loop.pack_info(path, 0, 4096, 0)
        try:
            loop.configure_in_two_steps(device_fd, file_fd, info)
        except OSError as error:
            pytest.skip(f"another process took the device: {error}")
        assert loop.find(path) == [device]
        assert device_size(device) == (8 << 20) - 4096
        os.close(device_fd)
        loop.detach(device)
        device_fd = os.open(device, os.O_RDWR)
        impossible = loop.pack_info(path, 0, (1 << 64) - 512, 0)
        with pytest.raises(OSError, match="Errno"):
            loop.configure_in_two_steps(device_fd, file_fd, impossible)
    finally:
        os.close(file_fd)
        os.close(device_fd)
    # Whoever looks at the device at this moment makes the kernel wait for them.
    until(lambda: loop.find(path) == [], what="the undoing of the first step")


def test_many_at_once_each_get_their_own(image) -> None:
    paths = [image(1 << 20, f"disk{number}") for number in range(8)]
    devices: dict[str, str] = {}

    def work(path: str) -> None:
        devices[path] = loop.attach(path)

    threads = [threading.Thread(target=work, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(devices.values())) == 8
    assert all(loop.find(path) == [devices[path]] for path in paths)


def test_a_device_in_use_is_let_go_when_its_last_user_is_done(
    image, area: Path, mounter: LinuxMounter, until: Callable
) -> None:
    path = image()
    device = loop.attach(path)
    SafeFormatAndMount(mounter).format_and_mount(device, str(area))
    assert loop.detach(device, timeout=0) is False
    assert loop.find(path) == [device]
    (area / "file").write_text("still works")
    mounter.unmount(str(area))
    until(lambda: loop.find(path) == [], what="the end of the loop device")


def test_autoclear_lets_go_by_itself(image, until: Callable) -> None:
    path = image()
    device = loop.attach(path, autoclear=True)
    with open(device, "rb"):
        pass
    until(lambda: loop.find(path) == [], what="the end of the loop device")


def test_a_file_that_grows_makes_the_device_grow(image) -> None:
    path = image(1 << 20)
    device = loop.attach(path)
    os.truncate(path, 2 << 20)
    assert device_size(device) == 1 << 20
    loop.refresh_capacity(device)
    assert device_size(device) == 2 << 20


def test_detaching_or_growing_what_is_no_loop_device(tmp_path: Path) -> None:
    assert loop.detach(str(tmp_path / "missing")) is True
    (tmp_path / "file").touch()
    with pytest.raises(MountError, match="detach"):
        loop.detach(str(tmp_path / "file"))
    with pytest.raises(MountError, match="update the size"):
        loop.refresh_capacity(str(tmp_path / "file"))


def test_a_killed_process_leaves_a_device_that_can_be_found(image) -> None:
    path = image()
    program = "import sys, os; from volumehost.mount import loop; loop.attach(sys.argv[1]); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", program, path], check=False, timeout=60).returncode == -9
    (device,) = loop.find(path)
    assert loop.detach(device) is True


def test_a_label_tells_the_owner_which_devices_are_its_own(image) -> None:
    mine, other = loop.attach(image(), label="acme:7"), loop.attach(image(name="other.img"))
    labels = {item.device: item.label for item in loop.list_attached()}
    assert labels[mine] == "acme:7"
    assert labels[other] != "acme:7"
    assert loop.label_of(mine) == "acme:7"
    loop.detach(mine)
    assert loop.label_of(mine) == ""


def test_whether_a_device_is_attached_to_a_file_is_decided_by_the_file_itself(image, tmp_path) -> None:
    path, other = image(), image(name="other.img")
    device = loop.attach(path)
    os.link(path, tmp_path / "another name")
    assert loop.is_attached_to(device, str(tmp_path / "another name"))
    assert not loop.is_attached_to(device, other)
    loop.detach(device)
    assert not loop.is_attached_to(device, path)


def test_direct_io_can_be_switched_while_attached(image) -> None:
    device = loop.attach(image())
    state = f"/sys/block/{os.path.basename(device)}/loop/dio"
    for on, shown in ((True, "1\n"), (False, "0\n")):
        loop.set_direct_io(device, on)
        assert Path(state).read_text(encoding="ascii") == shown
    loop.detach(device)
    with pytest.raises(MountError, match="switch direct I/O"):
        loop.set_direct_io(device, True)
