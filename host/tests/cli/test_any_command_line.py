"""Whatever is typed: one of the exit codes, an error in words, nothing unexpected."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volumehost.cli import main

#: Not those that mount, nor "-", which would read the test's standard input.
WORDS = [
    "get",
    "describe",
    "delete",
    "status",
    "apply",
    "plugins",
    "show",
    "completion",
    "version",
    "pods",
    "cm",
    "pod/web",
    "cm,po",
    "web",
    "bash",
    "--help",
    "--version",
    "-A",
    "-l",
    "app=web",
    "-o",
    "json",
    "name",
    "table",
    "-n",
    "mine",
    "-v",
    "--verbose",
    "--timeout",
    "5s",
    "-f",
    "/dev/null",
    "--node-name",
    "--",
    "",
]
WORD = st.sampled_from(WORDS) | st.text(max_size=8).filter(lambda text: text != "-")


@pytest.fixture(scope="module")
def root_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("any") / "root dir"
    document = root.parent / "c.yaml"
    document.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, labels: {app: web}}\n")
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["--root-dir", str(root), "apply", "-f", str(document)]) == 0
    return root


@settings(max_examples=300, deadline=None)
@given(st.lists(WORD, max_size=7))
def test_any_command_line_ends_with_an_exit_code_and_words(root_dir: Path, words: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["--root-dir", str(root_dir), *words])
    assert code in {0, 1, 2, 3}, (words, err.getvalue())
    assert "error: unexpected " not in err.getvalue(), (words, err.getvalue())
    if code:
        assert "error: " in err.getvalue() or "Usage: " in err.getvalue()
    assert all(char.isprintable() or char == "\n" for char in err.getvalue()), (words, err.getvalue())
