"""Puts the examples of a command, which its ``--help`` shows, under the command on the page too."""

from __future__ import annotations

from typing import Any

import click
from sphinx.application import Sphinx


def add_examples(app: Sphinx, ctx: click.Context, lines: list[str]) -> None:  # noqa: ARG001 - sphinx-click's signature
    """After the help of a command: its examples, as a session."""
    examples = getattr(ctx.command, "examples", ())
    if not examples:
        return
    lines += ["", ".. code-block:: console", ""]
    for words, line in examples:
        lines += [f"   # {words}"] if words else []
        lines += [f"   $ {line}"]
    lines += [""]


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("sphinx-click-process-epilog", add_examples)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
