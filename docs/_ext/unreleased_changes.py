"""The directive ``unreleased-changes``: the changelog fragments of a distribution that no release has collected yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

VERSION, DATE = "Next", "not released yet"


def draft(distribution: Path) -> str:
    """What towncrier would write for the next release, as Markdown, "" without fragments."""
    if not any(path.suffix == ".md" for path in (distribution / "changelog.d").iterdir() if path.name[0] != "."):
        return ""
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", VERSION, "--date", DATE]
    done = subprocess.run(command, cwd=distribution, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"towncrier cannot collect the fragments of {distribution}: {done.stderr.strip()}")
    return done.stdout


class UnreleasedChanges(SphinxDirective):
    """``{unreleased-changes} ../../host``: for Markdown pages; the path is from the page to the distribution."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = Path(self.env.doc2path(self.env.docname))
        distribution = (page.parent / self.arguments[0]).resolve()
        for fragment in (distribution / "changelog.d").iterdir():
            self.env.note_dependency(str(fragment))
        return self.parse_text_to_nodes(draft(distribution), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("unreleased-changes", UnreleasedChanges)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
