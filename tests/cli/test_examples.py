"""The examples of ``--help`` run as they are written, one after the other, in one root directory."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import click
import pytest

from volumehost.cli import program
from volumehost.cli.command import LazyGroup
from volumehost.mount.mounter import LinuxMounter
from volumehost_csi_kit.fake import FakeDriverProcess

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


DRIVER, SOCKET = "csi.example.com", "/run/acme/csi.sock"
MODULE = """
import json, sys
from volumehost_csi_kit.fake.__main__ import main as fake

def main():
    sys.argv[1:] = ["--state", {state!r}, "--config", json.dumps({{"name": "csi.example.com"}})]
    return fake()
"""
OBJECTS = """\
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: csi.example.com}
spec: {attachRequired: false}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: csi.example.com
allowVolumeExpansion: true
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: nightly, annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}}
driver: csi.example.com
deletionPolicy: Delete
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
"""


def concerns_csi(line: str) -> bool:
    """Whether an example needs a driver."""
    return line.startswith(("volumehost drivers", "volumehost snapshot", "volumehost expand"))


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


@pytest.mark.parametrize("line", dict.fromkeys(line for line in examples() if not concerns_csi(line)))
def test_the_example_runs(volumehost, mounts_below, run_example, cluster, line: str) -> None:
    work = volumehost.cwd
    (work / "pod.yaml").write_text(POD)
    (work / "claim.yaml").write_text(CLAIM.format(name="data"))
    (work / "config.json").write_text("{}")
    (work / "manifests").mkdir()
    (work / "manifests" / "volume.yaml").write_text(VOLUME)
    (work / "manifests" / "claims.yaml").write_text(CLAIM.format(name="scratch"))
    prepared = volumehost("mount", "-f", "pod.yaml")
    assert prepared.code == 0, prepared.err
    assert volumehost("apply", "-f", "claim.yaml", "-f", "manifests").code == 0
    (Path(volumehost.environment["HOME"]) / ".config/fish/completions").mkdir(parents=True)
    for file in re.findall(r"--kubeconfig (\S+)", line):
        cluster(work / file)
    if line.startswith("volumehost controller"):
        line = f"{line} 2> log & until grep -q 'at work:' log; do sleep 0.05; done; kill $!; wait $!"
    if line.startswith("volumehost agent") and "--print-unit" not in line:  # it goes on until it is told to end
        line = f'{line} & until test -S "$VOLUMEHOST_ROOT_DIR/agent.sock"; do sleep 0.05; done; kill $!; wait $!'
    if line.endswith(" --watch"):  # it goes on until it is interrupted
        line = interrupted(line, "mounted")
    run_example(line)
    mounts_below(volumehost.root_dir)


@pytest.mark.parametrize("line", dict.fromkeys(line for line in examples() if concerns_csi(line)))
def test_the_example_of_csi_runs(vendor, run_example, line: str) -> None:
    """With the driver that the examples name: installed, or serving at the socket that they name."""
    command = " ".join(line.split()[:3])
    if command in ("volumehost drivers register", "volumehost drivers unregister"):
        vendor.serve()
        if "unregister" in command:
            vendor("drivers", "register", DRIVER, SOCKET)
    else:
        vendor.install()
    if command == "volumehost drivers logs":
        vendor("drivers", "show", DRIVER, "--start")
    if not command.startswith("volumehost drivers"):
        vendor("apply", "-f", vendor.manifest())
        for name in ("monday", "tuesday"):
            if re.search(f"(restore|delete) .*{name}", line):
                vendor("snapshot", "create", name, "--from", "data")
    if line.endswith(" -f"):  # it follows the log until it is interrupted
        line = f"{interrupted(line, 'serves')} || test $? = 130"
    run_example(line, **vendor.variables)


def interrupted(line: str, shown: str) -> str:
    """The command, interrupted once it shows that; in the background an interrupt would otherwise be ignored."""
    begun = f"env --default-signal=INT {line} > shown &"
    return f"{begun} until grep -q {shown} shown; do sleep 0.05; done; kill -INT $!; wait $!"


# --- the world of the examples --------------------------------------------------------------------------------------


@pytest.fixture
def cluster():
    """Begins a cluster, and writes a kubeconfig for it to a file."""
    from volumehost.testing.api_server import ApiServer

    with ExitStack() as stack:
        yield lambda file: stack.enter_context(ApiServer()).kubeconfig(file)


@pytest.fixture
def run_example(volumehost):
    """Run a line as a user's shell would."""

    def run(line: str, **variables: str) -> None:
        path = f"{Path(volumehost.start.__globals__['PROGRAM']).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", line],
            capture_output=True,
            text=True,
            env={**volumehost.variables(), "PATH": path, **variables},
            cwd=volumehost.cwd,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr

    return run


class Vendor:
    """A driver called as in the examples, and the objects that they speak of."""

    def __init__(self, volumehost, site: Path, state: Path) -> None:
        self._volumehost, self._site, self._state = volumehost, site, state
        self._info = site / "acme_driver-1.0.dist-info"
        self._process: FakeDriverProcess | None = None
        known = {"snapshot_id": "snap-17", "name": "before", "source_volume_id": "vol-1", "size_bytes": 1 << 30}
        state.write_text(json.dumps({"volumes": {}, "snapshots": {"snap-17": known}}))

    def __call__(self, *arguments: str) -> None:
        done = self._volumehost(*arguments, environment=self.variables)
        assert done.code == 0, done.err

    @property
    def variables(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self._site)}

    def install(self) -> None:
        (self._site / "acme_driver.py").write_text(MODULE.format(state=str(self._state)))
        self._info.mkdir()
        (self._info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-driver\nVersion: 1.0\n")
        (self._info / "entry_points.txt").write_text(f"[volumehost.csi_drivers]\n{DRIVER} = acme_driver:main\n")
        (self._info / "RECORD").write_text(f"acme_driver.py,,\n{self._info.name}/METADATA,,\n")

    def serve(self) -> None:
        os.makedirs(os.path.dirname(SOCKET))
        self._process = FakeDriverProcess(SOCKET, os.path.dirname(SOCKET), name=DRIVER)
        self._process.start()

    def manifest(self) -> str:
        path = self._volumehost.cwd / "acme.yaml"
        path.write_text(OBJECTS)
        return str(path)

    def close(self) -> None:
        if self._process is not None:
            self._process.stop()


@pytest.fixture
def vendor(volumehost, tmp_path):
    """The vendor; ``/run`` is the test's own, and the root directory short enough for sockets."""
    site = tmp_path / "site"
    site.mkdir()
    LinuxMounter().mount("tmpfs", "/run", "tmpfs", ["mode=755"])
    made = Vendor(volumehost, site, tmp_path / "driver.json")
    try:
        yield made
    finally:
        made.close()
        LinuxMounter().unmount("/run")
