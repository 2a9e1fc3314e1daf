"""What comes after the first mount, with the real CSI driver: a snapshot, a volume made of it, growth, the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.root

OBJECTS = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {claim}}}
spec:
  accessModes: [ReadWriteOnce]
  resources: {{requests: {{storage: 32Mi}}}}
  storageClassName: loop
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers: [{{name: app, image: example.com/app, volumeMounts: [{{name: v, mountPath: /v}}]}}]
  volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim}}}}}]
"""


@pytest.fixture
def root() -> Iterator[str]:
    """A root directory whose path leaves room for a socket's name."""
    path = tempfile.mkdtemp(prefix="vh", dir="/tmp")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def run(volumehost: Any, root: str, mounts_below: Callable[[Path], list[str]]) -> Iterator[Callable[..., Any]]:
    """Runs the program there; everything is unmounted in the end."""

    def program(*arguments: str, code: int = 0, **options: Any) -> Any:
        done = volumehost(*arguments, root_dir=root, **options)
        assert done.code == code, done.err
        return done

    yield program
    program("unmount", "--all")
    mounts_below(Path(root))


def test_a_snapshot_is_of_its_moment_and_a_claim_grows(run: Callable[..., Any]) -> None:
    def path_of(mounted: Any) -> str:
        return str(mounted.json()["pods"][0]["volumes"][0]["path"])

    manifest = OBJECTS.format(claim="data") + POD.format(name="web", claim="data")
    before = path_of(run("mount", "-f", "-", "-o", "json", stdin=manifest))
    with open(os.path.join(before, "note"), "w", encoding="utf-8") as file:
        file.write("monday")
        file.flush()
        os.fsync(file.fileno())
    assert run("snapshot", "create", "monday", "--from", "data").out == "volumesnapshot/monday ready\n"
    with open(os.path.join(before, "note"), "w", encoding="utf-8") as file:
        file.write("tuesday")
    (listed,) = run("snapshot", "list", "--driver", "loop.csi.volumehost", "-o", "json").json()["snapshots"]
    assert listed["snapshot"] == "default/monday"
    run("snapshot", "restore", "monday", "copy")
    copy = path_of(run("mount", "-f", "-", "-o", "json", stdin=POD.format(name="reader", claim="copy")))
    assert Path(copy, "note").read_text(encoding="utf-8") == "monday"
    assert Path(before, "note").read_text(encoding="utf-8") == "tuesday"
    run("unmount", "reader")
    assert "follows when it is mounted" in run("expand", "copy", "64Mi").out
    copy = path_of(run("mount", "-f", "-", "-o", "json", stdin=POD.format(name="reader", claim="copy")))
    assert os.statvfs(copy).f_blocks * os.statvfs(copy).f_frsize > 40 * 2**20
    assert run("get", "pvc", "copy", "-o", "json").json()["status"]["capacity"] == {"storage": "64Mi"}
    assert run("snapshot", "delete", "monday").out == "volumesnapshot/monday deleted\n"
    assert run("snapshot", "list", "--driver", "loop.csi.volumehost", "-o", "json").json()["snapshots"] == []
    run("unmount", "--all")
    assert "No volumeattachments found" in run("get", "volumeattachments").err
