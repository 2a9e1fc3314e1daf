"""A pod with volumes of every kind, mounted by the installed program, and containers that really run with them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from volumehost.mount import syscalls
from volumehost.mount.mountinfo import read_mount_table
from volumehost.node.workloads.containers import ContainerMounts
from volumehost.runtimes.oci import merge_into

sys.path.insert(0, str(Path(__file__).parent / "support"))  # bundles: no tests, so no conftest

from bundles import base_config, host_system, shell

PROGRAM = str(Path(sys.executable).with_name("volumehost"))

POD = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: files}}
spec: {{storageClassName: loop, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 24Mi}}}}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: disk}}
spec:
  {{storageClassName: loop, volumeMode: Block, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 8Mi}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, labels: {{app: web}}}}
spec:
  securityContext: {{supplementalGroups: [4242]}}
  containers:
  - name: app
    image: none
    env: [{{name: POD, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}]
    volumeMounts:
    - {{name: scratch, mountPath: /data/scratch}}
    - {{name: scratch, mountPath: /data/part, subPathExpr: logs/$(POD)}}
    - {{name: host, mountPath: /data}}
    - {{name: host, mountPath: /one file, subPath: file, readOnly: true}}
    - {{name: host, mountPath: "/pa,th/so\\"cket", subPath: socket}}
    - {{name: files, mountPath: /files}}
    - {{name: tree, mountPath: /tree, readOnly: true}}
    - {{name: tree, mountPath: /whole tree, readOnly: true, recursiveReadOnly: Enabled}}
    volumeDevices:
    - {{name: disk, devicePath: /dev/xvda}}
  - name: reader
    image: none
    volumeMounts:
    - {{name: files, mountPath: /files, readOnly: true, recursiveReadOnly: IfPossible}}
  - name: follower
    image: none
    volumeMounts:
    - {{name: tree, mountPath: /tree, mountPropagation: HostToContainer}}
    - {{name: tree, mountPath: /apart}}
  - name: both
    image: none
    securityContext: {{privileged: true}}
    volumeMounts:
    - {{name: tree, mountPath: /tree, mountPropagation: Bidirectional}}
  volumes:
  - {{name: scratch, emptyDir: {{medium: Memory, sizeLimit: 4Mi}}}}
  - {{name: host, hostPath: {{path: {host}}}}}
  - {{name: tree, hostPath: {{path: {tree}}}}}
  - {{name: files, persistentVolumeClaim: {{claimName: files}}}}
  - {{name: disk, persistentVolumeClaim: {{claimName: disk}}}}
"""


@dataclass
class World:
    """A root directory with the pod mounted, directories of the host, and the program."""

    base: Path
    root_dir: Path = field(init=False)
    host: Path = field(init=False)
    tree: Path = field(init=False)
    _exported: dict[tuple[str, ...], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root_dir, self.host, self.tree = self.base / "r", self.base / "host dir", self.base / "tree"
        self.host.mkdir()
        (self.host / "file").write_text("of the host\n")
        os.mknod(self.host / "socket", 0o140666)
        self.tree.mkdir()
        syscalls.mount("outer", str(self.tree), "tmpfs", 0, "size=1m")
        syscalls.mount("", str(self.tree), "", syscalls.MS_SHARED, "")
        (self.tree / "below").mkdir()
        (self.tree / "later").mkdir()
        syscalls.mount("inner", str(self.tree / "below"), "tmpfs", 0, "size=1m")

    def __call__(self, *arguments: str, code: int = 0, stdin: str | None = None) -> str:
        """Run the program; its output."""
        done = subprocess.run(
            [PROGRAM, "--root-dir", str(self.root_dir), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def export(self, container: str, *arguments: str, stdin: str | None = None, again: bool = False) -> str:
        """What the program exports for a container; asked once, since it stays the same, or ``again``."""
        key = (container, *arguments)
        if again or key not in self._exported:
            self._exported[key] = self("export", "web", "--container", container, *arguments, stdin=stdin)
        return self._exported[key]

    def path(self, volume: str) -> Path:
        """Where the host sees a volume of the pod."""
        (container,) = json.loads(self.export("app"))["containers"]
        found = (*container["mounts"], *container["devices"])
        return Path(next(each["hostPath"] for each in found if each["volume"] == volume and not each.get("subPath")))

    def end(self) -> None:
        """Take all away, and see that nothing is left."""
        self("unmount", "--all")
        for mount in (self.tree / "below", self.tree):
            syscalls.umount2(str(mount), 0)
        left = [entry.path for entry in read_mount_table() if entry.path.startswith(f"{self.base}/")]
        assert left == []
        assert os.listdir(self.root_dir / "pods") == []
        assert (self.host / "file").read_text() == "of the host\n"


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """The pod, mounted once for all tests; in a short path, since there are sockets below it."""
    with tempfile.TemporaryDirectory(prefix="vhr", dir="/tmp", ignore_cleanup_errors=True) as base:
        made = World(Path(base))
        try:
            made("mount", "-f", "-", stdin=POD.format(host=made.host, tree=made.tree))
            yield made
            made.end()
        finally:
            for entry in reversed(read_mount_table()):
                if entry.path.startswith(f"{base}/"):
                    syscalls.umount2(entry.path, syscalls.MNT_DETACH)


# --- containers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """A container that has ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def bwrap(world: World) -> Run:
    """Run a script in bubblewrap, with a container's volumes as they are exported."""
    if shutil.which("bwrap") is None:
        pytest.skip("bwrap is not installed")

    def run(container: str, script: str, *, again: bool = False, **options: Any) -> Ran:
        links, directories = host_system()
        command = ["bwrap", "--unshare-pid", "--die-with-parent"]
        for directory in directories:
            command += ["--ro-bind", directory, directory]
        for name, leads_to in links:
            command += ["--symlink", leads_to, f"/{name}"]
        command += ["--proc", "/proc", "--dev", "/dev"]
        command += shlex.split(world.export(container, "--format", "bwrap", again=again))
        return _finished([*command, *shell(script)], **options)

    return run


@pytest.fixture(scope="session")
def crun_works(tmp_path_factory: pytest.TempPathFactory) -> None:
    """That crun can run containers here, without any volume."""
    if shutil.which("crun") is None:
        pytest.skip("crun is not installed")
    if os.path.isdir("/sys/fs/cgroup/unified"):
        # It refuses machines with both versions of control groups. The tests' mounts are their own: here there is one.
        syscalls.umount2("/sys/fs/cgroup/unified", syscalls.MNT_DETACH)
    ran = _crun(tmp_path_factory.mktemp("trial"), base_config(shell("echo works")))
    if ran.out != "works\n":
        pytest.skip(f"crun does not work here: {ran.err}")


def _make_rootfs(directory: Path) -> Path:
    directory.mkdir(parents=True)
    for name, leads_to in host_system()[0]:
        (directory / name).symlink_to(leads_to)
    return directory


@pytest.fixture
def rootfs(tmp_path: Path) -> Path:
    """The root of a container that gets this machine's ``/usr``."""
    return _make_rootfs(tmp_path / "rootfs")


def _crun(bundle: Path, config: dict[str, Any], **options: Any) -> Ran:
    _make_rootfs(bundle / "rootfs")
    (bundle / "config.json").write_text(json.dumps(config))
    name = f"volumehost-test-{os.getpid()}-{bundle.name}"
    return _finished(["crun", "--root", str(bundle / "state"), "run", "--bundle", str(bundle), name], **options)


@pytest.fixture
def run_config(crun_works: None, tmp_path: Path) -> Callable[..., Ran]:
    """Run a container of crun with a configuration as it is."""
    numbers = iter(range(100))

    def run(config: dict[str, Any], **options: Any) -> Ran:
        return _crun(tmp_path / str(next(numbers)), config, **options)

    return run


@pytest.fixture
def merged(world: World) -> Callable[..., dict[str, Any]]:
    """A configuration that runs a script, with a container's volumes merged into it by the program."""

    def config(container: str, script: str, *, again: bool = False) -> dict[str, Any]:
        text = world.export(container, "--config", "-", stdin=json.dumps(base_config([])), again=again)
        made: dict[str, Any] = json.loads(text)
        made["process"]["args"] = shell(script)
        return made

    return config


@pytest.fixture
def merge() -> Callable[[ContainerMounts, str], dict[str, Any]]:
    """A configuration that runs a script, with these volumes."""
    return lambda container, script: merge_into(base_config(shell(script)), container)


@pytest.fixture
def crun(merged: Callable[..., dict[str, Any]], run_config: Callable[..., Ran]) -> Run:
    """Run a script in crun with a container's volumes."""

    def run(container: str, script: str, *, again: bool = False, **options: Any) -> Ran:
        return run_config(merged(container, script, again=again), **options)

    return run


def _finished(command: list[str], *, talk: Callable[[subprocess.Popen[str]], None] | None = None) -> Ran:
    """Run to the end; ``talk`` has a conversation with it first."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        try:
            if talk is not None:
                talk(process)
            out, err = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            raise
    return Ran(process.returncode, out, err)
