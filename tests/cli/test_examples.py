"""The examples of ``--help`` run as they are written, one after the other, in one root directory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click
import pytest

from volumehost.cli import program
from volumehost.cli.command import LazyGroup

pytestmark = pytest.mark.root

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]
"""
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, labels: {{app: web}}}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"""
VOLUME = """\
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /srv}}
"""


def examples() -> list[str]:
    """Every example of every command, in the order of the help pages."""
    found: list[str] = []

    def walk(group: LazyGroup) -> None:
        found.extend(line for _, line in group.examples)
        ctx = click.Context(group)
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            if isinstance(command, LazyGroup):
                walk(command)
            else:
                found.extend(line for _, line in command.examples)

    walk(program)
    return found


@pytest.mark.parametrize("line", dict.fromkeys(examples()))
def test_the_example_runs(volumehost, mounts_below, line: str) -> None:
    work = volumehost.cwd
    (work / "pod.yaml").write_text(POD)
    (work / "claim.yaml").write_text(CLAIM.format(name="data"))
    (work / "manifests").mkdir()
    (work / "manifests" / "volume.yaml").write_text(VOLUME)
    (work / "manifests" / "claims.yaml").write_text(CLAIM.format(name="scratch"))
    prepared = volumehost("mount", "-f", "pod.yaml")
    assert prepared.code == 0, prepared.err
    assert volumehost("apply", "-f", "claim.yaml", "-f", "manifests").code == 0
    (Path(volumehost.environment["HOME"]) / ".config/fish/completions").mkdir(parents=True)
    path = f"{Path(volumehost.start.__globals__['PROGRAM']).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", line],
        capture_output=True,
        text=True,
        env={**volumehost.variables(), "PATH": path},
        cwd=work,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    mounts_below(volumehost.root_dir)
