"""The journal: durable intents, lazy outcomes, whatever state its file is in (BR-56)."""

import contextlib
import os
import subprocess
import sys
import threading

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from volumehost.errors import RootDirectoryError
from volumehost.mount import syscalls
from volumehost.node.journal.format import encode, header, parse, snapshot
from volumehost.node.journal.journal import Journal, read_boot_id, read_journal


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "volumes.journal")


@pytest.fixture
def journal(path):
    """Opens journals at the path; every one is closed at the end."""
    opened = []

    def make(boot_id="boot-1", **options):
        made = Journal(path, boot_id=boot_id, wall_clock=lambda: 1.0, **options)
        opened.append(made)
        return made, made.open()

    yield make
    for each in opened:
        each.close()


def _entries(path):
    return read_journal(path).entries


def test_what_is_written_is_there_for_the_next(journal, path):
    first, contents = journal()
    assert not contents.exists
    first.sync(first.write({"v": "vol", "p": "pod", "state": "mounting", "plugin": "a.b/c"}))
    first.note({"v": "vol", "p": "pod", "state": "mounted"})
    first.close()
    _, contents = journal()
    assert contents.intact
    assert contents.boot_id == "boot-1"
    assert contents.entries == {("vol", "pod"): {"v": "vol", "p": "pod", "state": "mounted", "plugin": "a.b/c"}}


def test_gone_ends_an_entry(journal, path):
    first, _ = journal()
    first.write({"v": "a", "p": "x", "state": "mounted"}, {"v": "a", "state": 1}, {"p": "x", "ended": True})
    first.write({"v": "a", "p": "x", "gone": True})
    assert set(first.entries()) == {("a", ""), ("", "x")}
    assert first.keys_of_pod("x") == [("", "x")]
    assert first.entry("a") == {"v": "a", "state": 1}
    assert first.entry("a", "x") is None
    assert set(_entries(path)) == {("a", ""), ("", "x")}


def test_an_intent_is_in_the_file_at_once_and_an_outcome_with_the_next_intent(journal, path):
    first, _ = journal()
    first.write({"v": "a", "p": "x", "state": "mounting"})
    assert _entries(path)[("a", "x")]["state"] == "mounting"
    assert first.note({"v": "a", "p": "x", "state": "mounted"})
    assert not first.note({"v": "a", "p": "x", "path": "/p"})
    assert _entries(path)[("a", "x")]["state"] == "mounting"
    first.write({"v": "b", "p": "x", "state": "mounting"})
    assert _entries(path)[("a", "x")] == {"v": "a", "p": "x", "state": "mounted", "path": "/p"}
    assert not first.note({"v": "b", "p": "x", "state": "mounted"})  # a flush is arranged already
    first.flush()
    assert not first.note({"v": "b", "p": "x", "at": 1})  # it still is
    first.arranged_flush()
    assert first.note({"v": "b", "p": "x", "path": "/q"})
    assert _entries(path)[("b", "x")]["state"] == "mounted"


def test_only_root_may_read_it(journal, path):
    journal()
    assert os.stat(path).st_mode & 0o777 == 0o600


# --- damage ---------------------------------------------------------------------------------------------------


def _some(path):
    made = Journal(path, boot_id="boot-1")
    made.open()
    made.write({"v": "a", "p": "x", "state": "mounting"})
    made.write({"v": "b", "p": "y", "state": "mounting"})
    made.close()
    with open(path, "rb") as file:
        return file.read()


def test_br56_cut_at_every_byte_the_whole_lines_before_it_stand_and_the_host_starts(path):
    data = _some(path)
    lines = data.splitlines(keepends=True)
    for length in range(len(data) + 1):
        for leftover in os.listdir(os.path.dirname(path)):
            os.unlink(f"{os.path.dirname(path)}/{leftover}")
        with open(path, "wb") as file:
            file.write(data[:length])
        made = Journal(path, boot_id="boot-1")
        contents = made.open()
        whole = data[:length].count(b"\n")
        assert len(contents.entries) == max(0, whole - 1)
        assert contents.intact is (whole >= 1)
        made.sync(made.write({"v": "c", "p": "z", "state": "mounting"}))
        made.close()
        after = read_journal(path)
        assert after.intact, after.notes
        assert len(after.entries) == max(0, whole - 1) + 1
    assert len(lines) == 3


def test_br56_empty_file(journal, path):
    open(path, "wb").close()
    made, contents = journal()
    assert contents.exists
    assert not contents.intact
    made.write({"v": "a", "p": "x"})
    assert read_journal(path).intact


@pytest.mark.parametrize("garbage", [b"\0" * 100, b"garbage\n", b"\xff" * 50 + b"\n", b"deadbeef {}\n", b"\n\n"])
def test_br56_garbage_is_skipped_noted_and_kept_for_people(journal, path, garbage):
    data = _some(path)
    middle = data.index(b"\n", 100) + 1
    with open(path, "wb") as file:
        file.write(data[:middle] + garbage + b"\n" + data[middle:])
    made, contents = journal()
    assert len(contents.entries) == 2
    assert not contents.intact
    assert any("damaged" in note for note in contents.notes)
    made.write({"v": "c", "p": "z"})
    assert len(_entries(path)) == 3
    with open(f"{path}.damaged-0", "rb") as file:
        assert garbage in file.read()


def test_br56_a_changed_byte_takes_its_line_and_no_other(path):
    data = _some(path)
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 0x01
        contents = parse(bytes(changed))
        known = set(contents.entries) & {("a", "x"), ("b", "y")}
        if data[position] != ord("\n"):  # which two lines share
            assert len(known) >= 1
        assert set(contents.entries) <= {("a", "x"), ("b", "y")}
        if position < len(data) - 1:  # the last one only makes the last line a torn one
            assert not contents.intact


def test_br56_a_newer_version_is_kept_aside_and_never_interpreted(journal, path):
    newer = encode({"journal": 99, "boot": "x"}) + encode({"v": "a", "p": "x", "state": 7})
    with open(path, "wb") as file:
        file.write(newer)
    made, contents = journal()
    assert contents.newer_version
    assert not contents.intact
    assert contents.entries == {}
    made.write({"v": "b", "p": "y"})
    with open(f"{path}.newer-0", "rb") as file:
        assert file.read() == newer
    assert set(_entries(path)) == {("b", "y")}


def test_br56_what_is_no_file_in_its_place_is_moved_out_of_the_way(journal, path):
    os.mkdir(path)
    with open(f"{path}/kept", "w") as file:
        file.write("content")
    made, contents = journal()
    assert contents.entries == {}
    assert not contents.intact
    made.write({"v": "a", "p": "x"})
    assert read_journal(path).intact
    with open(f"{path}.damaged-0/kept") as file:
        assert file.read() == "content"


def test_a_second_one_is_kept_beside_the_first(journal, path):
    for number in range(2):
        with open(path, "wb") as file:
            file.write(b"garbage %d\n" % number)
        journal()[0].close()
    for number in range(2):
        with open(f"{path}.damaged-{number}", "rb") as file:
            assert file.read() == b"garbage %d\n" % number


def test_br56_fields_of_a_newer_writer_survive(journal, path):
    with open(path, "wb") as file:
        file.write(header("boot-1", 1.0) + encode({"v": "a", "p": "x", "state": "mounted", "colour": {"deep": [1]}}))
    made, _ = journal(compact_above=0)
    made.write({"v": "a", "p": "x", "state": "unmounting"})
    for number in range(50):
        made.write({"v": "b", "p": str(number % 2), "n": number})
    assert made.entry("a", "x") == {"v": "a", "p": "x", "state": "unmounting", "colour": {"deep": [1]}}
    assert _entries(path)[("a", "x")]["colour"] == {"deep": [1]}


@example(b"0\n")  # the checksum of nothing, and no more
@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_fail(data):
    contents = parse(data)
    assert contents.good_bytes <= len(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from(["", "x", "y"]), st.dictionaries(st.text(max_size=5), json_values)
        ),
        max_size=12,
    )
)
def test_a_snapshot_says_the_same_as_the_records(records):
    reserved = {"v", "p", "gone", "journal"}
    lines = [
        {**{key: value for key, value in fields.items() if key not in reserved}, "v": volume, "p": pod}
        for volume, pod, fields in records
    ]
    one = parse(header("b", 1.0) + b"".join(encode(line) for line in lines))
    other = parse(snapshot((text for _, text in one.records.texts()), "b", 1.0))
    assert one.intact
    assert one.entries == other.entries


# --- full disks, compaction, reboot, sharing --------------------------------------------------------------------


def _fill(path):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):  # until it is full
        while os.write(descriptor, b"x" * 1024):
            pass
    os.close(descriptor)


@pytest.mark.root
def test_br56_no_space_refuses_the_intent_and_harms_nothing_that_was_written(tmp_path):
    target = tmp_path / "fs"
    target.mkdir()
    syscalls.mount("t", str(target), "tmpfs", 0, "size=32768")
    try:
        path = str(target / "volumes.journal")
        made = Journal(path, boot_id="b")
        made.open()
        made.sync(made.write({"v": "a", "p": "x", "state": "mounting"}))
        _fill(str(target / "filler"))
        with pytest.raises(RootDirectoryError, match="full"):
            made.write({"v": "b", "p": "x", "state": "mounting", "long": "x" * 10_000})
        made.note({"v": "a", "p": "x", "state": "mounted", "long": "y" * 4000})
        made.flush()
        assert read_journal(path).intact
        os.unlink(target / "filler")
        made.sync(made.write({"v": "c", "p": "x", "state": "mounting"}))
        contents = read_journal(path)
        assert contents.intact, contents.notes
        assert contents.entries[("a", "x")]["state"] == "mounted"
        assert ("c", "x") in contents.entries
        made.close()
    finally:
        syscalls.umount2(str(target), syscalls.MNT_DETACH)


def test_it_is_compacted_and_says_the_same(journal, path):
    made, _ = journal(compact_above=2000)
    for number in range(500):
        made.sync(made.write({"v": f"vol-{number % 5}", "p": "x", "state": "mounted", "n": number}))
    assert os.path.getsize(path) < 5000
    made.close()
    _, contents = journal()
    assert contents.intact
    assert {key: record["n"] for key, record in contents.entries.items()} == {
        (f"vol-{number % 5}", "x"): number for number in range(495, 500)
    }
    assert not os.path.exists(f"{path}.new")


def test_br58_after_a_reboot_no_mount_is_believed(journal, path):
    made, _ = journal(boot_id="boot-1")
    for state in ("mounting", "mounted", "unmounting", "uncertain", "failed"):
        made.write({"v": state, "p": "x", "state": state}, {"v": state, "dev": state})
    made.close()
    made, contents = journal(boot_id="boot-2")
    assert contents.boot_id == "boot-1"
    expected = {"mounting": "lost", "mounted": "lost", "unmounting": "lost", "uncertain": "lost", "failed": "failed"}
    for state, after in expected.items():
        assert made.entry(state, "x")["state"] == after
        assert made.entry(state)["dev"] == after
    made.close()
    _, contents = journal(boot_id="boot-2")
    assert contents.boot_id == "boot-2"
    assert contents.entries[("mounted", "x")]["state"] == "lost"


def test_the_boot_id_of_this_machine():
    assert len(read_boot_id()) == 36


def test_many_threads_write_and_sync_beside_compactions(journal, path):
    made, _ = journal(compact_above=3000)
    failures = []

    def work(name):
        try:
            for number in range(60):
                made.sync(made.write({"v": name, "p": str(number), "state": "mounting"}))
                made.note({"v": name, "p": str(number), **({"gone": True} if number % 2 else {"state": "mounted"})})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    made.close()
    contents = read_journal(path)
    assert contents.intact, contents.notes
    assert len(contents.entries) == 6 * 30
    assert {record["state"] for record in contents.entries.values()} == {"mounted"}


def test_a_journal_that_can_be_neither_read_nor_moved_is_an_error(path):
    os.mkdir(path)
    with pytest.raises(RootDirectoryError):
        read_journal(path)
    loop = f"{path}/loop"
    os.symlink(loop, loop)
    os.mkdir(f"{path}/directory")
    with pytest.raises(RootDirectoryError):
        Journal(f"{loop}/journal", boot_id="b").open()


def test_br56_a_compaction_without_descriptors_does_not_lose_what_comes_after_it(path):
    """Records must never go to a file that has lost its name: a restart would not find them."""
    program = """if True:
        import os, resource, sys
        from volumehost.node.journal.journal import Journal
        made = Journal(sys.argv[1], boot_id="b", compact_above=200)
        made.open()
        spare = os.dup(0)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 1, hard))  # one descriptor more, and no second
        os.close(spare)
        for number in range(60):
            made.write({"v": "vol", "p": "pod", "state": "mounted", "number": number})
    """
    subprocess.run([sys.executable, "-c", program, path], check=True, stdin=subprocess.DEVNULL, timeout=60)
    assert read_journal(path).entries["vol", "pod"]["number"] == 59
