"""What a storm tells: its figures as a table, and what it found broken, with the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass
class Findings:
    """What came of a storm. ``figures`` are (name, value) rows; ``broken`` says which promises were not kept.

    ``tables`` have a title and rows, the first of which is the head.
    """

    title: str
    seed: int
    figures: list[tuple[str, str]] = field(default_factory=list)
    tables: list[tuple[str, list[Sequence[str]]]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)

    def figure(self, name: str, value: object) -> None:
        """Add a row."""
        self.figures.append((name, str(value)))

    def text(self) -> str:
        """All of it, for people."""
        lines = [self.title, "-" * len(self.title), *columns([("figure", ""), *self.figures])]
        for title, rows in self.tables:
            lines += ["", title, *columns(rows)]
        if self.broken:
            lines += ["", f"BROKEN ({len(self.broken)}), seed {self.seed}:"]
            lines += [f"  - {each}" for each in self.broken]
            lines += [f"  evidence: {each}" for each in self.evidence]
        return "\n".join([*lines, ""])


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """The rows with their cells aligned."""
    listed = [tuple(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in listed]


def percentile(values: Iterable[float], share: float) -> float:
    """The value that ``share`` (0 to 1) of them do not exceed; 0 for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
