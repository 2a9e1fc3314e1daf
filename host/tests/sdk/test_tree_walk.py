"""The walk itself: order, depth beyond the number of descriptors, links, and directories that move meanwhile."""

from __future__ import annotations

import os
import resource
import stat

import pytest

from volumehost.errors import UnsafePathError
from volumehost.sdk.tree_walk import TreeWalk


def stop(path: str, error: OSError) -> None:
    raise error


def walk(directory: str, *, max_open: int = 64, failed=stop, enter=None) -> list[str]:
    """Paths in the order in which they are done."""
    done: list[str] = []

    def visit(_fd, name, status):
        if stat.S_ISDIR(status.st_mode):
            return True
        done.append(tree.path(name))
        return False

    tree = TreeWalk(
        visit=visit, failed=failed, enter=enter, leave=lambda _fd: done.append(tree.path()), max_open=max_open
    )
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        tree.run(fd)
    finally:
        os.close(fd)
    return done


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def make_deep(directory: str, depth: int) -> None:
    """A chain of directories longer than any path that the kernel takes at once."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("leaf", os.O_CREAT, dir_fd=fd))
    os.close(fd)


@pytest.fixture
def deep(directory):
    """2,000 levels; taken away again from the bottom, which pytest's own clean-up could not do."""
    make_deep(directory, 2000)
    yield directory
    from volumehost.sdk import remove_all_one_filesystem

    remove_all_one_filesystem(f"{directory}/d")


def test_children_come_before_their_parent_and_the_root_is_last(directory):
    os.makedirs(f"{directory}/a/b")
    os.makedirs(f"{directory}/c")
    open(f"{directory}/a/file", "w").close()
    done = walk(directory)
    assert done[-1] == "."
    assert done.index("a/file") < done.index("a")
    assert done.index("a/b") < done.index("a")
    assert sorted(done) == [".", "a", "a/b", "a/file", "c"]


def test_links_are_visited_not_followed(directory):
    os.symlink("/etc", f"{directory}/link")
    assert walk(directory) == ["link", "."]


@pytest.mark.parametrize("max_open", [2, 64])
def test_deeper_than_descriptors_and_paths_allow(deep, max_open):
    before = open_descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        done = walk(deep, max_open=max_open)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(done) == 2002
    assert done[0].endswith("/leaf")
    assert open_descriptors() <= before


def test_many_branches_with_few_descriptors(directory):
    for first in "abc":
        for second in "abc":
            os.makedirs(f"{directory}/{first}/{second}/x/y")
    assert walk(directory, max_open=2) == walk(directory, max_open=64)
    assert len(walk(directory, max_open=2)) == 3 + 9 * 3 + 1


def test_a_directory_moved_out_while_the_walk_is_inside(directory):
    """Coming up through ``..`` must not lead into another part of the machine."""
    os.makedirs(f"{directory}/root/a/b/c/d")
    os.mkdir(f"{directory}/outside")

    def move(fd):
        if "d" in os.listdir(fd):
            os.rename(f"{directory}/root/a/b", f"{directory}/outside/b")
        return True

    before = open_descriptors()
    with pytest.raises(UnsafePathError, match="moved elsewhere"):
        walk(f"{directory}/root", max_open=2, enter=move)
    assert open_descriptors() <= before


def test_entries_that_vanish_are_reported(directory):
    os.makedirs(f"{directory}/a/b")
    gone = []

    def vanish(fd):
        if "b" in os.listdir(fd):
            os.rmdir(f"{directory}/a/b")
        return True

    done = walk(directory, enter=vanish, failed=lambda path, error: gone.append((path, type(error))))
    assert done == ["a", "."]
    assert gone in ([], [("a/b", FileNotFoundError)])


def test_a_directory_swapped_for_a_link_is_not_entered(directory):
    os.makedirs(f"{directory}/root/a")
    os.makedirs(f"{directory}/outside/precious")
    failures = []

    def visit(_fd, name, _status):
        os.rmdir(f"{directory}/root/a")
        os.symlink(f"{directory}/outside", f"{directory}/root/a")
        return True

    fd = os.open(f"{directory}/root", os.O_RDONLY | os.O_DIRECTORY)
    TreeWalk(visit=visit, failed=lambda path, error: failures.append((path, type(error)))).run(fd)
    os.close(fd)
    assert failures == [("a", NotADirectoryError)]


def test_directories_left_out(directory):
    os.makedirs(f"{directory}/a/b")
    assert walk(directory, enter=lambda _fd: False) == ["."]


def test_an_error_of_the_caller_closes_everything(directory):
    os.makedirs(f"{directory}/a/b/c")
    before = open_descriptors()

    def visit(_fd, name, _status):
        if name == "c":
            raise RuntimeError("enough")
        return True

    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    with pytest.raises(RuntimeError, match="enough"):
        TreeWalk(visit=visit, failed=stop).run(fd)
    os.close(fd)
    assert open_descriptors() <= before
