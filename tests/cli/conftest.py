"""Fixtures for tests that run the installed program as its users do: a process, its output, its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from volumehost.mount.mounter import LinuxMounter
from volumehost.mount.mountinfo import read_mount_table

PROGRAM = str(Path(sys.executable).with_name("volumehost"))


@dataclass(frozen=True)
class Done:
    """A finished run."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The output as data; it must be nothing but JSON."""
        return json.loads(self.out)

    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(frozen=True)
class Program:
    """Runs ``volumehost`` with a root directory of its own."""

    root_dir: Path
    environment: Mapping[str, str]
    cwd: Path

    def __call__(
        self,
        *arguments: str | os.PathLike[str],
        stdin: str | bytes | None = None,
        root_dir: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Done:
        done = subprocess.run(
            [PROGRAM, *map(str, arguments)],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=self.variables(root_dir, environment),
            cwd=self.cwd,
            timeout=timeout,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return Done(done.returncode, out, err)

    def variables(
        self, root_dir: str | os.PathLike[str] | None = None, environment: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """The environment of a run."""
        variables = {**self.environment, "VOLUMEHOST_ROOT_DIR": str(root_dir or self.root_dir)}
        return {**variables, **(environment or {})}

    def start(self, *arguments: str | os.PathLike[str], **options: Any) -> subprocess.Popen[str]:
        """Start it and return at once; the caller ends it."""
        return subprocess.Popen(
            [PROGRAM, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.variables(),
            cwd=self.cwd,
            text=True,
            **options,
        )


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of the program: nothing of this user's settings, temporary files in the test's directory."""
    ours = ("VOLUMEHOST_", "_VOLUMEHOST", "PYTHONDONTWRITEBYTECODE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return {**kept, "TMPDIR": str(temporary), "HOME": str(tmp_path), "COLUMNS": "80", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def volumehost(tmp_path: Path, environment: dict[str, str]) -> Program:
    """The program, with a root directory whose path has a space."""
    work = tmp_path / "work"
    work.mkdir()
    return Program(tmp_path / "root dir", environment, work)


@dataclass(frozen=True)
class Site:
    """A directory on PYTHONPATH into which plugin distributions are written as pip would."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.path)}

    def install(
        self,
        distribution: str,
        source: str,
        *,
        version: str = "1.0",
        entry_points: Sequence[str] | None = None,
        requires: Sequence[str] = (),
    ) -> None:
        """Write a distribution of one module with an entry point ``<distribution> = <module>:Plugin``."""
        module = distribution.replace("-", "_")
        (self.path / f"{module}.py").write_text(source)
        info = self.path / f"{module}-{version}.dist-info"
        info.mkdir()
        lines = entry_points or [f"{distribution} = {module}:Plugin"]
        (info / "entry_points.txt").write_text("[volumehost.plugins]\n" + "".join(f"{line}\n" for line in lines))
        required = "".join(f"Requires-Dist: {each}\n" for each in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n{required}")
        (info / "INSTALLER").write_text("pip\n")
        (info / "RECORD").write_text(f"{module}.py,,\n{info.name}/METADATA,,\n{info.name}/entry_points.txt,,\n")


PLUGIN = """
from volumehost import hookimpl
{top}


class Plugin:
    @hookimpl
    def get_plugin_name(self):
        return "{name}"

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        {can_support}

    @hookimpl
    def new_mounter(self, spec, pod):
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        raise NotImplementedError
"""


@pytest.fixture
def plugin_source() -> Callable[..., str]:
    """Source of a small plugin: ``plugin_source("acme.example.com/disk", can_support="return False", top="")``."""

    def source(name: str, *, can_support: str = "return False", top: str = "") -> str:
        return PLUGIN.format(name=name, can_support=can_support, top=top)

    return source


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A fresh site directory."""
    path = tmp_path / "site packages"
    path.mkdir()
    return Site(path)


@pytest.fixture
def manifest(volumehost: Program) -> Callable[..., Path]:
    """Write a manifest into the working directory."""

    def write(text: str | bytes, name: str = "pod.yaml") -> Path:
        path = volumehost.cwd / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  containers:
    - name: app
      image: example.com/app
      volumeMounts: [{mounts}]
  volumes:
{volumes}
"""


@pytest.fixture
def pod_manifest() -> Callable[..., str]:
    """A pod's manifest: ``pod_manifest("web", scratch="emptyDir: {}", site="hostPath: {path: /srv}")``."""

    def text(name: str = "web", **volumes: str) -> str:
        mounts = ", ".join(f"{{name: {volume}, mountPath: /{volume}}}" for volume in volumes)
        entries = "\n".join(f"    - name: {volume}\n      {source}" for volume, source in volumes.items())
        return POD.format(name=name, mounts=mounts, volumes=entries)

    return text


@pytest.fixture
def mounts_below() -> Iterator[Callable[[Path], list[str]]]:
    """Paths that are mounted below a directory, from the kernel's table; whatever is left is unmounted in the end."""
    seen: set[Path] = set()

    def mounted(directory: Path) -> list[str]:
        seen.add(directory)
        base = os.path.realpath(directory)
        return [entry.path for entry in read_mount_table() if entry.path == base or entry.path.startswith(f"{base}/")]

    yield mounted
    for directory in seen:
        for path in reversed(mounted(directory)):
            LinuxMounter().unmount(path)
