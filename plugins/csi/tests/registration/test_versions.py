"""Which version a driver registers with (CSI-REG-02 to -06, CSI-EDGE-01)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volumehost_csi.registration.versions import Version, highest_supported, parse_version


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1.0.0", (1, 0, 0)),
        ("v1.2", (1, 2)),
        (" v1.2.3 ", (1, 2, 3)),
        ("\t1.0", (1, 0)),
        ("1.0.0-rc.1", (1, 0, 0)),
        ("1.0.0+build", (1, 0, 0)),
        ("1.0.0.", (1, 0, 0)),
        ("1.02.3", (1, 2, 3)),
        ("0.3", (0, 3)),
        ("1.2.3.4", (1, 2, 3, 4)),
    ],
)
def test_a_version_begins_with_two_numbers_or_more(text, numbers) -> None:
    """CSI-REG-03."""
    assert parse_version(text).numbers == numbers


@pytest.mark.parametrize(
    "text", ["", "1", "v1", "01.0", "x1.0", "1.x", ".1", "vv1.0", "-1.0", "1" * 40 + ".0", "\u0661.\u0660"]
)
def test_what_is_no_version(text) -> None:
    """CSI-REG-03."""
    assert parse_version(text) is None


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["v1.0.0"], "1.0.0"),
        (["0.2.0", "v1.0.0"], "1.0.0"),
        (["0.2.0", "v1.2.3"], "1.2.3"),
        (["v1.2.3", "v0.3.0"], "1.2.3"),
        (["v1.2.3", "v0.3.0", "2.0.1"], "1.2.3"),
        (["v1.2.3", "4.9.12", "v0.3.0", "2.0.1"], "1.2.3"),
        (["v1.2.3", "boo", "v0.3.0", "2.0.1"], "1.2.3"),
        (["1.10.0", "1.9.0"], "1.10.0"),
    ],
)
def test_the_highest_that_can_be_spoken_is_chosen(offered, chosen) -> None:
    """CSI-EDGE-01, CSI-REG-04."""
    assert str(highest_supported(offered)) == chosen


@pytest.mark.parametrize(
    "offered", [["0.3.0"], ["0.2.0"], ["0.2.0", "v0.3.0"], ["4.9.12", "2.0.1"], [], ["boo", "", "1"]]
)
def test_no_version_that_can_be_spoken(offered) -> None:
    """CSI-EDGE-01: the reason names what was offered."""
    with pytest.raises(ValueError, match="no version at all" if not offered else offered[0]):
        highest_supported(offered)


def test_a_long_offer_is_cut_in_the_reason() -> None:
    with pytest.raises(ValueError, match="and 992 more") as caught:
        highest_supported(["2.0." + "0" * 1000] * 1000)
    assert len(str(caught.value)) < 600


_numbers = st.lists(st.integers(0, 3), min_size=2, max_size=4).map(tuple)


@settings(deadline=None)
@given(_numbers, _numbers)
def test_missing_numbers_count_as_zero(one, other) -> None:
    """CSI-REG-05."""
    first, second = Version(one), Version(other)
    padded = [(*numbers, 0, 0, 0, 0)[:4] for numbers in (one, other)]
    assert first.newer_than(second) is (padded[0] > padded[1])


@settings(deadline=None)
@given(st.text())
def test_no_text_is_too_strange(text) -> None:
    version = parse_version(text)
    assert version is None or len(version.numbers) >= 2
