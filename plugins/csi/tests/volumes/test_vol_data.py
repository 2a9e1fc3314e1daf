"""CSI-DATA: the record, whoever wrote it and whatever happened to it (BR-56)."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost_csi import vol_data
from volumehost_csi.vol_data import BrokenRecordError

RECORD = {"specVolID": "pv-1", "volumeHandle": "vol-1", "driverName": "d.example.com"}


def put(directory, data):
    with open(f"{directory}/vol_data.json", "wb") as file:
        file.write(data)


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_is_read(tmp_path_factory, record):
    directory = str(tmp_path_factory.mktemp("d"))
    vol_data.write(directory, record)
    assert vol_data.read(directory) == record
    assert os.listdir(directory) == ["vol_data.json"]


def test_csi_data_01_02_one_flat_object_sorted_and_ended_by_a_newline(tmp_path):
    vol_data.write(str(tmp_path), RECORD)
    text = (tmp_path / "vol_data.json").read_text()
    assert text == '{"driverName":"d.example.com","specVolID":"pv-1","volumeHandle":"vol-1"}\n'


def test_csi_data_03_08_what_go_writes_is_read(tmp_path):
    put(tmp_path, b'{"volumeHandle":"a\\u003cb\\u003e\\u0026","other":"x","driverName":"d"}\n')
    found = vol_data.read(str(tmp_path))
    assert found["volumeHandle"] == "a<b>&"
    assert found["other"] == "x"
    assert found.get("nodeName", "") == ""


@given(st.binary())
def test_br_56_any_bytes_are_a_record_or_a_broken_one(tmp_path_factory, data):
    directory = str(tmp_path_factory.mktemp("d"))
    put(directory, data)
    try:
        record = vol_data.read(directory)
    except BrokenRecordError as error:
        record = {"broken": str(error)}
    assert all(isinstance(value, str) for value in record.values())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (json.dumps(RECORD).encode()[:20], "it is not JSON"),
        (json.dumps(RECORD).encode() + b"garbage", "it is not JSON"),
        (b"[]", "not one JSON object"),
        (b'{"volumeHandle": 1}', "not one JSON object"),
        (b'{"volumeHandle": {"a": "b"}}', "not one JSON object"),
        (b"[" * 100_000, "it is not JSON"),
        (b'{"a":"' + b"x" * (1 << 20) + b'"}', "more than"),
    ],
)
def test_br_56_broken_records_say_why(tmp_path, data, reason):
    put(tmp_path, data)
    with pytest.raises(BrokenRecordError, match=reason):
        vol_data.read(str(tmp_path))


def test_csi_data_09_a_missing_record_is_not_a_broken_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        vol_data.read(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        vol_data.read(f"{tmp_path}/nothing/here")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/etc/hostname", path)])
def test_a_record_that_is_no_file_is_broken_and_never_waited_for(tmp_path, make):
    make(f"{tmp_path}/vol_data.json")
    with pytest.raises(BrokenRecordError):
        vol_data.read(str(tmp_path))


def test_csi_data_11_improved_a_record_is_replaced_whole_and_not_when_it_is_the_same(tmp_path):
    vol_data.write(str(tmp_path), RECORD)
    before = (tmp_path / "vol_data.json").stat()
    vol_data.write(str(tmp_path), dict(RECORD))
    assert (tmp_path / "vol_data.json").stat().st_ino == before.st_ino
    vol_data.write(str(tmp_path), {**RECORD, "staged": "true"})
    assert (tmp_path / "vol_data.json").stat().st_ino != before.st_ino
    put(tmp_path, b"broken")
    vol_data.write(str(tmp_path), RECORD)
    assert vol_data.read(str(tmp_path)) == RECORD


def test_removing_is_for_the_record_and_what_a_crash_left(tmp_path):
    directory = tmp_path / "volume"
    directory.mkdir()
    (directory / ".vol_data.json.new").touch()
    vol_data.write(str(directory), RECORD)
    (directory / ".vol_data.json.new").touch()
    vol_data.remove(str(directory))
    vol_data.remove_directory(str(directory))
    vol_data.remove(str(directory))
    vol_data.remove_directory(str(directory))
    assert not directory.exists()


def test_csi_tdn_06_anything_else_in_the_directory_is_kept(tmp_path):
    directory = tmp_path / "volume"
    directory.mkdir()
    (directory / "data").touch()
    with pytest.raises(OSError, match="not empty"):
        vol_data.remove_directory(str(directory))
    assert (directory / "data").exists()


def test_an_empty_directory_in_its_place_goes_and_what_is_in_one_is_kept(tmp_path):
    """BR-62: a damaged disk has made one of it; the volume could never be released."""
    directory = tmp_path / "volume"
    (directory / "vol_data.json").mkdir(parents=True)
    with pytest.raises(BrokenRecordError, match="Is a directory"):
        vol_data.read(str(directory))
    vol_data.remove(str(directory))
    assert list(directory.iterdir()) == []
    (directory / "vol_data.json" / "data").mkdir(parents=True)
    with pytest.raises(OSError, match="not empty"):
        vol_data.remove(str(directory))
    assert (directory / "vol_data.json" / "data").exists()
