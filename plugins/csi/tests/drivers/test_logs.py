"""The log of a driver: bounded, moved aside without losing the driver, read from its end."""

from __future__ import annotations

import os
import stat
from dataclasses import replace

import pytest

from volumehost_csi.drivers.keeper import LOG_MARK, rotate_log
from volumehost_csi.drivers.launch import LaunchSettings
from volumehost_csi.drivers.logs import log_tail

NAME = "acme.example.com"


def sizes(path):
    return {name[len("log") :]: os.stat(f"{path}/{name}").st_size for name in os.listdir(path) if name[:3] == "log"}


def test_it_is_moved_aside_while_the_driver_writes_on(new_drivers, site, places, quick, running, wait_until):
    launch = LaunchSettings(grace=5, log_bytes=2000, log_parts=2)
    drivers = new_drivers(replace(quick, launch=launch))
    drivers.driver(NAME, timeout=30)
    driver = running().process.pid
    with open(f"/proc/{driver}/fd/1", "ab") as out:  # what the driver writes to
        out.write(b"first\n" + b"x" * 3000 + b"\n")
        out.flush()
        wait_until(lambda: os.path.exists(f"{places.log_file}.1"), "the log to be moved aside")
        wait_until(lambda: os.stat(places.log_file).st_size < 2000, "the log to begin again")
        out.write(b"second\n")
    assert log_tail(places.log_file, 1) == ["second"]
    assert "first" in "".join(log_tail(f"{places.log_file}.1", 100)) or os.stat(f"{places.log_file}.1").st_size >= 2000
    assert running().process.pid == driver


@pytest.mark.parametrize("parts", [1, 3])
def test_no_more_parts_are_kept_than_asked_for_and_none_is_larger(tmp_path, parts):
    path = f"{tmp_path}/log"
    for number in range(6):
        with open(path, "ab") as log:
            log.write(f"{number}\n".encode() * 500)
        rotate_log(path, 1000, parts)
    assert sizes(tmp_path) == {"": 0, **{f".{number}": 1000 for number in range(1, parts + 1)}}
    with open(f"{path}.1") as newest:
        assert newest.readline() == "5\n"
    assert stat.S_IMODE(os.stat(f"{path}.1").st_mode) == 0o600


def test_a_small_log_is_left_alone(tmp_path):
    with open(f"{tmp_path}/log", "w") as log:
        log.write("x" * 999)
    rotate_log(f"{tmp_path}/log", 1000, 3)
    assert sizes(tmp_path) == {"": 999}


def test_a_flood_is_cut_to_its_end(tmp_path):
    with open(f"{tmp_path}/log", "w") as log:
        log.write("old" * 100_000 + "new")
    rotate_log(f"{tmp_path}/log", 1000, 3)
    with open(f"{tmp_path}/log.1") as part:
        text = part.read()
    assert len(text) == 1000
    assert text.endswith("new")


def test_a_log_that_is_not_there_or_a_link_is_no_error_and_not_followed(tmp_path):
    rotate_log(f"{tmp_path}/absent", 0, 3)
    (tmp_path / "target").write_text("x" * 2000)
    os.symlink(f"{tmp_path}/target", f"{tmp_path}/log")
    os.symlink(f"{tmp_path}/target", f"{tmp_path}/log.1")
    rotate_log(f"{tmp_path}/log", 1000, 1)
    assert (tmp_path / "target").read_text() == "x" * 2000


def test_the_tail_is_that_of_one_process_without_empty_lines(tmp_path):
    path = f"{tmp_path}/log"
    with open(path, "w") as log:
        log.write(f"{LOG_MARK}one 2020\na\nb\n{LOG_MARK}two 2020\nc\n\nd\n")
    assert log_tail(path, 10, instance="two") == ["c", "d"]
    assert log_tail(path, 1, instance="two") == ["d"]
    assert log_tail(path, 2) == ["c", "d"]
    assert log_tail(path, 0) == []
    assert log_tail(f"{tmp_path}/absent", 5) == []


def test_bytes_that_are_no_text_are_shown_as_such(tmp_path):
    (tmp_path / "log").write_bytes(b"\xff\xfe\n")
    assert log_tail(f"{tmp_path}/log", 1) == ["\ufffd\ufffd"]
