"""The README is true as it stands: its sessions are played, its files used, its story run."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from page_session import blocks, matches

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.timeout(300)]


@pytest.fixture
def readme(repository):
    return (repository / "README.md").read_text()


def test_the_sessions_are_true_as_they_are_written(play_text, readme):
    # GitHub shows no captions: a file's name stands before its block.
    captioned = re.sub(r"`([\w.-]+)`(.*):\n\n```yaml\n", r"\n```{code-block} yaml\n:caption: \1\n\n", readme)
    assert [block.file for block in blocks(captioned) if block.file] == ["pod.yaml", "wrong.yaml"]
    differences = play_text(captioned)
    assert not differences, "\n\n".join(differences)


def test_the_story_of_a_third_party_plugin_is_true_as_it_is_written(repository, readme):
    (shown,) = [block.text for block in blocks(readme) if block.text.startswith("The host runs.")]
    command = [sys.executable, str(repository / "examples" / "plugin_while_running.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert matches(shown, done.stdout), done.stdout


def test_what_it_links_to_is_there(repository, readme):
    links = re.findall(r"\]\(([^)#]+)\)", readme)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("http") and not (repository / link).exists()] == []
