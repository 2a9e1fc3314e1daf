"""A file is replaced as a whole or not at all."""

import os

import pytest

from volumehost.mount.mounter import LinuxMounter
from volumehost.sdk import replace_file


def test_new_content_replaces_old_with_the_mode_asked_for(tmp_path):
    path = f"{tmp_path}/record.json"
    replace_file(path, b"old")
    replace_file(path, b"new", mode=0o644)
    assert (tmp_path / "record.json").read_bytes() == b"new"
    assert os.stat(path).st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["record.json"]


def test_a_link_is_replaced_not_followed(tmp_path):
    (tmp_path / "precious").write_bytes(b"data")
    (tmp_path / "record").symlink_to("precious")
    replace_file(f"{tmp_path}/record", b"new")
    assert (tmp_path / "precious").read_bytes() == b"data"
    assert not (tmp_path / "record").is_symlink()


def test_what_a_crash_left_is_taken_over(tmp_path):
    (tmp_path / ".record.new").write_bytes(b"half of a much longer rec")
    replace_file(f"{tmp_path}/record", b"whole")
    assert (tmp_path / "record").read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["record"]


def fill(descriptor):
    while True:
        os.write(descriptor, b"x" * 4096)


@pytest.mark.root
def test_a_full_disk_leaves_the_old_content_and_no_rubbish(tmp_path, request):
    """BR-56."""
    full = f"{tmp_path}/full"
    os.mkdir(full)
    LinuxMounter().mount("tmpfs", full, "tmpfs", ["size=64k"])
    request.addfinalizer(lambda: LinuxMounter().unmount(full))
    replace_file(f"{full}/record", b"old")
    with open(f"{full}/filler", "wb") as filler, pytest.raises(OSError, match="No space"):
        fill(filler.fileno())
    with pytest.raises(OSError, match="No space"):
        replace_file(f"{full}/record", b"n" * 8192)
    with open(f"{full}/record", "rb") as file:
        assert file.read() == b"old"
    assert sorted(os.listdir(full)) == ["filler", "record"]


def test_an_empty_directory_in_its_place_is_replaced_and_any_other_kept(tmp_path):
    (tmp_path / "record").mkdir()
    replace_file(f"{tmp_path}/record", b"new")
    assert (tmp_path / "record").read_bytes() == b"new"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "data").write_bytes(b"kept")
    with pytest.raises(OSError, match="not empty"):
        replace_file(f"{tmp_path}/other", b"new")
    assert (tmp_path / "other" / "data").read_bytes() == b"kept"
    assert sorted(os.listdir(tmp_path)) == ["other", "record"]
