"""Parsing the mount table (MOUNT-20 to -25)."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import InconsistentMountTableError, MountError
from volumehost.host_services import MountPoint
from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import (
    MountTableSyntaxError,
    parse_mountinfo,
    read_consistently,
    read_mount_table,
    split_options,
    unescape,
)

LINE = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue"


def test_all_fields_mount21() -> None:
    assert parse_mountinfo(LINE + "\n") == [
        MountPoint(
            mount_id=36,
            parent_id=35,
            major=98,
            minor=0,
            root="/mnt1",
            path="/mnt2",
            options=("rw", "noatime"),
            optional_fields=("master:1", "shared:7"),
            fs_type="ext3",
            source="/dev/root",
            super_options=("rw", "errors=continue"),
        )
    ]


def test_no_optional_fields_and_many() -> None:
    assert parse_mountinfo(LINE.replace(" master:1 shared:7", ""))[0].optional_fields == ()
    many = parse_mountinfo(LINE.replace("shared:7", "shared:7 propagate_from:2 unbindable"))[0]
    assert many.optional_fields == ("master:1", "shared:7", "propagate_from:2", "unbindable")


@pytest.mark.parametrize(("field", "shared"), [("shared:7", True), ("master:7", False), ("unbindable", False)])
def test_only_a_shared_field_means_shared_hostutil08(field: str, shared: bool) -> None:
    assert parse_mountinfo(LINE.replace("master:1 shared:7", field))[0].shared is shared


def test_empty_lines_are_skipped_and_order_is_kept() -> None:
    text = f"\n{LINE}\n\n{LINE.replace('/mnt2', '/mnt3')}\n"
    assert [entry.path for entry in parse_mountinfo(text)] == ["/mnt2", "/mnt3"]


def test_octal_escapes_are_decoded_mount24() -> None:
    line = LINE.replace("/mnt2", r"/a\040b\011c\012d\134e").replace("/mnt1", r"/r\040t")
    entry = parse_mountinfo(line)[0]
    assert entry.path == "/a b\tc\nd\\e"
    assert entry.root == "/r t"


@pytest.mark.parametrize("text", [r"\400", r"\777", r"\9", r"\04", "\\", r"a\x"])
def test_what_is_no_escape_stays(text: str) -> None:
    assert unescape(text) == text


def test_line_ends_of_other_alphabets_do_not_split_lines() -> None:
    strange = "/a\u2028b\x0bc\x85d\x1ce"
    assert parse_mountinfo(LINE.replace("/mnt2", strange))[0].path == strange


def test_an_empty_source_does_not_shift_the_fields() -> None:
    entry = parse_mountinfo("36 35 0:50 / /mnt rw - tmpfs  rw,size=4k")[0]
    assert (entry.source, entry.super_options) == ("", ("rw", "size=4k"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("36 35 98:0 /mnt1 /mnt2 rw - ext3", "expected at least 10, got 8"),
        (LINE.replace("98:0", "98"), "unexpected minor:major pair"),
        (LINE.replace("98:0", "98:0:1"), "unexpected minor:major pair"),
        (LINE.replace("98:0", "x:0"), "unable to parse major device id"),
        (LINE.replace("98:0", "98:x"), "unable to parse minor device id"),
        (LINE.replace("36 35", "a 35"), "unable to parse mount id"),
        (LINE.replace("36 35", "36 -1"), "unable to parse parent mount id"),
        ("36 35 98:0 /mnt1 /mnt2 rw a:1 b:2 - ext3", "3 fields after the separator, got 1"),
        ("36 35 98:0 /mnt1 /mnt2 rw a:1 b:2 c:3 d:4 e:5", "there is no separator"),
    ],
)
def test_errors_name_the_fault_and_never_quote_the_line_mount22(line: str, message: str) -> None:
    secret = line.replace("rw", "password=hunter2")
    with pytest.raises(MountTableSyntaxError, match=message) as caught:
        parse_mountinfo(secret)
    assert "hunter2" not in str(caught.value)


def test_commas_in_double_quotes_do_not_split_mount23() -> None:
    text = 'rw,context="system_u:object_r:tmp_t:s0:c127,c456",,size=4k,'
    assert split_options(text) == ("rw", 'context="system_u:object_r:tmp_t:s0:c127,c456"', "size=4k")


def test_escapes_in_options_are_decoded_after_the_split() -> None:
    assert split_options(r"lowerdir=/a\040b,upperdir=/c\054d") == ("lowerdir=/a b", "upperdir=/c,d")


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)


def escape(text: str) -> str:
    """As the kernel does."""
    return "".join(f"\\{ord(c):03o}" if c in " \t\n\\" else c for c in text)


@given(root=NAMES, path=NAMES, source=NAMES, optional=st.lists(st.from_regex(r"[a-z]+:\d+", fullmatch=True)))
def test_round_trip_of_any_names(root: str, path: str, source: str, optional: list[str]) -> None:
    fields = ["1", "2", "3:4", escape("/" + root), escape("/" + path), "rw", *optional, "-", "x", escape(source), "ro"]
    entry = parse_mountinfo(" ".join(fields) + "\n")[0]
    assert (entry.root, entry.path, entry.source) == ("/" + root, "/" + path, source)
    assert entry.optional_fields == tuple(optional)


OPTION = st.text(st.characters(exclude_characters=',"\\\0\n', exclude_categories=("Cs",)), min_size=1, max_size=10)
QUOTED = st.builds(lambda name, value: f'{name}="{value}"', OPTION, st.text("abc,:=", max_size=8))


@given(st.lists(st.one_of(OPTION, QUOTED)))
def test_round_trip_of_option_lists(options: list[str]) -> None:
    assert split_options(",".join(options)) == tuple(options)


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(MountTableSyntaxError):
        parse_mountinfo(text)


def test_old_kernels_are_read_until_two_reads_agree_mount25(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(LINE)
    assert read_consistently(str(table), kernel_release="4.19.0-generic") == LINE
    assert read_consistently(str(table), kernel_release="unreadable") == LINE


def test_a_table_that_changes_in_every_read_is_an_error_mount34() -> None:
    tables = [LINE.replace("36", str(number)) for number in range(10)]
    with pytest.raises(InconsistentMountTableError, match="each of 10 reads"):
        read_consistently("table", kernel_release="5.7.0", read=lambda path: tables.pop(0))
    assert tables == []


def test_new_kernels_are_read_once_mount25() -> None:
    tables = [LINE, ""]
    assert read_consistently("table", kernel_release="5.8.0", read=lambda path: tables.pop(0)) == LINE
    assert tables == [""]


def test_the_second_of_two_equal_reads_counts() -> None:
    tables = ["torn", LINE, LINE, "later"]
    assert read_consistently("table", kernel_release="5.7.19", read=lambda path: tables.pop(0)) == LINE
    assert tables == ["later"]


def test_a_table_that_cannot_be_read_is_a_mount_error(tmp_path: Path) -> None:
    with pytest.raises(MountError, match="read the mount table: No such file"):
        read_mount_table(str(tmp_path / "missing"))


@pytest.mark.root
def test_the_kernels_own_table_with_difficult_names(area: Path, mounter: LinuxMounter) -> None:
    names = ["with space", "tab\there", "line\nend", "back\\slash", "ünïcödé", "-", "a#b", "\udcff\udcfe", r"\040"]
    for name in names:
        place = os.path.join(str(area), name)
        os.mkdir(place)
        mounter.mount(f"source {name}" if "\udcff" not in name else "x", place, "tmpfs")
    found = {entry.path for entry in read_mount_table()}
    for name in names:
        assert os.path.join(str(area), name) in found
        mounter.unmount(os.path.join(str(area), name))


@pytest.mark.root
def test_br57_a_table_that_changes_while_it_is_read_is_complete(area: Path, mounter: LinuxMounter) -> None:
    """Two hundred mounts stay, others come and go: every read sees all of those that stay."""
    staying = [area / f"stay{number}" for number in range(200)]
    moving = [area / f"move{number}" for number in range(20)]
    for place in staying + moving:
        place.mkdir()
    for place in staying:
        mounter.mount("tmpfs", str(place), "tmpfs")
    stop = threading.Event()

    def keep_changing() -> None:
        while not stop.is_set():
            for place in moving:
                mounter.mount(str(area), str(place), "", ["bind"])
            for place in reversed(moving):
                mounter.unmount(str(place))

    changer = threading.Thread(target=keep_changing)
    changer.start()
    try:
        wanted = {str(place) for place in staying}
        for _ in range(50):
            assert wanted <= {entry.path for entry in read_mount_table()}
    finally:
        stop.set()
        changer.join(30)
    assert not changer.is_alive()
