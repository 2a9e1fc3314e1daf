"""The page on testing plugins: it is played as it is written, and lists every conformance check as the code has it."""

from __future__ import annotations

import re

import pytest

from volumehost.testing.conformance.suite import all_checks


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.xdist_group("docs")
@pytest.mark.timeout(300)
def test_the_page_is_true_as_it_is_written(play_page):
    differences = play_page("testing-a-plugin.md")
    assert not differences, "\n\n".join(differences)


def test_every_check_stands_on_the_page_with_what_must_hold(read_source):
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", read_source("testing-a-plugin.md"), re.MULTILINE)
    rows = [row for row in rows if not row[0].startswith("volumehost_")]
    assert rows == [(check.name, check.statement) for check in all_checks()]
