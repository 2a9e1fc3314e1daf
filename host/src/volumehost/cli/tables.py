"""Plain tables for a terminal, in columns that line up also for wide characters; every command prints with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GAP = "   "


def printable(text: object) -> str:
    """One line of text that cannot steer a terminal: control and formatting characters become escapes.

    Names and errors come from manifests, plugins and drivers; none of them may move the cursor or hide a line.
    """
    line = str(text)
    if line.isascii() and line.isprintable():
        return line
    return "".join(char if char.isprintable() else _escape(char) for char in line)


def _escape(char: str) -> str:
    if char == "\n":
        return " "
    return char.encode("unicode_escape").decode("ascii") if ord(char) >= 0x80 else repr(char)[1:-1]


def display_width(text: str) -> int:
    """Columns that the text takes: two for wide characters, none for combining ones, one for ambiguous ones."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    width = 0
    for char in text:
        if category(char) in {"Mn", "Me", "Cf"}:
            continue
        width += 2 if east_asian_width(char) in "WF" else 1
    return width


def pad(text: str, width: int) -> str:
    """The text with blanks up to ``width`` columns."""
    return text + " " * (width - display_width(text))


def format_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The table as text, headers in capitals, no blanks at the ends of lines, ending with a newline.

    Empty cells show as ``-``, but for the last column.
    """
    last = len(headers) - 1
    lines = [[header.upper() for header in headers]]
    for row in rows:
        cells = [printable(cell) if cell is not None else "" for cell in row]
        lines.append([cell or ("-" if number < last else "") for number, cell in enumerate(cells)])
    widths = [max(display_width(line[column]) for line in lines) for column in range(len(headers))]
    text = [GAP.join(pad(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join(text) + "\n"


def format_fields(fields: Iterable[tuple[str, object]], indent: int = 0) -> str:
    """``Name:  value`` lines whose values line up; fields whose value is None are left out."""
    shown = [(f"{name}:", printable(value)) for name, value in fields if value is not None]
    width = max((display_width(name) for name, _ in shown), default=0)
    margin = " " * indent
    return "".join(f"{margin}{pad(name, width)}  {value}".rstrip() + "\n" for name, value in shown)
