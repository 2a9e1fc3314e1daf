"""What goes wrong again and again is shown once and counted (BR-53)."""

from __future__ import annotations

import logging

import pytest

from volumehost.cli.logs import logging_for
from volumehost.cli.repeats import QUIET_SECONDS, Repeats


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def record(message: str, *args: object, level: int = logging.WARNING, name: str = "x") -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 1, message, args, None)


def test_br53_a_record_that_comes_every_second_is_shown_once_in_ten_minutes_with_a_count() -> None:
    clock = Clock()
    repeats, shown = Repeats(clock), []
    for second in range(1801):
        clock.now = float(second)
        each = record("watching failed, tried again in %g s: %s", 1, "no route")
        if repeats.filter(each):
            shown.append(each.getMessage())
    told = "watching failed, tried again in 1 s: no route"
    assert shown == [told, *[f"{told} (and 599 times more in the last 10 min)"] * 3]


def test_other_words_another_level_and_another_logger_are_other_records() -> None:
    repeats = Repeats(Clock())
    others = [
        record("pod %s waits", "web-1"),
        record("pod %s waits", "web-2"),
        record("pod web-1 waits", level=logging.ERROR),
        record("pod web-1 waits", name="y"),
    ]
    assert all(map(repeats.filter, others))
    assert not repeats.filter(record("pod web-1 waits"))


def test_once_more_is_said_so_and_what_did_not_come_again_says_nothing() -> None:
    clock = Clock()
    repeats = Repeats(clock)
    assert repeats.filter(record("a"))
    assert not repeats.filter(record("a"))
    clock.now = QUIET_SECONDS
    again = record("a")
    assert repeats.filter(again)
    assert again.getMessage() == "a (and once more in the last 10 min)"
    clock.now *= 2
    alone = record("a")
    assert repeats.filter(alone)
    assert alone.getMessage() == "a"


def test_what_is_remembered_is_bounded_and_a_bad_record_is_left_to_the_handler() -> None:
    repeats = Repeats(Clock())
    for number in range(3000):
        assert repeats.filter(record(f"number {number}"))
    assert len(repeats._shown) <= 1000
    assert repeats.filter(record("%d", "no number"))


def test_commands_use_it_unless_every_detail_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for verbosity, count in ((1, 1), (2, 3)):
        with logging_for(verbosity):
            for _ in range(3):
                logging.getLogger("volumehost.test").warning("odd")
        assert capsys.readouterr().err.count("odd") == count
