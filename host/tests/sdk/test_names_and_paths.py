"""LAYOUT-05, UTIL-01, -02, -23, MOUNT-39."""

from __future__ import annotations

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import UnsafePathError, VolumeHostError
from volumehost.sdk import (
    escape_qualified_name,
    get_path,
    is_ready,
    make_directories,
    path_within_base,
    set_ready,
    unescape_qualified_name,
    validate_path_no_backsteps,
)


def test_escaping():
    assert escape_qualified_name("kubernetes.io/empty-dir") == "kubernetes.io~empty-dir"
    assert unescape_qualified_name("kubernetes.io~empty-dir") == "kubernetes.io/empty-dir"


@given(st.from_regex(r"[a-z0-9.-]{1,30}/[A-Za-z0-9._-]{1,30}", fullmatch=True))
def test_names_come_back(name):
    assert "/" not in escape_qualified_name(name)
    assert unescape_qualified_name(escape_qualified_name(name)) == name


@pytest.mark.parametrize("path", ["..", "a/..", "/a/../b", "../a", "/..", "a/b/.."])
def test_backsteps(path):
    with pytest.raises(UnsafePathError, match=r"must not contain '\.\.'"):
        validate_path_no_backsteps(path)


@pytest.mark.parametrize("path", ["", "/", "a..b", "..a", "a..", "/a/..b/c", "...", "./a"])
def test_no_backsteps(path):
    validate_path_no_backsteps(path)


@pytest.mark.parametrize(
    ("path", "base", "within"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/a/..b", "/a", True),
        ("/ab", "/a", False),
        ("/a/../b", "/a", False),
        ("/", "/a", False),
        ("/a", "/", True),
        ("/a/b/", "/a/b", True),
        ("/b/a", "/a", False),
        ("/a/b/../c", "/a/", True),
    ],
)
def test_within(path, base, within):
    assert path_within_base(path, base) is within


class Pathless:
    def get_path(self) -> str:
        return ""

    def get_metrics(self):
        raise NotImplementedError


def test_a_volume_without_a_path():
    with pytest.raises(VolumeHostError, match="path is empty Pathless"):
        get_path(Pathless())


class TestReady:
    def test_set_then_is(self, directory):
        path = f"{directory}/a/b"
        assert not is_ready(path)
        set_ready(path)
        set_ready(path)
        assert is_ready(path)
        assert stat.S_IMODE(os.stat(f"{directory}/a").st_mode) == 0o750

    def test_only_a_regular_file_counts(self, directory):
        os.mkdir(f"{directory}/ready")
        assert not is_ready(directory)
        os.rmdir(f"{directory}/ready")
        os.mkfifo(f"{directory}/ready")
        assert not is_ready(directory)
        os.unlink(f"{directory}/ready")
        open(f"{directory}/real", "w").close()
        os.symlink("real", f"{directory}/ready")
        assert not is_ready(directory)

    def test_a_marker_that_cannot_be_written_is_logged(self, directory, caplog):
        open(f"{directory}/file", "w").close()
        set_ready(f"{directory}/file")
        assert "marking" in caplog.text
        assert not is_ready(f"{directory}/file")

    def test_a_link_is_not_written_through(self, directory, caplog):
        os.mkdir(f"{directory}/meta")
        os.symlink(f"{directory}/elsewhere", f"{directory}/meta/ready")
        set_ready(f"{directory}/meta")
        assert not os.path.lexists(f"{directory}/elsewhere")
        assert "marking" in caplog.text


class TestMakeDirectories:
    def test_every_level_gets_the_mode(self, directory):
        make_directories(f"{directory}/a/b/c", 0o700)
        for path in ("a", "a/b", "a/b/c"):
            assert stat.S_IMODE(os.stat(f"{directory}/{path}").st_mode) == 0o700

    def test_what_is_there_stays_as_it_is(self, directory):
        os.mkdir(f"{directory}/a", 0o711)
        make_directories(f"{directory}/a/b")
        make_directories(f"{directory}/a/b")
        assert stat.S_IMODE(os.stat(f"{directory}/a").st_mode) == 0o711

    @pytest.mark.parametrize("there", ["", "a", "a/b", "a/b/c"])
    def test_parents_that_are_probably_missing_may_be_there_or_miss_their_own(self, directory, there):
        os.makedirs(f"{directory}/{there}", 0o711, exist_ok=True)
        assert make_directories(f"{directory}/a/b/c", 0o700, new_parents=1) == (there != "a/b/c")
        for path in ("a", "a/b", "a/b/c"):
            wanted = 0o700 if not f"{there}/".startswith(f"{path}/") else None
            assert wanted in (None, stat.S_IMODE(os.stat(f"{directory}/{path}").st_mode))

    @pytest.mark.parametrize("path", ["file", "file/below", "file/below/deep"])
    def test_a_file_in_the_way(self, directory, path):
        open(f"{directory}/file", "w").close()
        with pytest.raises(OSError, match=r"File exists|Not a directory"):
            make_directories(f"{directory}/{path}")
