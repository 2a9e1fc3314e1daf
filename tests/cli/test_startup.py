"""What starting the program loads: the budget of its start-up is kept by not importing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

HEAVY = ("kubernetes", "grpc", "pydantic", "msgspec", "yaml", "rich", "sqlite3", "importlib.metadata", "logging.config")
REPORT = """
import sys
from volumehost.cli import main
code = main(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""


def loaded_by(program, *arguments: str, site=None) -> set[str]:
    """The modules that are loaded when the command has run."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT, *arguments],
        capture_output=True,
        text=True,
        env=program.variables(environment=site.environment if site else None),
        timeout=60,
        check=True,
    )
    code, *modules = done.stderr.split()
    assert code == "0", done.stderr
    return set(modules)


def is_loaded(name: str, modules: set[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for module in modules)


@pytest.mark.parametrize("arguments", [["--help"], ["plugins", "list"], ["plugins", "--help"]], ids=" ".join)
def test_nothing_heavy_is_loaded(volumehost, arguments: list[str]) -> None:
    modules = loaded_by(volumehost, *arguments)
    assert "click" in modules
    assert [name for name in HEAVY if is_loaded(name, modules)] == []


def test_help_loads_nothing_of_ours_but_the_command_line(volumehost) -> None:
    modules = loaded_by(volumehost, "--help")
    ours = {name for name in modules if name.startswith("volumehost")}
    assert ours == {
        "volumehost",
        "volumehost.cli",
        "volumehost.cli.command",
        "volumehost.cli.options",
        "volumehost.cli.root_group",
    }
    assert not is_loaded("pluggy", modules)


def test_the_check_finds_what_is_loaded(volumehost, manifest) -> None:
    """Applying a manifest needs msgspec and PyYAML, so this test can fail."""
    path = manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    modules = loaded_by(volumehost, "apply", "-f", str(path))
    assert {"msgspec", "yaml", "sqlite3"} <= modules


def test_a_manifest_in_json_needs_no_reader_of_yaml(volumehost, manifest) -> None:
    path = manifest('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}')
    assert not is_loaded("yaml", loaded_by(volumehost, "apply", "-f", str(path)))


def test_plugins_that_load_heavy_modules_are_not_the_programs_doing(
    volumehost, site, plugin_source: Callable[..., str]
) -> None:
    site.install("acme-heavy", plugin_source("acme.example.com/heavy", top="import sqlite3"))
    modules = loaded_by(volumehost, "plugins", "list", site=site)
    assert "sqlite3" in modules
    assert not is_loaded("msgspec", modules)


#: What no pod of an ``emptyDir`` volume needs. Each cost every command some milliseconds once.
UNNEEDED = (
    *("packaging", "zipfile", "ipaddress", "tomllib", "secrets", "grpc", "google"),
    *(
        "volumehost.control",
        "volumehost.node.operations.attach_operations",
        "volumehost.node.operations.device_operations",
    ),
    *(
        "volumehost.node.operations.expand_operation",
        "volumehost.node.operations.expansion",
        "volumehost.node.operations.map_operation",
    ),
    *(
        "volumehost.node.restart.orphans",
        "volumehost.node.status.recorded",
        "volumehost.node.operations.unmap_operation",
    ),
    *("volumehost.api.validation.claims", "volumehost.api.validation.snapshots", "volumehost.api.validation.storage"),
)


@pytest.mark.root
def test_mounting_loads_what_the_volume_needs_and_of_other_plugins_the_plugin(volumehost, manifest) -> None:
    path = manifest(
        """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - {name: app, image: example.com/app, volumeMounts: [{name: work, mountPath: /work}]}
  volumes: [{name: work, emptyDir: {}}]
"""
    )
    modules = loaded_by(volumehost, "mount", "-f", str(path))
    try:
        assert {"volumehost.node.operations.mount_operation", "volumehost_emptydir.resize"} <= modules
        assert [name for name in UNNEEDED if is_loaded(name, modules)] == []
        others = {name for name in modules if name.startswith(("volumehost_csi", "volumehost_hostpath"))}
        assert others == {f"volumehost_{name}" for name in ("csi", "csi.plugin", "hostpath", "hostpath.plugin")}
    finally:
        loaded_by(volumehost, "unmount", "web")
