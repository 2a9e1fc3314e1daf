"""Preparing the root directory (LAYOUT-06, BR-69), and every reason why it cannot be used."""

import contextlib
import errno
import os
import stat

import pytest

from volumehost.errors import RootDirectoryError
from volumehost.hosts.root_dir import prepare_root_dir, resolve_root_dir
from volumehost.mount import syscalls

CHILDREN = ["plugins", "plugins_registry", "pod-resources", "pods"]


def _mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_layout06_everything_is_created_0750(tmp_path):
    old = os.umask(0o022)
    try:
        root = prepare_root_dir(str(tmp_path / "a" / "root"))
    finally:
        os.umask(old)
    assert sorted(os.listdir(root)) == CHILDREN
    assert _mode(root) == 0o750
    assert {_mode(f"{root}/{name}") for name in CHILDREN} == {0o750}


def test_existing_directories_keep_their_mode_and_content(tmp_path):
    root = tmp_path / "root"
    (root / "pods" / "u").mkdir(parents=True)
    root.chmod(0o755)
    prepare_root_dir(str(root))
    assert _mode(root) == 0o755
    assert (root / "pods" / "u").is_dir()


def test_a_path_with_spaces_and_other_letters_works(tmp_path):
    root = prepare_root_dir(str(tmp_path / "my volumes é \n x"))
    assert os.path.isdir(f"{root}/pods")


def test_br69_a_symlinked_root_is_resolved_once(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    assert prepare_root_dir(str(tmp_path / "link")) == os.path.realpath(tmp_path / "disk")
    (tmp_path / "up").symlink_to(tmp_path)
    assert prepare_root_dir(str(tmp_path / "up" / "new")) == os.path.realpath(tmp_path / "new")


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/a/b/", "/a/b"), ("/a//b", "/a/b"), ("/a/../b", "/b"), ("//a", "/a"), ("a/b", "/a/b"), ("", "an absolute")],
)
def test_layout06_a_path_that_is_not_canonical_is_refused(path, expected):
    with pytest.raises(RootDirectoryError) as caught:
        resolve_root_dir(path)
    assert "rootDirectory not in canonical form" in str(caught.value)
    assert expected in str(caught.value)


def test_the_root_of_the_filesystem_is_refused(tmp_path):
    with pytest.raises(RootDirectoryError, match="root of the filesystem"):
        resolve_root_dir("/")
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(RootDirectoryError, match="root of the filesystem"):
        resolve_root_dir(str(tmp_path / "link"))


def test_a_file_in_its_place_is_refused_and_stays(tmp_path):
    (tmp_path / "root").write_text("mine")
    with pytest.raises(RootDirectoryError, match="not a directory") as caught:
        prepare_root_dir(str(tmp_path / "root"))
    assert caught.value.subject == str(tmp_path / "root")
    assert (tmp_path / "root").read_text() == "mine"


def test_a_file_above_it_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RootDirectoryError, match="not a directory"):
        prepare_root_dir(str(tmp_path / "file" / "root"))


def test_a_link_in_the_place_of_the_pods_directory_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "pods").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RootDirectoryError, match="not a directory"):
        prepare_root_dir(str(tmp_path / "root"))


def test_a_loop_of_links_and_a_too_long_path_are_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(RootDirectoryError):
        prepare_root_dir(str(tmp_path / "a" / "root"))
    with pytest.raises(RootDirectoryError, match="too long"):
        prepare_root_dir(str(tmp_path / ("x" * 300)))


def _fill(path):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    written = 1
    with contextlib.suppress(OSError):  # until it is full
        while written:
            written = os.write(descriptor, b"x" * 4096)
    os.close(descriptor)


@pytest.fixture
def small_filesystem(tmp_path):
    """A tmpfs of 64 KiB; unmounted at the end."""
    target = tmp_path / "fs"
    target.mkdir()
    syscalls.mount("t", str(target), "tmpfs", 0, "size=65536,nr_inodes=64")
    yield target
    syscalls.umount2(str(target), syscalls.MNT_DETACH)


@pytest.mark.root
def test_a_read_only_filesystem_is_refused_with_the_reason(small_filesystem):
    prepare_root_dir(str(small_filesystem / "root"))
    syscalls.mount("", str(small_filesystem), "", syscalls.MS_REMOUNT | syscalls.MS_RDONLY, "")
    for name in ("root", "other"):
        with pytest.raises(RootDirectoryError, match="read-only") as caught:
            prepare_root_dir(str(small_filesystem / name))
        assert caught.value.hint


@pytest.mark.root
def test_a_full_filesystem_is_refused_before_anything_is_begun(small_filesystem):
    prepare_root_dir(str(small_filesystem / "root"))
    _fill(str(small_filesystem / "filler"))
    with pytest.raises(RootDirectoryError, match="full") as caught:
        prepare_root_dir(str(small_filesystem / "root"))
    assert "free some space" in str(caught.value)
    assert sorted(os.listdir(small_filesystem / "root")) == CHILDREN


@pytest.mark.parametrize("nameless", [True, False])
def test_nothing_of_the_proof_is_ever_seen(tmp_path, monkeypatch, nameless):
    """A kill at any instant must leave nothing that nobody knows any more."""
    seen = []
    write, open_file = os.write, os.open

    def refuse(path, flags, *arguments, **options):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), path)
        return open_file(path, flags, *arguments, **options)

    def written(descriptor, data):
        seen.append(set(os.listdir(tmp_path / "root")))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", written)
    if not nameless:
        monkeypatch.setattr(os, "open", refuse)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / ".write-probe").touch()
    prepare_root_dir(str(tmp_path / "root"))
    assert len(seen) == 1
    assert (".write-probe" in seen[0]) is nameless  # of another time: only who needs the name takes it over
