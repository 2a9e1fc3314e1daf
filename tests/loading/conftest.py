"""Real wheels, real pip, real virtual environments, and a host process that runs while they change."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGES = HERE.parent / "packages"
DEADLINE = 30.0


def _load_support(name: str):
    spec = importlib.util.spec_from_file_location(f"loading_support_{name}", HERE / "support" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def packages_path():
    """The path to the packages that the tests run with, for an interpreter outside of a virtual environment."""
    return os.pathsep.join(outer_path())


@pytest.fixture(scope="session")
def wheels():
    """The functions that make wheels."""
    return _load_support("wheels")


def wait_for(condition, what: str, seconds: float = DEADLINE):
    """The condition's first true value; fails with ``what`` when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:g} s for: {what}")
        threading.Event().wait(0.02)


@pytest.fixture(scope="session")
def eventually():
    return wait_for


def outer_path() -> list[str]:
    """The directories with packages that the tests run with: everything on the path but the standard library."""
    standard = sysconfig.get_path("stdlib")
    return [path for path in sys.path if os.path.isdir(path) and path not in (standard, f"{standard}/lib-dynload")]


class Environment:
    """A virtual environment that sees the packages of the one the tests run in, behind its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        venv.EnvBuilder(with_pip=False, symlinks=True).create(directory)
        self.python = str(directory / "bin" / "python")
        self.site_packages = next((directory / "lib").glob("python*/site-packages"))
        (self.site_packages / "outer.pth").write_text("\n".join(outer_path()) + "\n")

    def variables(self, **more: str) -> dict[str, str]:
        keep = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VOLUMEHOST"))}
        return {**keep, "PYTHONUNBUFFERED": "1", **more}

    def pip(self, *arguments: str, **variables: str) -> str:
        command = [sys.executable, "-m", "pip", "--python", self.python, *arguments]
        done = subprocess.run(
            command, check=False, env=self.variables(**variables), capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, *what: object, **variables: str) -> None:
        self.pip("install", "--no-index", "--no-deps", "--no-build-isolation", *map(str, what), **variables)

    def uninstall(self, *names: str) -> None:
        self.pip("uninstall", "--yes", *names)


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "venv")


class RunningHost:
    """The host process, and requests to it."""

    def __init__(
        self, environment: Environment, script: str, root_dir: Path, log: Path, variables: dict[str, str], cwd: Path
    ) -> None:
        root_dir.mkdir(parents=True, exist_ok=True)
        self.root_dir = root_dir
        self.log = log
        with log.open("w") as log_file:
            self._process = subprocess.Popen(
                [environment.python, str(HERE / "support" / script), str(root_dir)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
                env=environment.variables(**variables),
                cwd=cwd,
            )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_until_ready(self) -> None:
        assert self._answer() == {"ok": "ready"}, self.log.read_text()

    def _read(self) -> None:
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _answer(self) -> dict:
        line = self._answers.get(timeout=60)
        assert line, f"the host has died:\n{self.log.read_text()}"
        return json.loads(line)

    def request(self, do: str, **arguments) -> dict:
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def __call__(self, do: str, **arguments):
        """The answer; an error fails the test."""
        answer = self.request(do, **arguments)
        assert "ok" in answer, f"{answer}\n{self.log.read_text()}"
        return answer["ok"]

    def error(self, do: str, **arguments) -> str:
        """The name of the error's class; an answer fails the test."""
        answer = self.request(do, **arguments)
        assert "error" in answer, answer
        return answer["error"]

    def code_of(self, name: str) -> str | None:
        """The version of the code that a look-up finds, None when it finds nothing."""
        return self.request("find", name=name).get("ok", {}).get("code")

    def status(self, name: str) -> dict:
        """What is known of the one plugin of that name."""
        (found,) = [each for each in self("plugins") if each["name"] == name]
        return found

    def statuses(self) -> dict[str, dict]:
        """The plugins that the tests installed."""
        return {each["name"]: each for each in self("plugins") if not each["distribution"].startswith("volumehost-")}

    def stop(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()


@pytest.fixture
def start_host(environment, tmp_path):
    """Starts host processes in the environment; they are stopped, and their mounts taken away, at the end.

    ``script`` is one of ``support``: a host that is told what to do with plugins, or a volume manager that takes pods.
    """
    hosts = []

    def start(
        script: str = "host.py", *, cwd: Path | None = None, root_dir: Path | None = None, **variables: str
    ) -> RunningHost:
        number = len(hosts)
        root_dir = root_dir or tmp_path / f"root{number}"
        log = tmp_path / f"host{number}.log"
        host = RunningHost(environment, script, root_dir, log, variables, cwd or tmp_path)
        hosts.append(host)
        host.wait_until_ready()
        return host

    yield start
    for host in hosts:
        host.stop()
        _unmount_below(host.root_dir)


def _unmount_below(directory: Path) -> None:
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in reversed([path for path in mounts if path.startswith(f"{directory}/")]):
        subprocess.run(["umount", mount], check=True)


@pytest.fixture(scope="session")
def acme(tmp_path_factory):
    """Builds the package acme-volumes in any version; returns the wheel's path."""
    built: dict[str, Path] = {}

    def build(version: str) -> Path:
        if version not in built:
            project = acme_project(tmp_path_factory.mktemp("acme") / "acme-volumes", version)
            out = project.parent / "dist"
            command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
            done = subprocess.run(command, check=False, cwd=project, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stdout + done.stderr
            (built[version],) = out.glob("*.whl")
        return built[version]

    return build


def acme_project(directory: Path, version: str) -> Path:
    """A copy of the project with another version number, which its code reports."""
    shutil.copytree(PACKAGES / "acme-volumes", directory)
    (directory / "src/acme_volumes/_version.py").write_text(f'"""The version."""\n\n__version__ = "{version}"\n')
    return directory


@pytest.fixture
def acme_source(tmp_path):
    """A copy of the project acme-volumes, to be installed from where it lies."""
    return lambda version="1.0": acme_project(tmp_path / f"acme-volumes-{version}", version)
