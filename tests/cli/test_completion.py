"""Shell completion: commands, options, and what is there: kinds, names, namespaces, plugins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: worker, namespace: batch}
spec: {containers: [{name: c, image: i}]}
"""


@pytest.fixture
def complete(volumehost, manifest):
    """What bash is offered for a line that ends where the cursor is."""
    assert volumehost("apply", "-f", manifest(PODS)).code == 0

    def offered(line: str, environment: dict[str, str] | None = None) -> list[str]:
        words = line.split(" ")
        variables = {
            "_VOLUMEHOST_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            **(environment or {}),
        }
        done = volumehost(environment=variables)
        assert done.code == 0
        assert done.err == ""
        return [entry.partition(",")[2] for entry in done.lines() if entry]

    return offered


def test_commands_and_options(complete) -> None:
    assert {"mount", "unmount", "status", "plugins"} <= set(complete("volumehost "))
    assert complete("volumehost mo") == ["mount"]
    assert complete("volumehost plugins ") == ["list", "show", "check"]
    assert {"--filename", "--timeout", "--wait", "--root-dir"} <= set(complete("volumehost mount --"))
    assert complete("volumehost get pods -o ") == ["table", "json", "yaml", "name"]


def test_kinds_names_namespaces_and_plugins(complete) -> None:
    assert {"pods", "persistentvolumeclaims", "secrets"} <= set(complete("volumehost get "))
    assert complete("volumehost get persistentvolumec") == ["persistentvolumeclaims"]
    assert complete("volumehost get pods ") == ["web"]
    assert complete("volumehost describe po w") == ["web"]
    assert complete("volumehost -n batch get pods ") == ["worker"]
    assert complete("volumehost delete pod -n batch ") == ["worker"]
    assert complete("volumehost mount ") == ["web"]
    assert complete("volumehost unmount w") == ["web"]
    assert complete("volumehost status -n batch ") == ["worker"]
    assert set(complete("volumehost get pods -n ")) == {"batch", "default"}
    own = ("configmap", "csi", "downward-api", "empty-dir", "host-path", "projected", "secret")
    assert complete("volumehost plugins show ") == [f"kubernetes.io/{name}" for name in own]


def test_nothing_is_offered_and_nothing_is_said_where_nothing_can_be_known(complete, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "absent", tmp_path / "file", "/"):
        assert complete("volumehost get pods ", {"VOLUMEHOST_ROOT_DIR": str(root)}) == []
    assert not (tmp_path / "absent").exists()
    assert complete("volumehost get nonsense ") == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_script_works_in_a_real_bash(volumehost, complete) -> None:
    path = Path(volumehost.start.__globals__["PROGRAM"]).parent
    script = (
        f'export PATH="{path}:$PATH"\n'
        'eval "$(volumehost completion bash)"\n'
        "complete -p volumehost\n"
        "COMP_WORDS=(volumehost get pods w); COMP_CWORD=3\n"
        "_volumehost_completion volumehost\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        env=volumehost.variables(),
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "web"
