"""Kubernetes quantities: what is read, what is refused, how they are printed and rounded."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction

import pytest

from volumehost.errors import QuantityError, VolumeHostError
from volumehost.sdk.quantity import Quantity, QuantityFormat, parse_quantity

MAX_INT64 = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "canonical", "value", "milli"),
    [
        ("0", "0", 0, 0),
        ("00", "0", 0, 0),
        ("-0", "0", 0, 0),
        ("0Ki", "0", 0, 0),
        ("1", "1", 1, 1000),
        ("+1", "1", 1, 1000),
        ("007", "7", 7, 7000),
        ("1000", "1k", 1000, 1_000_000),
        ("1024", "1024", 1024, 1_024_000),
        ("1500", "1500", 1500, 1_500_000),
        ("1k", "1k", 1000, 1_000_000),
        ("1000k", "1M", 10**6, 10**9),
        ("1M", "1M", 10**6, 10**9),
        ("1G", "1G", 10**9, 10**12),
        ("1T", "1T", 10**12, 10**15),
        ("1P", "1P", 10**15, 10**18),
        ("1E", "1E", 10**18, 10**21),
        ("1Ki", "1Ki", 1024, 1_024_000),
        ("1Mi", "1Mi", 2**20, 2**20 * 1000),
        ("1Gi", "1Gi", 2**30, 2**30 * 1000),
        ("1Ti", "1Ti", 2**40, 2**40 * 1000),
        ("1Pi", "1Pi", 2**50, 2**50 * 1000),
        ("1Ei", "1Ei", 2**60, 2**60 * 1000),
        ("1024Mi", "1Gi", 2**30, 2**30 * 1000),
        ("1.5Gi", "1536Mi", 3 * 2**29, 3 * 2**29 * 1000),
        ("1.5Ki", "1536", 1536, 1_536_000),
        ("0.5Ki", "512", 512, 512_000),
        ("1023Ki", "1023Ki", 1023 * 1024, 1023 * 1024 * 1000),
        ("100m", "100m", 1, 100),
        ("1000m", "1", 1, 1000),
        ("1500m", "1500m", 2, 1500),
        ("0.5", "500m", 1, 500),
        (".5", "500m", 1, 500),
        ("1.", "1", 1, 1000),
        ("1.G", "1G", 10**9, 10**12),
        ("0.1m", "100u", 1, 1),
        ("1u", "1u", 1, 1),
        ("1n", "1n", 1, 1),
        ("0.1n", "1n", 1, 1),
        ("1.0000000001", "1000000001n", 2, 1001),
        ("12e6", "12e6", 12 * 10**6, 12 * 10**9),
        ("1e3", "1e3", 1000, 1_000_000),
        ("1E3", "1e3", 1000, 1_000_000),
        ("1E+3", "1e3", 1000, 1_000_000),
        ("1e4", "10e3", 10_000, 10_000_000),
        ("1e-3", "1e-3", 1, 1),
        ("1e0", "1", 1, 1000),
        ("1e-12", "1e-9", 1, 1),
        ("1e21", "1e21", 10**21, 10**24),
        ("1000E", "1000E", 10**21, 10**24),
        ("-1", "-1", -1, -1000),
        ("-1.5", "-1500m", -2, -1500),
        ("-0.1n", "-1n", -1, -1),
        ("-1.5Gi", "-1536Mi", -3 * 2**29, -3 * 2**29 * 1000),
    ],
)
def test_reading_printing_rounding(text: str, canonical: str, value: int, milli: int) -> None:
    quantity = parse_quantity(text)
    assert str(quantity) == canonical
    assert quantity.value() == value
    assert quantity.milli_value() == milli


@pytest.mark.parametrize("text", ["8Ei", "100Ei", "999999999999Ei"])
def test_binary_quantities_are_capped(text: str) -> None:
    assert parse_quantity(text).value() == MAX_INT64
    assert parse_quantity(f"-{text}").value() == -MAX_INT64


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "+",
        "-",
        ".",
        "+.",
        "Gi",
        "e3",
        "NaN",
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "1_000",
        "1,000",
        "1K",
        "1g",
        "1 Gi",
        " 1Gi",
        "1Gi ",
        "1Gi\n",
        "1\t",
        "1GiB",
        "1GB",
        "1B",
        "1i",
        "1mi",
        "1ki",
        "1kk",
        "1e",
        "1e+",
        "1ee3",
        "1e3Ki",
        "1e1.5",
        "--1",
        "+-1",
        "1-",
        "1.2.3",
        "0x10",
        "\u0661",
        "\uff11",
        "1\0",
        "1e1000",
        "1e-1000",
        "1e" + "9" * 60,
        "1" * 257,
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert caught.value.text == text
    assert "is not a quantity" in str(caught.value)


def test_refusals_are_both_kinds_of_error() -> None:
    with pytest.raises(ValueError, match="1K"):
        parse_quantity("1K")
    with pytest.raises(VolumeHostError, match="small k"):
        parse_quantity("1K")


def test_refusal_of_a_long_text_is_short_and_can_be_pickled() -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity("x" * 10_000)
    assert len(str(caught.value)) < 300
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.text) == (str(caught.value), caught.value.text)


def test_a_huge_exponent_costs_nothing() -> None:
    with pytest.raises(QuantityError, match="exponent"):
        parse_quantity("1e999999999999999999")
    assert parse_quantity("1e999").value() == 10**999


def test_comparison_is_by_amount() -> None:
    assert parse_quantity("1Gi") == parse_quantity("1024Mi")
    assert parse_quantity("1") == parse_quantity("1000m") == parse_quantity("1e0")
    assert hash(parse_quantity("1Gi")) == hash(parse_quantity("1073741824"))
    assert parse_quantity("1G") < parse_quantity("1Gi") <= parse_quantity("1Gi")
    assert parse_quantity("1Gi") > parse_quantity("1G") >= parse_quantity("1G")
    assert parse_quantity("1") != "1"
    with pytest.raises(TypeError):
        parse_quantity("1") < 2  # type: ignore[operator]  # noqa: B015 - the comparison itself is what raises


def test_arithmetic_keeps_the_format() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1Gi")) == "2Gi"
    assert str(parse_quantity("2Gi") - parse_quantity("512Mi")) == "1536Mi"
    assert str(parse_quantity("0") + parse_quantity("1Gi")) == "1Gi"
    assert str(-parse_quantity("1500m")) == "-1500m"
    assert str(parse_quantity("512Mi") * 2) == str(2 * parse_quantity("512Mi")) == "1Gi"
    with pytest.raises(TypeError):
        parse_quantity("1") + 1  # type: ignore[operator]


def test_from_bytes() -> None:
    assert str(Quantity.of(10 * 2**30)) == "10Gi"
    assert str(Quantity.of(10 * 10**9, QuantityFormat.DECIMAL_SI)) == "10G"
    assert str(Quantity.of(1000)) == "1k"
    assert repr(Quantity.of(2**20)) == "Quantity('1Mi')"


def test_zero_is_false_and_whole() -> None:
    assert not parse_quantity("0")
    assert parse_quantity("1n")
    assert parse_quantity("1Gi").is_whole()
    assert not parse_quantity("1500m").is_whole()


def test_a_fraction_in_binary_form_is_shown_in_decimal() -> None:
    half = Quantity(1024 * 10**9 + 500_000_000, QuantityFormat.BINARY_SI)
    assert str(half) == "1024500m"
    assert Fraction(half.nanos, 10**9) == Fraction(2049, 2)


def test_quantities_are_immutable() -> None:
    with pytest.raises(AttributeError):
        parse_quantity("1").nanos = 5  # type: ignore[misc]


def test_the_module_loads_nothing_heavy() -> None:
    code = (
        "import sys; import volumehost.sdk.quantity; "
        "print(*{'msgspec', 'yaml', 'sqlite3', 'decimal', 'kubernetes'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
