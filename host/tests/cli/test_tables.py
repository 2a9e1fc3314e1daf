from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from volumehost.cli.tables import display_width, format_fields, format_table, printable


def test_columns_line_up_and_lines_have_no_blanks_at_their_ends() -> None:
    text = format_table(["name", "state"], [["a", "ready"], ["longer", ""]])
    assert text == "NAME     STATE\na        ready\nlonger\n"


def test_an_empty_cell_before_the_last_column_is_a_dash() -> None:
    assert format_table(["a", "b", "c"], [["x", None, "z"], ["x", "", ""]]).splitlines()[1:] == ["x   -   z", "x   -"]


def test_a_table_without_rows_is_its_headers() -> None:
    assert format_table(["name", "age"], []) == "NAME   AGE\n"


def test_wide_characters_take_two_columns_combining_ones_none_ambiguous_ones_one() -> None:
    assert display_width("日本") == 4
    assert display_width("e\u0301") == 1
    assert display_width("·") == 1
    lines = format_table(["name", "x"], [["日本", "1"], ["abcd", "2"], ["e\u0301", "3"]]).splitlines()
    assert [display_width(line) for line in lines] == [display_width(lines[0])] * 4


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb") == "a\\x1b[2Jb"
    assert printable("a\nb\tc") == "a b\\tc"
    assert printable("\u202eevil") == "\\u202eevil"
    assert printable("\x9b31m") == "\\x9b31m"
    assert printable("naïve 日本 /srv/x") == "naïve 日本 /srv/x"


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=5))
def test_any_content_keeps_one_line_per_row_and_aligned_columns(rows: list[tuple[str, str]]) -> None:
    lines = format_table(["first", "second"], rows).split("\n")
    assert len(lines) == len(rows) + 2
    assert all(char.isprintable() for line in lines for char in line)


def test_fields_line_up_and_absent_ones_are_left_out() -> None:
    text = format_fields([("Name", "web"), ("Namespace", "default"), ("Node", None), ("Phase", "")], indent=2)
    assert text == "  Name:       web\n  Namespace:  default\n  Phase:\n"
