"""Which payloads the atomic writer takes: ATOMIC-03 to -06."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import PayloadError
from volumehost.sdk import FileProjection
from volumehost.sdk.payload import clean_payload, validate_payload_path

FILE = FileProjection(b"secret content", 0o644)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "must not be empty"),
        (".", "must not be empty"),
        ("./", "must not be empty"),
        ("/etc/passwd", "must be relative"),
        ("..", "must not contain '..'"),
        ("../x", "must not contain '..'"),
        ("a/../b", "must not contain '..'"),
        ("a/..", "must not contain '..'"),
        ("..data", "must not start with '..'"),
        ("..foo/bar", "must not start with '..'"),
        ("./..data", "must not start with '..'"),
        (".//..data/x", "must not start with '..'"),
        ("a" * 256, "has a name longer than 255 bytes"),
        ("a/" + "ä" * 128, "has a name longer than 255 bytes"),
        ("a/" * 2048 + "a", "is longer than 4096 bytes"),
        ("a\0b", "must not contain NUL"),
    ],
)
def test_refused(path, reason):
    with pytest.raises(PayloadError) as caught:
        clean_payload({"good": FILE, path: FILE})
    assert reason in str(caught.value)
    assert "secret content" not in str(caught.value)


@pytest.mark.parametrize("path", ["foo/..bar", "foo..bar", ".hidden", "a/.b/c..", "a" * 255, "ä" * 127])
def test_accepted(path):
    assert list(clean_payload({path: FILE})) == [path]


@pytest.mark.parametrize(
    ("path", "clean"), [("./bar", "bar"), ("foo///bar", "foo/bar"), ("foo/./bar/", "foo/bar"), ("foo//", "foo")]
)
def test_cleaned(path, clean):
    assert clean_payload({path: FILE}) == {clean: FILE}


def test_two_names_of_one_file():
    with pytest.raises(PayloadError, match="names the same file as 'a/b'"):
        clean_payload({"a/b": FILE, "a//b": FILE})


def test_a_file_that_is_a_directory_of_another():
    with pytest.raises(PayloadError, match="lies below 'a', which is a file"):
        clean_payload({"a": FILE, "a/b": FILE})


def test_nothing_is_a_payload_too():
    assert clean_payload({}) == {}


def test_content_never_shows():
    assert "secret" not in repr(FILE)
    assert repr(FILE) == "<FileProjection 14 bytes, mode 0o644, owner None>"


@given(st.text(st.sampled_from("ab./\0ä"), max_size=12))
def test_what_is_accepted_stays_inside(path):
    try:
        (clean,) = clean_payload({path: FILE})
    except PayloadError:
        return
    validate_payload_path(clean)
    assert os.path.normpath(f"/volume/{clean}") == f"/volume/{clean}"
    assert clean.startswith((".", "a", "b", "ä"))
    assert not clean.startswith("..")
