"""The type table of HOSTPATH-22 against real files of every kind; BR-66."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost import MounterArgs
from volumehost.errors import MountError, SpecError, UnsafePathError

pytestmark = pytest.mark.root

KINDS = {
    "directory": "a directory",
    "file": "a file",
    "socket": "a socket file",
    "char": "a character device",
    "block": "a block device",
    "fifo": "a named pipe",
}
ACCEPTED = {
    "DirectoryOrCreate": "directory",
    "Directory": "directory",
    "FileOrCreate": "file",
    "File": "file",
    "Socket": "socket",
    "CharDevice": "char",
    "BlockDevice": "block",
}


def make(kind: str, path: str) -> None:
    if kind == "directory":
        os.mkdir(path)
    elif kind == "file":
        Path(path).write_text("content")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
    elif kind == "char":
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    elif kind == "block":
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(7, 0))
    else:
        os.mkfifo(path)


@pytest.fixture
def check(plugin, make_spec, pod):
    """Set the path up as a volume of the type."""

    def set_up(path: str, path_type: str) -> None:
        plugin.new_mounter(make_spec(path, path_type)).set_up(MounterArgs())

    return set_up


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path_type", ACCEPTED)
@pytest.mark.parametrize("through_link", [False, True])
def test_br66_each_type_against_each_kind(check, directory, kind, path_type, through_link):
    path = f"{directory}/thing"
    make(kind, path)
    if through_link:  # links are followed (HOSTPATH-24)
        os.symlink("thing", f"{directory}/link")
        path = f"{directory}/link"
    if ACCEPTED[path_type] == kind:
        check(path, path_type)
        check(path, path_type)
        return
    with pytest.raises(MountError) as caught:
        check(path, path_type)
    wanted = KINDS[ACCEPTED[path_type]]
    assert str(caught.value) == f"hostPath type check failed: {path} is not {wanted}: it is {KINDS[kind]}"
    assert os.path.exists(path)


@pytest.mark.parametrize("path_type", ["Directory", "File", "Socket", "CharDevice", "BlockDevice"])
def test_br66_missing_is_told_apart_from_wrong(check, directory, path_type):
    path = f"{directory}/missing"
    with pytest.raises(MountError) as caught:
        check(path, path_type)
    wanted = KINDS[ACCEPTED[path_type]]
    assert f"hostPath type check failed: {path} is not {wanted}: it does not exist" in str(caught.value)
    assert not os.path.lexists(path)


@pytest.mark.parametrize("path_type", ACCEPTED)
def test_br66_dangling_links_are_named_and_nothing_is_created_through_them(check, directory, path_type):
    path, target = f"{directory}/link", f"{directory}/target"
    os.symlink(target, path)
    with pytest.raises(MountError, match=f"it is a symbolic link to {target}, which does not exist"):
        check(path, path_type)
    assert not os.path.lexists(target)


def test_br66_a_deleted_socket_is_found_out_at_the_next_set_up(check, directory):
    path = f"{directory}/socket"
    make("socket", path)
    check(path, "Socket")
    os.unlink(path)
    with pytest.raises(MountError, match="it does not exist"):
        check(path, "Socket")


@pytest.mark.parametrize("kind", ["missing", *KINDS])
def test_br66_an_unset_type_checks_and_creates_nothing(check, directory, kind):
    path = f"{directory}/thing"
    if kind != "missing":
        make(kind, path)
    check(path, "")
    assert os.path.lexists(path) == (kind != "missing")


def test_directories_are_created_with_parents(check, directory):
    """HOSTPATH-22, -27: 0755 less the umask."""
    before = os.umask(0o022)
    try:
        check(f"{directory}/a/b/c", "DirectoryOrCreate")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(f"{directory}/a/b/c").st_mode) == 0o755


def test_files_are_created_empty_and_never_overwritten(check, directory):
    path = f"{directory}/file"
    check(path, "FileOrCreate")
    assert stat.S_ISREG(os.stat(path).st_mode)
    assert os.stat(path).st_size == 0
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    Path(path).write_text("content")
    check(path, "FileOrCreate")
    assert Path(path).read_text() == "content"


def test_the_directories_of_a_file_are_not_created(check, directory):
    with pytest.raises(MountError, match=r"its directory .*/missing does not exist.*DirectoryOrCreate"):
        check(f"{directory}/missing/file", "FileOrCreate")
    assert os.listdir(directory) in (["root", "base"], ["base", "root"])


@pytest.mark.parametrize("path_type", ["DirectoryOrCreate", "FileOrCreate", "Directory"])
def test_a_file_where_a_directory_should_lead_on(check, directory, path_type):
    make("file", f"{directory}/file")
    with pytest.raises(MountError, match="hostPath type check failed"):
        check(f"{directory}/file/below", path_type)
    assert Path(directory, "file").read_text() == "content"


@pytest.mark.parametrize("path_type", ACCEPTED)
def test_links_in_a_circle(check, directory, path_type):
    os.symlink("b", f"{directory}/a")
    os.symlink("a", f"{directory}/b")
    with pytest.raises(MountError, match=r"cannot be examined, .* Too many levels of symbolic links"):
        check(f"{directory}/a", path_type)


@pytest.mark.parametrize("path_type", ["directory", "Dir", "DirectoryOrCreate ", "BlockDevice\n"])
def test_invalid_types(check, directory, path_type):
    with pytest.raises(SpecError, match="is an invalid volume type"):
        check(directory, path_type)


@pytest.mark.parametrize("path_type", ["", *ACCEPTED])
@pytest.mark.parametrize("path", ["/a/../b", "/..", "..", "/a/..", "/a/b/../../etc"])
def test_backsteps_are_refused_for_every_type(check, path, path_type):
    """HOSTPATH-20."""
    with pytest.raises(UnsafePathError) as caught:
        check(path, path_type)
    assert str(caught.value) == f"invalid HostPath `{path}`: must not contain '..'"


@pytest.mark.parametrize("name", ["..a", "a..b", "a.."])
def test_dots_inside_of_names_are_fine(check, directory, name):
    check(f"{directory}/{name}", "DirectoryOrCreate")
    assert os.path.isdir(f"{directory}/{name}")


@pytest.mark.parametrize("path", ["", "relative", "./x"])
def test_relative_paths_are_refused(check, path):
    with pytest.raises(UnsafePathError, match="must be absolute"):
        check(path, "")


UNPRIVILEGED = """
import os, sys
from volumehost import MounterArgs
from volumehost.errors import MountError
from volumehost.api.objects import HostPathVolumeSource
from volumehost.mount.hostutil import LinuxHostUtils
from volumehost.mount.mounter import LinuxMounter
from volumehost_hostpath.volumes import HostPathMounter
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    HostPathMounter(HostPathVolumeSource(path=sys.argv[1], type=sys.argv[2]), False,
                    LinuxHostUtils(LinuxMounter())).set_up(MounterArgs())
except MountError as error:
    print(error)
"""


@pytest.mark.parametrize("path_type", ACCEPTED)
def test_br66_an_unreadable_parent_is_neither_missing_nor_a_reason_to_create(directory, path_type, tmp_path_factory):
    """HOSTPATH-25, improved: only "does not exist" leads to a creation."""
    os.mkdir(f"{directory}/closed", 0o700)
    make("directory", f"{directory}/closed/inside")
    for parent in (directory, *list(map(str, Path(directory).parents))[:-2]):
        os.chmod(parent, os.stat(parent).st_mode | 0o011)
    for name in ("inside", "missing"):
        path = f"{directory}/closed/{name}"
        command = [sys.executable, "-c", UNPRIVILEGED, path, path_type]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        wanted = KINDS[ACCEPTED[path_type]]
        assert result.stdout.strip() == (
            f"hostPath type check failed: {path} cannot be examined, so it is not known to be {wanted}: "
            "Permission denied"
        )
    assert os.listdir(f"{directory}/closed") == ["inside"]


def test_a_creation_that_is_refused_tells_why(check, directory):
    from volumehost.mount.mounter import LinuxMounter

    os.mkdir(f"{directory}/mnt")
    LinuxMounter().mount("tmpfs", f"{directory}/mnt", "tmpfs", ["size=1M", "ro"])
    try:
        for path_type in ("DirectoryOrCreate", "FileOrCreate"):
            with pytest.raises(MountError, match=r"cannot be created as .*: Read-only file system"):
                check(f"{directory}/mnt/new", path_type)
    finally:
        LinuxMounter().unmount(f"{directory}/mnt")


@pytest.mark.parametrize("error", [TimeoutError("stat did not end within 5 s"), OSError(5, "Input/output error")])
def test_a_path_that_does_not_answer_is_not_asked_again(directory, make_spec, error):
    """A directory on a dead server: the host gives up after its deadline, and so does the check."""
    from volumehost.mount.hostutil import LinuxHostUtils
    from volumehost.mount.mounter import LinuxMounter
    from volumehost_hostpath.volumes import HostPathMounter

    class Dead(LinuxHostUtils):
        def get_file_type(self, path):
            raise error

    source = make_spec(directory, "DirectoryOrCreate").volume.host_path
    with pytest.raises(MountError, match="cannot be examined") as caught:
        HostPathMounter(source, False, Dead(LinuxMounter())).set_up(MounterArgs())
    assert (error.strerror or str(error)) in str(caught.value)
