"""Prints figures as one table: ours, the peer's, the ratio, the bound and the aim."""

from __future__ import annotations

from collections.abc import Iterable

from bench.measuring import Figure


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def _amount(value: float, unit: str) -> str:
    return duration(value) if unit else f"{value:g}"


def _bound(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def table(title: str, figures: Iterable[Figure]) -> str:
    """The rows under their title, columns aligned."""
    head = ("figure", "ours", "anchor", "", "ratio", "at most", "aim", "")
    rows = [head]
    for figure in figures:
        rows.append(
            (
                figure.name,
                _amount(figure.ours, figure.unit),
                _amount(figure.anchor, figure.unit),
                figure.anchor_name,
                f"{figure.ratio:.3g}",
                _bound(figure.at_most),
                _bound(figure.aim),
                figure.verdict,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([title, "-" * len(title), *lines, ""])
