"""The shapes on the page about output for programs are those that the commands print."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

#: Shapes that test_growing_and_snapshots.py and test_inspect_and_repair.py look at.
ELSEWHERE = {
    "inspect",
    "repair",
    "expand",
    "snapshot create",
    "snapshot list",
    "snapshot list --driver",
    "snapshot restore",
    "snapshot delete",
}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli-output.md"


def documented() -> dict[str, Any]:
    """Heading to the JSON below it."""
    found = re.findall(r"^## `([^`]+)`$.*?^```json\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return {heading: json.loads(text) for heading, text in found}


def shape(value: Any) -> Any:
    """The names of fields, in order, and of lists the first item that says something."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value and isinstance(value[0], dict) else []
    return None


def same(page: Any, real: Any) -> bool:
    """Whether the page shows all fields of what is real, in its order; an empty list on the page says nothing."""
    if isinstance(page, dict):
        return (
            isinstance(real, dict) and list(page) == list(real) and all(same(page[name], real[name]) for name in page)
        )
    if isinstance(page, list):
        return isinstance(real, list) and (not page or not real or same(page[0], real[0]))
    return not isinstance(real, dict | list)


@pytest.mark.root
def test_every_shape_is_as_documented(volumehost, manifest, pod_manifest, mounts_below, site, plugin_source) -> None:
    pages = documented()
    path = manifest(pod_manifest(scratch="emptyDir: {medium: Memory, sizeLimit: 1Mi}"))
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    site.install("acme-bad", plugin_source("acme.example.com/bad", top="import missing_dep"))
    printed = {
        "apply": volumehost("apply", "-f", "-", "-o", "json", stdin=config).json(),
        "mount": volumehost("mount", "-f", path, "-o", "json").json(),
        "get": volumehost("get", "pods", "-o", "json").json(),
        "status": volumehost("status", "-o", "json").json(),
        "explain": volumehost("explain", "web", "-o", "json").json(),
        "plan": volumehost("plan", "--unmount", "web", "-o", "json").json(),
        "export": volumehost("export", "web").json(),
        "export --format bwrap": volumehost("export", "web", "--format", "bwrap", "-o", "json").json(),
        "export --format oci": volumehost("export", "web", "--format", "oci").json(),
        "unmount": volumehost("unmount", "web", "-o", "json").json(),
        "delete": volumehost("delete", "cm", "c", "-o", "json").json(),
        "plugins list": volumehost("plugins", "list", "-o", "json").json(),
        "plugins check": volumehost("plugins", "check", "-o", "json", environment=site.environment).json(),
        "drivers list": volumehost("drivers", "list", "-o", "json").json(),
        "version": volumehost("version", "-o", "json").json(),
    }
    assert mounts_below(volumehost.root_dir) == []
    assert pages.keys() - ELSEWHERE == printed.keys()
    for command, real in printed.items():
        assert same(shape(pages[command]), shape(real)), (command, shape(real))
        shown = [name for name, value in pages[command].items() if isinstance(value, list) and value]
        assert command in {"get", "status"} or all(real[name] for name in shown), command
