from __future__ import annotations

import logging

import pytest

from volumehost.cli.logs import logging_for


def logged(verbosity: int, capsys: pytest.CaptureFixture[str]) -> str:
    with logging_for(verbosity):
        logger = logging.getLogger("volumehost.test")
        logger.debug("a detail")
        logger.info("mounted volume=%s", "v")
        logger.warning("odd")
        try:
            raise ValueError("oops\x1b[2J")
        except ValueError:
            logger.exception("this must not happen")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\x1b" not in captured.err
    return captured.err


def test_by_default_only_what_must_not_happen_is_shown_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert logged(0, capsys) == "ERROR volumehost.test: this must not happen: ValueError: oops\\x1b[2J\n"


def test_v_shows_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    lines = logged(1, capsys).splitlines()
    assert lines[:2] == ["INFO volumehost.test: mounted volume=v", "WARNING volumehost.test: odd"]
    assert len(lines) == 3


def test_vv_shows_every_detail_with_times_and_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    text = logged(2, capsys).splitlines()
    assert text[0].endswith("DEBUG volumehost.test: a detail")
    assert text[0][:2] == "20"
    assert any("Traceback" in line for line in text)


def test_the_process_gets_its_own_logging_back(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logged(2, capsys)
    assert (root.handlers, root.level) == before
    assert logged(1, capsys).count("mounted volume=v") == 1
