"""What every MountInterface does: the same tests for the real mounter and the fake one (MOUNT-80 to -82)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from volumehost.errors import MountError
from volumehost.host_services import MountInterface
from volumehost.mount.cleanup import cleanup_mount_point
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.places import Places
from volumehost.testing.fake_mounter import FakeMounter

pytestmark = pytest.mark.root


@pytest.fixture(params=["real", "real, where the kernel knows network filesystems", "fake"])
def any_mounter(request: pytest.FixtureRequest, tmp_path: Path) -> MountInterface:
    known = tmp_path / "filesystems"
    known.write_text("nodev\tnfs4\n")
    make: dict[str, Callable[[], MountInterface]] = {
        "real": LinuxMounter,
        "fake": FakeMounter,
    }
    cautious = lambda: LinuxMounter(places=Places(known_filesystems=str(known)))  # noqa: E731
    return make.get(request.param, cautious)()


@pytest.fixture
def source(area: Path) -> Path:
    place = area / "source"
    place.mkdir()
    return place


@pytest.fixture
def target(area: Path) -> Path:
    place = area / "target"
    place.mkdir()
    return place


def paths(mounter: MountInterface, area: Path) -> list[str]:
    return [entry.path for entry in mounter.list_mounts() if entry.path.startswith(str(area))]


def test_a_bind_mount_is_there_until_it_is_unmounted(
    any_mounter: MountInterface, area: Path, source: Path, target: Path
) -> None:
    assert not any_mounter.is_mount_point(str(target))
    any_mounter.mount(str(source), str(target), "", ["bind"])
    assert any_mounter.is_mount_point(str(target))
    assert not any_mounter.is_likely_not_mount_point(str(target))
    assert paths(any_mounter, area) == [str(target)]
    any_mounter.unmount(str(target))
    assert not any_mounter.is_mount_point(str(target))
    assert paths(any_mounter, area) == []


def test_a_filesystem_is_listed_with_its_type_and_options(
    any_mounter: MountInterface, area: Path, target: Path
) -> None:
    any_mounter.mount("none", str(target), "tmpfs", ["ro", "noexec"])
    entry = next(entry for entry in any_mounter.list_mounts() if entry.path == str(target))
    assert entry.fs_type == "tmpfs"
    assert {"ro", "noexec"} <= set(entry.options)


def test_unmounting_what_is_not_mounted_succeeds_mount13(any_mounter: MountInterface, target: Path) -> None:
    any_mounter.unmount(str(target))
    any_mounter.unmount(str(target / "missing"))


def test_unmount_with_force_unmounts(any_mounter: MountInterface, target: Path) -> None:
    any_mounter.mount("none", str(target), "tmpfs")
    any_mounter.unmount_with_force(str(target), timeout=10)
    assert not any_mounter.is_mount_point(str(target))


def test_a_missing_target_or_source_is_an_error(any_mounter: MountInterface, source: Path, target: Path) -> None:
    with pytest.raises(MountError):
        any_mounter.mount(str(source), str(target / "missing"), "", ["bind"])
    with pytest.raises(MountError):
        any_mounter.mount(str(source / "missing"), str(target), "", ["bind"])
    assert not any_mounter.is_mount_point(str(target))


def test_a_missing_path_is_not_found(any_mounter: MountInterface, target: Path) -> None:
    with pytest.raises(FileNotFoundError):
        any_mounter.is_mount_point(str(target / "missing"))
    with pytest.raises(FileNotFoundError):
        any_mounter.is_likely_not_mount_point(str(target / "missing"))
    assert any_mounter.get_mount_refs(str(target / "missing")) == []


def test_links_on_the_way_and_at_the_end_are_followed_br69(
    any_mounter: MountInterface, area: Path, target: Path
) -> None:
    link = area / "link"
    link.symlink_to(target)
    any_mounter.mount("none", str(link), "tmpfs")
    assert any_mounter.is_mount_point(str(target))
    assert any_mounter.is_mount_point(str(link))
    assert paths(any_mounter, area) == [str(target)]
    (area / "way").symlink_to(area)
    any_mounter.unmount(str(area / "way" / "target"))
    assert paths(any_mounter, area) == []


def test_references_of_a_directory_and_of_a_mount_mount35(
    any_mounter: MountInterface, area: Path, source: Path, target: Path
) -> None:
    other = area / "other"
    other.mkdir()
    any_mounter.mount(str(source), str(target), "", ["bind"])
    any_mounter.mount(str(target), str(other), "", ["bind"])
    assert sorted(any_mounter.get_mount_refs(str(source))) == [str(other), str(target)]
    assert any_mounter.get_mount_refs(str(target)) == [str(other)]


def test_two_filesystems_with_one_source_name_are_not_references_mount36(
    any_mounter: MountInterface, source: Path, target: Path
) -> None:
    any_mounter.mount("none", str(source), "tmpfs")
    any_mounter.mount("none", str(target), "tmpfs")
    assert any_mounter.get_mount_refs(str(source)) == []


def test_a_remount_changes_options_and_adds_no_mount(any_mounter: MountInterface, area: Path, target: Path) -> None:
    any_mounter.mount("none", str(target), "tmpfs", ["rw"])
    any_mounter.mount("", str(target), "", ["remount", "bind", "ro"])
    assert paths(any_mounter, area) == [str(target)]
    assert "ro" in next(entry for entry in any_mounter.list_mounts() if entry.path == str(target)).options


def test_the_list_is_the_callers_own_mount82(any_mounter: MountInterface, area: Path, target: Path) -> None:
    any_mounter.mount("none", str(target), "tmpfs")
    any_mounter.list_mounts().clear()
    assert paths(any_mounter, area) == [str(target)]


def test_no_sensitive_option_is_listed_or_in_an_error(
    any_mounter: MountInterface, area: Path, source: Path, target: Path
) -> None:
    any_mounter.mount(str(source), str(target), "", ["bind"], sensitive_options=["password=hunter2"])
    assert "hunter2" not in repr(any_mounter.list_mounts())
    with pytest.raises(MountError) as caught:
        any_mounter.mount("none", str(area / "missing"), "tmpfs", sensitive_options=["password=hunter2"])
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)


def test_cleanup_removes_a_mount_point_with_either(any_mounter: MountInterface, target: Path) -> None:
    any_mounter.mount("none", str(target), "tmpfs")
    cleanup_mount_point(str(target), any_mounter, extensive=True)
    assert not target.exists()


def test_cleanup_removes_a_plain_directory_with_either(any_mounter: MountInterface, target: Path) -> None:
    cleanup_mount_point(str(target), any_mounter)
    assert not target.exists()
