"""Sorting mount options into flags, attributes, propagation and the filesystem's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.mount import syscalls as s
from volumehost.mount.options import parse_options


def test_flags_and_data_are_told_apart() -> None:
    parsed = parse_options(["ro", "nosuid", "size=4k", "mode=0700"])
    assert parsed.flags == s.MS_RDONLY | s.MS_NOSUID
    assert parsed.data == ("size=4k", "mode=0700")
    assert not parsed.bind


def test_one_item_may_hold_several_but_not_split_in_quotes() -> None:
    parsed = parse_options(['noexec,nodev,context="u:r:t:s0:c1,c2"'])
    assert parsed.flags == s.MS_NOEXEC | s.MS_NODEV
    assert parsed.data == ('context="u:r:t:s0:c1,c2"',)


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        (["ro", "rw"], 0),
        (["rw", "ro"], s.MS_RDONLY),
        (["noatime", "relatime"], s.MS_RELATIME),
        (["relatime", "strictatime"], s.MS_STRICTATIME),
        (["noexec", "exec"], 0),
        (["user"], s.MS_NOSUID | s.MS_NODEV | s.MS_NOEXEC),
        (["user", "exec"], s.MS_NOSUID | s.MS_NODEV),
    ],
)
def test_the_later_option_wins(options: list[str], flags: int) -> None:
    assert parse_options(options).flags == flags


def test_what_only_user_space_understands_is_dropped() -> None:
    parsed = parse_options(["defaults", "_netdev", "nofail", "x-systemd.automount", "comment=mine", "noauto"])
    assert (parsed.flags, parsed.data, parsed.needs_program) == (0, (), "")


@pytest.mark.parametrize("option", ["loop", "loop=/dev/loop3", "offset=4096", "X-mount.mkdir", "uhelper=udisks2"])
def test_what_takes_a_program_is_marked(option: str) -> None:
    assert parse_options(["ro", option]).needs_program == option.partition("=")[0]


def test_bind_is_recognised_and_a_remount_of_one_is_not_a_new_one() -> None:
    assert parse_options(["bind"]).bind
    assert parse_options(["rbind"]).flags == s.MS_BIND | s.MS_REC
    assert not parse_options(["bind", "remount", "ro"]).bind


def test_attributes_of_a_bind_mount_restrict_and_never_loosen_mount09() -> None:
    assert parse_options(["bind", "ro", "noexec"]).attributes() == (s.MOUNT_ATTR_RDONLY | s.MOUNT_ATTR_NOEXEC, 0)
    assert parse_options(["bind", "rw", "suid", "dev", "exec"]).attributes() == (0, 0)


def test_a_new_access_time_rule_replaces_the_old_one() -> None:
    assert parse_options(["bind", "noatime"]).attributes() == (s.MOUNT_ATTR_NOATIME, s.MOUNT_ATTR_ATIME_MASK)
    assert parse_options(["bind", "relatime"]).attributes() == (0, s.MOUNT_ATTR_ATIME_MASK)


def test_propagation() -> None:
    assert parse_options(["bind", "rslave"]).propagation == (s.MS_SLAVE | s.MS_REC,)
    assert parse_options(["rshared"]).only_propagation
    assert not parse_options(["rshared", "ro"]).only_propagation


def test_a_repr_shows_no_option_of_the_filesystem() -> None:
    assert "hunter2" not in repr(parse_options(["password=hunter2"]))


@given(st.lists(st.text(min_size=1)))
def test_any_options_are_sorted_without_error_and_unknown_ones_kept(options: list[str]) -> None:
    parsed = parse_options(options)
    assert all(item in ",".join(options) for item in parsed.data)
