"""Mounts that come after a container was started: seen inside, seen outside, or neither."""

from __future__ import annotations

import subprocess

import pytest

from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table

pytestmark = pytest.mark.root

#: A container that says when it runs, waits for a word, and then looks.
WAITS = "echo started; read word; {}"


def between(world, script):
    """Mount something on the host while the container waits."""

    def talk(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "started\n", process.communicate(timeout=20)
        script()
        process.stdin.write("go\n")

    return talk


@pytest.fixture
def later(world):
    """Mounts a tmpfs in the tree, and takes it away at the end."""
    place = world.tree / "later"

    def mount():
        syscalls.mount("late", str(place), "tmpfs", 0, "size=64k")
        (place / "new").write_text("came later")

    yield mount
    if any(entry.path == str(place) for entry in read_mount_table()):
        syscalls.umount2(str(place), 0)


@pytest.mark.parametrize("runtime", ["crun", "bwrap"])
def test_host_to_container_sees_what_is_mounted_on_the_host_afterwards(request, runtime, world, later):
    run = request.getfixturevalue(runtime)
    ran = run("follower", WAITS.format("cat /tree/later/new"), talk=between(world, later))
    assert ran.out == "came later", ran.err


def test_without_propagation_nothing_is_seen(crun, world, later):
    """bwrap's mounts follow those of the host whether that is asked or not."""
    ran = crun("follower", WAITS.format("ls -A /apart/later"), talk=between(world, later))
    assert (ran.code, ran.out) == (0, ""), ran.err


@pytest.mark.parametrize(
    ("container", "path", "seen"),
    [("both", "/tree", True), ("follower", "/tree", False), ("follower", "/apart", False)],
)
def test_only_bidirectional_lets_mounts_out(crun, world, container, path, seen):
    inner = world.tree / "later" / "inner"

    def look():
        assert (inner / "file").exists() is seen
        if seen:
            syscalls.umount2(str(world.tree / "later"), 0)

    script = f"mount -t tmpfs in {path}/later && mkdir {path}/later/inner && touch {path}/later/inner/file && "
    ran = crun(container, script + "echo started; read word", talk=between(world, look))
    assert ran.code == 0, ran.err


def test_bwrap_says_that_it_lets_nothing_out(world):
    told = world("export", "web", "--container", "both", "--format", "bwrap", code=1)
    assert "bwrap does not let mounts out of a sandbox" in told


def test_a_host_mount_that_passes_nothing_on_is_told(world):
    syscalls.mount("", str(world.tree), "", syscalls.MS_PRIVATE, "")
    try:
        told = world("export", "web", "--container", "follower", "--format", "oci", code=1)
    finally:
        syscalls.mount("", str(world.tree), "", syscalls.MS_SHARED, "")
    assert "mountPropagation HostToContainer needs a host mount that is shared or slave" in told
    assert "is private" in told
    assert "mount --make-rshared" in told
