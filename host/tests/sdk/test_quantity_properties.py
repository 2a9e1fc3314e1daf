"""Properties that every quantity has, whatever the text."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from hypothesis import given
from hypothesis import strategies as st

from volumehost.errors import QuantityError
from volumehost.sdk.quantity import Quantity, QuantityFormat, parse_quantity

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
CAP = 2**63 - 1

signs = st.sampled_from(["", "+", "-"])
digits = st.text("0123456789", min_size=1, max_size=18)
numbers = st.one_of(
    digits,
    st.builds("{}.{}".format, digits, st.text("0123456789", max_size=12)),
    st.builds(".{}".format, digits),
)
exponents = st.integers(-30, 30)
suffixes = st.one_of(st.sampled_from([*DECIMAL, *BINARY]), st.builds("{}{:+}".format, st.sampled_from("eE"), exponents))
texts = st.builds("{}{}{}".format, signs, numbers, suffixes)
quantities = st.builds(Quantity, st.integers(-(10**30), 10**30), st.sampled_from(QuantityFormat))


def exact(text: str) -> Fraction:
    """The amount by the rules, computed in another way than the parser does."""
    sign = -1 if text.startswith("-") else 1
    body = text.lstrip("+-")
    number = "".join(char for char in body if char in "0123456789.")
    if "e" in body or ("E" in body and body[-1].isdigit()):
        number, _, exponent = body.lower().partition("e")
        factor = Fraction(10) ** int(exponent)
    else:
        suffix = body[len(number) :]
        factor = Fraction(2) ** BINARY[suffix] if suffix in BINARY else Fraction(10) ** DECIMAL[suffix]
        amount = Fraction(number.rstrip(".") if number.endswith(".") else number) * factor
        return sign * (min(amount, Fraction(CAP)) if suffix in BINARY else amount)
    return sign * Fraction(number.rstrip(".") if number.endswith(".") else number) * factor


def away_from_zero(amount: Fraction) -> int:
    return ceil(amount) if amount >= 0 else floor(amount)


@given(texts)
def test_the_amount_is_exact_down_to_nanos(text: str) -> None:
    assert parse_quantity(text).nanos == away_from_zero(exact(text) * 10**9)


@given(texts)
def test_values_round_away_from_zero(text: str) -> None:
    quantity = parse_quantity(text)
    amount = Fraction(quantity.nanos, 10**9)
    assert quantity.value() == away_from_zero(amount)
    assert quantity.milli_value() == away_from_zero(amount * 1000)
    assert abs(quantity.value()) >= abs(amount)


@given(texts)
def test_the_canonical_form_says_the_same_and_stays(text: str) -> None:
    quantity = parse_quantity(text)
    canonical = str(quantity)
    again = parse_quantity(canonical)
    assert again == quantity
    assert str(again) == canonical
    assert "." not in canonical
    assert "+" not in canonical


@given(quantities)
def test_any_amount_can_be_written_and_read(quantity: Quantity) -> None:
    # Binary texts are capped when read, so only amounts below the cap come back.
    if quantity.format is not QuantityFormat.BINARY_SI or abs(quantity.value()) <= CAP:
        assert parse_quantity(str(quantity)) == quantity


@given(st.integers(0, CAP))
def test_whole_bytes_come_back(size: int) -> None:
    for format in (QuantityFormat.BINARY_SI, QuantityFormat.DECIMAL_SI):
        assert parse_quantity(str(Quantity.of(size, format))).value() == size


@given(quantities, quantities)
def test_order_and_sums_are_those_of_the_amounts(one: Quantity, other: Quantity) -> None:
    assert (one < other) == (one.nanos < other.nanos)
    assert (one == other) == (one.nanos == other.nanos)
    assert (one + other).nanos == one.nanos + other.nanos
    assert (one + other) - other == one


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    assert parse_quantity(str(quantity)) == quantity


@given(texts, st.sampled_from([" ", "\n", "_", "B", "x", "i", "\0"]))
def test_no_junk_behind(text: str, junk: str) -> None:
    if f"{text[-1]}{junk}" in BINARY:
        return
    try:
        parse_quantity(text + junk)
    except QuantityError:
        return
    raise AssertionError(f"{text + junk!r} was read")
