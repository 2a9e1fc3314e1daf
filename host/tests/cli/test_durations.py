from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from volumehost.cli.durations import DurationType, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("2m", 120),
        ("1h30m", 5400),
        ("1d", 86400),
        ("250ms", 0.25),
        ("1.5m", 90),
        ("90", 90),
        ("0", 0),
        ("0s", 0),
        (" 5s ", 5),
        ("1h1m1s", 3661),
    ],
)
def test_durations_that_people_type(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "s", "-1s", "-5", "1x", "1 s", "1h 5m", "2mm", "1e3s", "inf", "nan", "5s!", "٣s", "٣", "0x10", "1_0", "11y"],
)
def test_what_is_not_a_duration_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 30s") as caught:
        parse_duration(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["99999d", "9" * 400, "9" * 400 + "s"])
def test_absurdly_long_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="longer than ten years"):
        parse_duration(text)


@given(st.text(max_size=12))
def test_any_text_gives_seconds_or_a_value_error(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    assert 0 <= seconds <= 10 * 366 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (11000, "3h3m"),
        (28800, "8h"),
        (172799, "47h"),
        (200000, "2d7h"),
        (691200, "8d"),
        (40_000_000, "462d"),
    ],
)
def test_ages_have_two_units_at_most(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_shown_can_be_typed_and_is_never_more(seconds: int) -> None:
    shown = parse_duration(format_duration(seconds)) if seconds < 10**8 else seconds
    assert shown <= seconds


def test_the_option_type_takes_text_and_numbers_and_fails_as_usage() -> None:
    kind = DurationType()
    assert kind.convert("2m", None, None) == 120
    assert kind.convert(5, None, None) == 5
    with pytest.raises(click.BadParameter, match="soon"):
        kind.convert("soon", None, None)
