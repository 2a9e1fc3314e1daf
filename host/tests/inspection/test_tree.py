"""Reading a tree: no link followed, no mount entered, nothing opened that might answer back; on old kernels too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost.inspection.mounts import MountIndex
from volumehost.inspection.tree import MOST_BYTES, Entry, EntryKind, Tree, open_step_by_step
from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table

pytestmark = pytest.mark.root

OLD_KERNEL = Path(__file__).parents[1] / "mount" / "old_kernel.py"


@pytest.fixture
def root(area):
    """A directory with one of everything."""
    base = area / "root"
    (base / "pods" / "u").mkdir(parents=True)
    (base / "pods" / "u" / "file").write_text("content")
    (base / "pods" / "u" / "link").symlink_to("/etc")
    os.mkfifo(base / "pods" / "u" / "fifo")
    os.mknod(base / "pods" / "u" / "null", 0o20600, os.makedev(1, 3))
    (base / "pods" / "u" / "mounted").mkdir()
    syscalls.mount("x", str(base / "pods" / "u" / "mounted"), "tmpfs", 0, "")
    (base / "pods" / "u" / "mounted" / "inside").mkdir()
    return str(base)


SEEN = {
    "pods": EntryKind.DIRECTORY,
    "pods/u": EntryKind.DIRECTORY,
    "pods/u/file": EntryKind.FILE,
    "pods/u/link": EntryKind.LINK,
    "pods/u/link/passwd": EntryKind.LINK,
    "pods/u/fifo": EntryKind.FIFO,
    "pods/u/null": EntryKind.CHARACTER_DEVICE,
    "pods/u/mounted": EntryKind.MOUNT,
    "pods/u/mounted/inside": EntryKind.MOUNT,
    "pods/u/absent": EntryKind.MISSING,
    "pods/u/file/x": EntryKind.MISSING,
    "absent/x": EntryKind.MISSING,
    "": EntryKind.DIRECTORY,
}


def test_what_is_there_is_told_and_no_more(root):
    with Tree(root) as tree:
        assert {path: tree.look(path).kind for path in SEEN} == SEEN
        assert tree.names("pods/u") == ["fifo", "file", "link", "mounted", "null"]
        assert tree.names("pods/u", limit=1)[0] in {"fifo", "file", "link", "mounted", "null"}
        assert tree.names("pods/u/link") == tree.names("pods/u/mounted") == tree.names("pods/u/file") == []
        assert tree.read("pods/u/file") == b"content"
        assert tree.problems == []
        for path in ("pods/u/fifo", "pods/u/null", "pods/u", "pods/u/link"):
            with pytest.raises(OSError):
                tree.read(path)
        with pytest.raises(FileNotFoundError):
            tree.read("pods/u/absent")


def test_a_kernel_without_openat2_shows_the_same(root):
    """Before 5.6; what is missing there is simulated by a filter of system calls."""
    program = (
        "import sys; from volumehost.inspection.tree import Tree\n"
        "with Tree(sys.argv[1]) as tree:\n"
        "    print([tree.look(path).kind.value for path in sys.argv[2:]], tree.names('pods/u'), tree.problems)\n"
    )
    command = [sys.executable, OLD_KERNEL, sys.executable, "-c", program, root, *SEEN]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    names = ["fifo", "file", "link", "mounted", "null"]
    seen = {**SEEN, "pods/u/link/passwd": EntryKind.MISSING}  # a link in the place of a directory is no directory
    assert done.stdout.strip() == f"{[kind.value for kind in seen.values()]} {names} []"


def test_step_by_step_a_directory_can_be_read(root):
    base = os.open(root, os.O_RDONLY)
    opened = open_step_by_step(base, "pods/u", os.O_RDONLY | os.O_DIRECTORY)
    assert "file" in os.listdir(opened)
    for descriptor in (opened, base):
        os.close(descriptor)


def test_what_cannot_be_looked_at_is_a_problem_and_not_an_absence(root):
    """As a user who may not read the pods."""
    os.chmod(f"{root}/pods/u", 0o700)
    way = f"/proc/self/fd/{os.open(root, os.O_PATH)}/."  # the directories above are not theirs either
    pid = os.fork()
    if not pid:
        code = 2
        try:
            os.setresuid(65534, 65534, 65534)
            with Tree(way) as tree:
                fine = tree.names("pods/u") == [] and tree.look("pods/u/file") == Entry(EntryKind.UNREADABLE)
                code = 0 if fine and tree.problems[0] == (f"{way}/pods/u", "Permission denied") else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_file_that_is_too_long_is_not_read(root):
    with open(f"{root}/pods/u/long", "wb") as file:
        file.truncate(MOST_BYTES + 1)
    with Tree(root) as tree, pytest.raises(OSError, match="more than"):
        tree.read("pods/u/long")


# --- the mount table ------------------------------------------------------------------------------------------------


def test_mounts_at_and_below_a_place(root):
    index = MountIndex(root, read_mount_table())
    assert index.paths() == [f"{root}/pods/u/mounted"]
    assert [mount.source for mount in index.below(f"{root}/pods")] == ["x"]
    assert index.below(f"{root}/pods/u/mount") == []
    assert not index.is_hidden(index.at(f"{root}/pods/u/mounted")[0])


def test_stacked_and_hidden_mounts_are_put_in_order(root):
    place = f"{root}/pods/u/mounted"
    syscalls.mount("inner", f"{place}/inside", "tmpfs", 0, "")
    for source in ("second", "third"):
        syscalls.mount(source, place, "tmpfs", 0, "")
    index = MountIndex(root, reversed(read_mount_table()))
    assert [mount.source for mount in index.at(place)] == ["x", "second", "third"]
    assert [index.is_hidden(mount) for mount in index.at(place)] == [True, True, False]
    assert index.is_hidden(index.at(f"{place}/inside")[0])


def test_who_shows_the_same_is_found(root, area):
    (area / "other").mkdir()
    syscalls.mount(f"{root}/pods/u/mounted", str(area / "other"), "", syscalls.MS_BIND, "")
    index = MountIndex(root, read_mount_table())
    (mount,) = index.at(f"{root}/pods/u/mounted")
    assert [other.path for other in index.showing_the_same(mount)] == [str(area / "other")]
    assert len(index.showing_device(mount.major, mount.minor)) == 2
