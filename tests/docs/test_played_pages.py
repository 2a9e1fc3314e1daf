"""The pages with sessions do what they show: their files are written, their commands run, their output compared."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.timeout(300)]

PAGES = ["quick-start.md", "csi.md", "write-a-plugin.md", "write-a-driver.md", "embedding.md", "operating.md"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_true_as_it_is_written(play_page, name):
    differences = play_page(name)
    assert not differences, "\n\n".join(differences)
