"""LinuxHostUtils on real devices, mounts and SELinux tables (HOSTUTIL-01, -08 to -11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from volumehost.errors import MountError, VolumeHostError
from volumehost.host_services import MountPoint
from volumehost.mount.format import SafeFormatAndMount
from volumehost.mount.hostutil import LinuxHostUtils
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.selinux import SELinux
from volumehost.testing.fake_hostutil import FakeHostUtils
from volumehost.testing.fake_mounter import FakeMounter, mount_point


@pytest.mark.root
def test_a_mounted_device_is_opened_hostutil01(device: str, area: Path, mounter: LinuxMounter) -> None:
    utils = LinuxHostUtils(mounter)
    assert utils.device_opened(device) is False
    SafeFormatAndMount(mounter).format_and_mount(device, str(area))
    assert utils.device_opened(device) is True
    mounter.unmount(str(area))
    assert utils.device_opened(device) is False


@pytest.mark.root
def test_a_missing_device_is_named_hostutil01(area: Path, mounter: LinuxMounter) -> None:
    with pytest.raises(VolumeHostError, match=f'PathIsDevice failed for path "{area}/none": No such file'):
        LinuxHostUtils(mounter).device_opened(str(area / "none"))


@pytest.mark.root
def test_make_rshared_binds_and_shares_once_hostutil09(tmpfs: Path, mounter: LinuxMounter) -> None:
    place = tmpfs / "kubelet"
    place.mkdir()
    utils = LinuxHostUtils(mounter)
    utils.make_rshared(str(place))
    utils.make_rshared(str(place))
    entries = [entry for entry in mounter.list_mounts() if entry.path == str(place)]
    assert [entry.shared for entry in entries] == [True]


@pytest.mark.root
def test_make_rshared_through_a_link_shares_the_real_place_br69(tmpfs: Path, mounter: LinuxMounter) -> None:
    (tmpfs / "real").mkdir()
    (tmpfs / "link").symlink_to("real")
    LinuxHostUtils(mounter).make_rshared(str(tmpfs / "link"))
    assert any(entry.path == str(tmpfs / "real") and entry.shared for entry in mounter.list_mounts())


@pytest.mark.root
def test_make_rshared_takes_along_what_is_mounted_below(tmpfs: Path, mounter: LinuxMounter) -> None:
    """Volumes that were mounted before the root directory was shared: seen, shared, and once, so that they can go."""
    root = tmpfs / "root dir"
    places = [root / "a", root / "a" / "inner", root / "b", root / "c"]
    (root / "b").mkdir(parents=True)
    (root / "c").mkdir()
    (root / "a").mkdir()
    mounter.mount("a", str(places[0]), "tmpfs")
    (places[0] / "inner").mkdir()
    mounter.mount("inner", str(places[1]), "tmpfs")
    mounter.mount(str(places[1]), str(places[2]), options=["bind"])
    for _ in range(2):
        mounter.mount("stacked", str(places[3]), "tmpfs")
    (places[1] / "file").write_text("content")
    held = (places[1] / "file").open()  # in use all the time
    beside = [entry for entry in mounter.list_mounts() if not entry.path.startswith(f"{root}/")]
    LinuxHostUtils(mounter).make_rshared(str(root))
    assert (places[1] / "file").read_text() == (places[2] / "file").read_text() == held.read() == "content"
    held.close()
    below = [entry for entry in mounter.list_mounts() if entry.path.startswith(f"{root}/")]
    assert [entry.path for entry in below if not entry.shared] == []
    assert sorted(entry.path for entry in below) == sorted(map(str, [*places, places[3]]))
    for place in (places[1], places[0], places[2], places[3], places[3]):
        mounter.unmount(str(place))
    for place in (places[0], places[2], places[3]):
        place.rmdir()  # a mount that is hidden there would keep it
    mounter.unmount(str(root))
    assert [entry for entry in mounter.list_mounts() if not entry.path.startswith(f"{root}/")] == beside


def shares(path: str) -> MountPoint:
    import dataclasses

    return dataclasses.replace(mount_point("/dev/sda", path), optional_fields=("shared:1",))


def test_a_place_on_a_shared_mount_is_left_alone_hostutil08(tmp_path: Path) -> None:
    mounter = FakeMounter([shares("/")])
    LinuxHostUtils(mounter).make_rshared(str(tmp_path))
    assert mounter.log == []


def test_a_failed_bind_of_make_rshared_says_so_hostutil09(tmp_path: Path) -> None:
    mounter = FakeMounter([mount_point("/dev/sda", "/")])
    mounter.fail_mount(str(tmp_path), MountError("no"))
    with pytest.raises(MountError, match=f"failed to bind-mount {tmp_path}: no"):
        LinuxHostUtils(mounter).make_rshared(str(tmp_path))


def test_a_bind_that_cannot_be_shared_is_undone_hostutil09(tmp_path: Path) -> None:
    class NoSharing(FakeMounter):
        def mount(self, source, target, fs_type="", options=(), **arguments):
            if "rshared" in options:
                raise MountError("not shared")
            super().mount(source, target, fs_type, options, **arguments)

    mounter = NoSharing([mount_point("/dev/sda", "/")])
    with pytest.raises(MountError, match=f"failed to make {tmp_path} rshared: not shared"):
        LinuxHostUtils(mounter).make_rshared(str(tmp_path))
    assert [entry.path for entry in mounter.list_mounts()] == ["/"]


def with_super_options(path: str, *options: str, mount_id: int) -> MountPoint:
    import dataclasses

    return dataclasses.replace(mount_point("/dev/sda", path, mount_id=mount_id), super_options=options)


@pytest.fixture
def labelled(tmp_path: Path) -> FakeMounter:
    return FakeMounter(
        [
            with_super_options("/", "rw", mount_id=1),
            with_super_options(str(tmp_path), "rw", "seclabel", 'context="u:r:t:s0:c1,c2"', mount_id=2),
        ]
    )


def test_selinux_off_reads_no_table_hostutil10(tmp_path: Path) -> None:
    class Unreadable(FakeMounter):
        def list_mounts(self) -> list[MountPoint]:
            raise MountError("not to be read")

    utils = LinuxHostUtils(Unreadable(), selinux=SELinux(str(tmp_path / "missing")))
    assert utils.get_selinux_support(str(tmp_path)) is False
    assert utils.get_selinux_mount_context(str(tmp_path)) == ""
    empty = tmp_path / "empty"
    empty.mkdir()
    assert LinuxHostUtils(Unreadable(), selinux=SELinux(str(empty))).get_selinux_support(str(tmp_path)) is False


def test_selinux_of_the_containing_mount_hostutil10_hostutil11(tmp_path: Path, labelled: FakeMounter) -> None:
    selinux = tmp_path / "selinux"
    selinux.mkdir()
    (selinux / "enforce").touch()
    utils = LinuxHostUtils(labelled, selinux=SELinux(str(selinux)))
    assert utils.get_selinux_support(str(selinux)) is True
    assert utils.get_selinux_mount_context(str(selinux)) == "u:r:t:s0:c1,c2"
    assert utils.get_selinux_support("/") is False
    assert utils.get_selinux_mount_context("/") == ""


def test_the_fake_knows_what_it_is_told_hostutil12() -> None:
    fake = FakeHostUtils(
        {"/": "Directory", "/dev/sda": "BlockDevice", "/v": "Directory"},
        opened_devices=frozenset({"/dev/sda"}),
        selinux={"/v": "u:r:t:s0"},
    )
    assert fake.device_opened("/dev/sda") is True
    assert fake.get_selinux_support("/v/x") is True
    assert fake.get_selinux_mount_context("/v/x") == "u:r:t:s0"
    assert fake.get_selinux_support("/volumes") is False
    fake.make_rshared("/v")
    fake.make_rshared("/v")
    assert fake.shared == ["/v"]
    with pytest.raises(FileNotFoundError):
        fake.get_file_type("/unknown")
