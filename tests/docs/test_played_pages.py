"""The pages with sessions do what they show: their files are written, their commands run, their output compared."""

from __future__ import annotations

import shutil

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.timeout(300)]

PAGES = [
    "quick-start.md",
    "csi.md",
    "agent.md",
    "write-a-plugin.md",
    "write-a-driver.md",
    "embedding.md",
    "operating.md",
    "explain-and-plan.md",
    "kubernetes.md",
    "inspect-and-repair.md",
    "volumes/projected.md",
]
#: Programs of Debian's packages that a page uses besides our own.
PROGRAMS = {"containers.md": ["bwrap", "crun"]}


@pytest.mark.parametrize("name", [*PAGES, *PROGRAMS])
def test_a_page_is_true_as_it_is_written(play_page, name):
    missing = [program for program in PROGRAMS.get(name, ()) if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    differences = play_page(name)
    assert not differences, "\n\n".join(differences)
