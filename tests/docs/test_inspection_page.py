"""Every kind of finding stands on the page about inspecting and repairing, and no other."""

from __future__ import annotations

import re

from volumehost.inspection.kinds import KINDS


def test_the_table_has_every_kind_of_finding(read_source):
    found = re.findall(r"^\| `([a-z-]+)` \|", read_source("inspect-and-repair.md"), re.MULTILINE)
    assert sorted(found) == sorted(KINDS)
