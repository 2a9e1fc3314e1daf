"""Kubernetes quantities: ``10Gi``, ``250m``, ``1.5``, ``2e3``. For plugin authors, manifests and the command line.

The grammar and the canonical form are those of Kubernetes: a signed decimal number and one suffix, either decimal
(``n u m k M G T P E``), binary (``Ki Mi Gi Ti Pi Ei``) or an exponent (``e3``, ``E-2``). Nothing smaller than a
billionth is kept: what is finer is rounded up, away from zero. A binary quantity above 2**63 - 1 is capped there.

Stricter than Kubernetes' own parser in one point: a sign or a dot without any digit is refused, not read as zero.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from enum import StrEnum

from volumehost.errors import QuantityError

_NANOS = 10**9
_NANO_DIGITS = 9
_MAX_INT64 = 2**63 - 1
_KIBI = 1024
#: Longer numbers and larger exponents are nobody's storage: they are refused before they cost memory.
_MAX_LENGTH = 256
_MAX_EXPONENT = 999

_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?", re.ASCII)

_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class QuantityFormat(StrEnum):
    """How a quantity was written, and so how it is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. Compared by amount alone; immutable; ``str`` gives the canonical form.

    ``nanos`` is the amount in billionths. Make one with :func:`parse_quantity` or :meth:`of`.
    """

    nanos: int
    format: QuantityFormat = QuantityFormat.DECIMAL_SI

    @classmethod
    def of(cls, value: int, format: QuantityFormat = QuantityFormat.BINARY_SI) -> Quantity:
        """A whole amount, such as a size in bytes."""
        return cls(value * _NANOS, format)

    def value(self) -> int:
        """The amount as an integer, rounded up (away from zero)."""
        return _divide_up(self.nanos, _NANOS)

    def milli_value(self) -> int:
        """The amount in thousandths, rounded up (away from zero)."""
        return _divide_up(self.nanos, _NANOS // 1000)

    def is_whole(self) -> bool:
        """Whether the amount is an integer."""
        return self.nanos % _NANOS == 0

    def __str__(self) -> str:
        """The canonical form: no fraction, the largest suffix that needs none, the format that it was written in."""
        if self.nanos == 0:
            return "0"
        # A binary suffix cannot show a fraction, and below 1024 there is none to show.
        if self.format is QuantityFormat.BINARY_SI and self.is_whole() and abs(self.nanos) >= _KIBI * _NANOS:
            return _canonical_binary(self.nanos // _NANOS)
        return _canonical_decimal(self.nanos, exponent_form=self.format is QuantityFormat.DECIMAL_EXPONENT)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.nanos >= other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        return Quantity(self.nanos * factor, self.format)

    __rmul__ = __mul__


def parse_quantity(text: str) -> Quantity:
    """Read a quantity.

    :raises QuantityError: (a ValueError) the text is not one; it is named in the message.
    """
    if len(text) > _MAX_LENGTH:
        raise QuantityError(text, f"it is longer than {_MAX_LENGTH} characters")
    return _parsed(text)


# The same few amounts are read again for every volume of every pod; a quantity never changes, so it can be shared.
@functools.lru_cache(maxsize=512)
def _parsed(text: str) -> Quantity:
    match = _QUANTITY.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise QuantityError(text, _why_not(text))
    sign, whole, fraction, suffix, exponent = match.groups(default="")
    digits = int(whole + fraction)
    if suffix.endswith("i"):
        power = 10 * _BINARY_SUFFIXES.index(suffix)
        nanos = min(_scale(digits << power, _NANO_DIGITS - len(fraction)), _MAX_INT64 * _NANOS)
        written = QuantityFormat.BINARY_SI
        if 0 < nanos < _NANOS:
            written = QuantityFormat.DECIMAL_SI
    else:
        power = int(exponent[:8]) if exponent else _DECIMAL_EXPONENTS[suffix]
        if abs(power) > _MAX_EXPONENT:
            raise QuantityError(text, f"its exponent is beyond {_MAX_EXPONENT}")
        nanos = _scale(digits, power + _NANO_DIGITS - len(fraction))
        written = QuantityFormat.DECIMAL_EXPONENT if exponent else QuantityFormat.DECIMAL_SI
    return Quantity(-nanos if sign == "-" else nanos, written)


def _why_not(text: str) -> str:
    """The likeliest mistake, in words."""
    if not text:
        return "it is empty"
    if text != text.strip() or " " in text:
        return "it contains white space"
    if re.fullmatch(r"[+-]?[0-9.]+[KB]|[+-]?[0-9.]+[KMGTPEk]i?B", text):
        return "its suffix is not one of n u m k M G T P E Ki Mi Gi Ti Pi Ei (thousands are a small k, bytes need no B)"
    if "_" in text:
        return "digits cannot be grouped"
    return "it must be a decimal number with one of the suffixes n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent"


def _scale(digits: int, power: int) -> int:
    """``digits * 10**power``, rounded up."""
    return digits * 10**power if power >= 0 else _divide_up(digits, 10**-power)


def _divide_up(amount: int, divisor: int) -> int:
    return -(-amount // divisor) if amount >= 0 else amount // divisor


def _canonical_binary(value: int) -> str:
    step = 0
    while value % _KIBI == 0 and step < len(_BINARY_SUFFIXES) - 1:
        value //= _KIBI
        step += 1
    return f"{value}{_BINARY_SUFFIXES[step]}"


def _canonical_decimal(nanos: int, *, exponent_form: bool) -> str:
    exponent = -_NANO_DIGITS
    while nanos % 1000 == 0 and (exponent_form or exponent < max(_DECIMAL_SUFFIXES)):
        nanos //= 1000
        exponent += 3
    if exponent_form:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIXES[exponent]}"
