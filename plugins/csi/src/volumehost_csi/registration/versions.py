"""Which version a driver registers with: the highest that this host can speak (CSI-REG-03 to -06)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

#: The major version of CSI that is spoken here.
ACCEPTED_MAJOR = 1

_SHOWN_VERSIONS = 8
_MOST_DIGITS = 18

# Two numbers at least; the first without a leading zero; whatever follows the numbers is of no interest (CSI-REG-03).
_VERSION = re.compile(r"\s*v?(0|[1-9][0-9]*)((?:\.[0-9]+)+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Version:
    """The numbers that a version begins with."""

    numbers: tuple[int, ...]

    def newer_than(self, other: Version) -> bool:
        """Whether this one is strictly higher; missing numbers count as zero (CSI-REG-05)."""
        pairs = list(zip_longest(self.numbers, other.numbers, fillvalue=0))
        return [mine for mine, _ in pairs] > [theirs for _, theirs in pairs]

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))


def parse_version(text: str) -> Version | None:
    """The version that a text begins with, None when it begins with none (CSI-REG-03)."""
    found = _VERSION.match(text)
    if found is None:
        return None
    numbers = [found[1], *found[2].split(".")[1:]]
    if any(len(number) > _MOST_DIGITS for number in numbers):
        return None
    return Version(tuple(map(int, numbers)))


def highest_supported(versions: Iterable[str]) -> Version:
    """The version to use among those that a driver offers (CSI-REG-04).

    :raises ValueError: it offers none that this host can speak; says which it offers.
    """
    offered = list(versions)
    if not offered:
        raise ValueError("the driver offers no version at all")
    best: Version | None = None
    for version in filter(None, map(parse_version, offered)):
        if version.numbers[0] <= ACCEPTED_MAJOR and (best is None or version.newer_than(best)):
            best = version
    if best is None or best.numbers[0] != ACCEPTED_MAJOR:
        shown = ", ".join(repr(text[:32]) for text in offered[:_SHOWN_VERSIONS])
        more = f" and {len(offered) - _SHOWN_VERSIONS} more" if len(offered) > _SHOWN_VERSIONS else ""
        raise ValueError(
            f"none of the versions that it offers ({shown}{more}) can be used: this host speaks {ACCEPTED_MAJOR}.x"
        )
    return best
