"""The example on the page about testing runs as it stands."""

from __future__ import annotations

import textwrap


def test_example(pytestconfig, tmp_path) -> None:
    page = pytestconfig.rootpath.joinpath("docs/reference/testing.rst").read_text()
    _before, _directive, rest = page.partition("A Kubernetes API server\n")[2].partition(".. code-block:: python\n")
    lines = []
    for line in rest.splitlines():
        if line and not line.startswith("   "):
            break
        lines.append(line)
    names: dict = {}
    exec(textwrap.dedent("\n".join(lines)), names)
    names["test_a_busy_server"](tmp_path)
