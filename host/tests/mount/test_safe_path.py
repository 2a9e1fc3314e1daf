"""Paths that never leave their directory, on new kernels and on old ones (SUBPATH-12 to -17, -21, BR-71)."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import UnsafePathError
from volumehost.mount.safe_path import (
    check_relative,
    make_dirs_beneath,
    open_base,
    open_beneath,
    open_existing_prefix,
    path_of,
    resolved_within,
    walk_beneath,
)


def walk(base_fd: int, relative: str) -> int:
    return walk_beneath(base_fd, check_relative(relative))


@pytest.fixture(params=[open_beneath, walk])
def opener(request: pytest.FixtureRequest) -> Callable[[int, str], int]:
    """By the kernel in one call, and component by component."""
    chosen: Callable[[int, str], int] = request.param
    return chosen


@pytest.fixture
def base(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    place = tmp_path / "base"
    (place / "dir" / "below").mkdir(parents=True)
    (place / "dir" / "file").write_text("x")
    (place / "inside").symlink_to("dir")
    (place / "outside").symlink_to("/etc")
    (place / "up").symlink_to("..")
    (place / "dir" / "end").symlink_to("file")
    os.mkfifo(place / "fifo")
    (tmp_path / "secret").mkdir()
    fd = open_base(str(place))
    yield fd, place
    os.close(fd)


@pytest.mark.parametrize("relative", ["dir", "dir/below", "./dir//below/", "dir/file", "fifo", ".", ""])
def test_what_lies_inside_is_opened(relative: str, opener, base) -> None:
    fd, place = base
    opened = opener(fd, relative)
    try:
        assert os.path.samestat(os.fstat(opened), os.stat(place / relative))
    finally:
        os.close(opened)


@pytest.mark.parametrize(
    "relative", ["inside", "inside/file", "outside", "outside/passwd", "up", "up/secret", "dir/end"]
)
def test_a_link_anywhere_is_refused_subpath21(relative: str, opener, base) -> None:
    with pytest.raises(UnsafePathError, match="unexpected symlink found"):
        opener(base[0], relative)


@pytest.mark.parametrize("relative", ["/etc", "..", "dir/../..", "dir/../dir", "a/.."])
def test_absolute_paths_and_steps_back_are_refused_subpath01(relative: str, opener, base) -> None:
    with pytest.raises(UnsafePathError, match="must not"):
        opener(base[0], relative)


def test_names_that_only_look_like_steps_back_are_fine_subpath01(opener, base) -> None:
    fd, place = base
    (place / "..a").mkdir()
    (place / "...").mkdir()
    for name in ("..a", "..."):
        os.close(opener(fd, name))


def test_missing_and_impossible_paths_are_ordinary_errors(opener, base) -> None:
    with pytest.raises(FileNotFoundError):
        opener(base[0], "dir/missing")
    with pytest.raises(NotADirectoryError):
        opener(base[0], "dir/file/further")
    with pytest.raises(UnsafePathError, match="NUL"):
        opener(base[0], "a\0b")


def test_magic_links_of_proc_are_refused(opener) -> None:
    fd = open_base("/proc/self")
    try:
        for name in ("cwd", "root", "exe", "fd/0"):
            with pytest.raises(UnsafePathError):
                opener(fd, name)
    finally:
        os.close(fd)


@pytest.mark.root
def test_mounts_inside_are_entered(opener, area: Path, mounter) -> None:
    (area / "base" / "m").mkdir(parents=True)
    mounter.mount("tmpfs", str(area / "base" / "m"), "tmpfs")
    (area / "base" / "m" / "x").touch()
    fd = open_base(str(area / "base"))
    try:
        os.close(opener(fd, "m/x"))
    finally:
        os.close(fd)


def test_no_descriptor_is_left_open(opener, base) -> None:
    before = set(os.listdir("/proc/self/fd"))
    for relative in ("dir/below", "outside", "dir/missing", "dir/file/x"):
        try:
            os.close(opener(base[0], relative))
        except (OSError, UnsafePathError):
            continue
    assert set(os.listdir("/proc/self/fd")) <= before


SWAPPER = """
import os, sys
base = sys.argv[1]
os.makedirs(base + "/real/x", exist_ok=True)
print("ready", flush=True)
while os.getppid() == int(sys.argv[2]):
    os.symlink("/etc", base + "/link")
    os.rename(base + "/link", base + "/way")
    os.unlink(base + "/way")
    os.mkdir(base + "/way")
    try: os.mkdir(base + "/way/passwd")
    except OSError: pass
    try: os.rmdir(base + "/way/passwd")
    except OSError: pass
    os.rmdir(base + "/way")
"""


def test_br71_a_component_that_is_swapped_all_the_time_never_leads_out(opener, tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    command = [sys.executable, "-c", SWAPPER, str(base), str(os.getpid())]
    fd = open_base(str(base))
    opened = refused = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            for _ in range(20_000):
                try:
                    found = opener(fd, "way/passwd")
                except (OSError, UnsafePathError):
                    refused += 1
                    continue
                opened += 1
                assert stat.S_ISDIR(os.fstat(found).st_mode), "/etc/passwd is a file"
                os.close(found)
        finally:
            swapper.kill()
            os.close(fd)
    assert refused


@pytest.mark.parametrize("mode", [0o777, 0o2777, 0o1770, 0o700, 0o750, 0o555])
def test_created_directories_have_exactly_the_mode_subpath14(mode: int, base) -> None:
    fd, place = base
    old = os.umask(0o077)
    try:
        make_dirs_beneath(fd, ["new", "below"], mode)
    finally:
        os.umask(old)
    for path in (place / "new", place / "new" / "below"):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_creating_what_exists_is_an_error_subpath15(base) -> None:
    fd, place = base
    (place / "dangling").symlink_to("nowhere")
    for name in ("dir", "dangling", "outside"):
        with pytest.raises(FileExistsError):
            make_dirs_beneath(fd, [name, "x"], 0o755)
    assert not (place / "nowhere").exists()


def test_the_existing_part_of_a_path_subpath12(base) -> None:
    fd, place = base
    for components, count, where in (
        (["dir", "below", "new", "x"], 2, place / "dir" / "below"),
        (["dir", "below"], 2, place / "dir" / "below"),
        (["inside", "new"], 1, place / "dir"),
        (["outside", "nothing here"], 1, Path("/etc")),
        (["new"], 0, place),
        ([], 0, place),
    ):
        prefix, found = open_existing_prefix(fd, components)
        try:
            assert (found, path_of(prefix)) == (count, str(where))
        finally:
            os.close(prefix)
    with pytest.raises(NotADirectoryError):
        open_existing_prefix(fd, ["dir", "file", "x"])


def test_resolving_tells_what_lies_outside(base) -> None:
    _, place = base
    assert resolved_within(str(place / "inside" / "file"), str(place)) == "dir/file"
    assert resolved_within(str(place), str(place)) == "."
    with pytest.raises(UnsafePathError, match="outside of"):
        resolved_within(str(place / "outside"), str(place))
    with pytest.raises(UnsafePathError, match="outside of"):
        resolved_within(str(place / ".." / "secret"), str(place))
    with pytest.raises(FileNotFoundError):
        resolved_within(str(place / "missing"), str(place))


@given(st.text(st.sampled_from("a./\0"), max_size=12))
def test_what_is_accepted_never_climbs(path: str) -> None:
    try:
        components = check_relative(path)
    except UnsafePathError:
        assert path.startswith("/") or ".." in path.split("/") or "\0" in path
        return
    assert all(item not in {"", ".", ".."} and "/" not in item for item in components)
