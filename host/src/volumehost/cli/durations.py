"""Durations as people type and read them: ``30s``, ``2m``, ``1h30m``. Used by ``--timeout`` and by ages in tables."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _ParamType = click.ParamType[float]
else:  # generic for type checkers alone: older versions of click do not know it
    _ParamType = click.ParamType

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LONGEST = 10 * 365 * 86400.0


def parse_duration(text: str) -> float:
    """Seconds of ``text``: parts of number and unit (ms, s, m, h, d), or a bare number of seconds.

    :raises ValueError: it is not a duration, is negative, or longer than ten years.
    """
    stripped = text.strip()
    if re.fullmatch(r"\d+(?:\.\d+)?", stripped, re.ASCII):
        seconds = float(stripped)
    else:
        parts = _PART.findall(stripped) if stripped.isascii() else []
        if not parts or "".join(number + unit for number, unit in parts) != stripped:
            raise ValueError(f"{text!r} is not a duration such as 30s, 2m or 1h30m")
        seconds = math.fsum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > _LONGEST:
        raise ValueError(f"{text!r} is longer than ten years")
    return seconds


def format_duration(seconds: float) -> str:
    """A short form, two units at most, as ``kubectl`` shows ages: ``45s``, ``3m20s``, ``5h``, ``12d``."""
    total = max(0, int(seconds))
    if total < 120:
        return f"{total}s"
    for size, unit, below, smaller, until in (
        (60, "m", 1, "s", 600),
        (60, "m", None, "", 10800),
        (3600, "h", 60, "m", 28800),
        (3600, "h", None, "", 172800),
        (86400, "d", 3600, "h", 691200),
    ):
        if total < until:
            whole, rest = divmod(total, size)
            part = rest // below if below else 0
            return f"{whole}{unit}{part}{smaller}" if part else f"{whole}{unit}"
    return f"{total // 86400}d"


class DurationType(_ParamType):
    """A click type: the option's value is seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds of what was typed; a usage error otherwise."""
        if isinstance(value, float | int):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
