"""The distributions of the workspace, built as a release builds them, and virtual environments to install them in."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

REPOSITORY = Path(__file__).resolve().parents[1]
DISTRIBUTIONS = {
    "volumehost": REPOSITORY / "host",
    "volumehost-hostpath": REPOSITORY / "plugins" / "hostpath",
    "volumehost-emptydir": REPOSITORY / "plugins" / "emptydir",
    "volumehost-projected": REPOSITORY / "plugins" / "projected",
    "volumehost-csi-kit": REPOSITORY / "drivers" / "kit",
    "volumehost-csi": REPOSITORY / "plugins" / "csi",
    "volumehost-loop-driver": REPOSITORY / "drivers" / "loop",
}
assert {path / "pyproject.toml" for path in DISTRIBUTIONS.values()} == set(REPOSITORY.glob("*/pyproject.toml")) | set(
    REPOSITORY.glob("*/*/pyproject.toml")
)


@dataclass(frozen=True)
class Distribution:
    """One distribution: its sources, and what was built from them."""

    name: str
    directory: Path
    wheel: Path
    sdist: Path

    @property
    def import_name(self) -> str:
        return self.name.replace("-", "_")

    @property
    def project(self) -> dict[str, Any]:
        return tomllib.loads((self.directory / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, Distribution]:
    """Every distribution, its sdist built from the tree and its wheel built from that sdist.

    Built once, also for several test processes.
    """
    base = tmp_path_factory.getbasetemp()
    out = (base if worker_id == "master" else base.parent) / "dist"
    built = {}
    with FileLock(f"{out}.lock", timeout=280):
        for name, directory in DISTRIBUTIONS.items():
            if not (out / name / "built").exists():
                command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out / name), str(directory)]
                done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
                assert done.returncode == 0, done.stdout + done.stderr
                (out / name / "built").touch()
            (wheel,), (sdist,) = (list((out / name).glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
            built[name] = Distribution(name, directory, wheel, sdist)
    return built


@pytest.fixture(params=DISTRIBUTIONS)
def distribution(request: pytest.FixtureRequest, distributions: dict[str, Distribution]) -> Distribution:
    """Each of them in turn."""
    return distributions[request.param]


@pytest.fixture(scope="session")
def fresh_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with nothing in it but pip; returns its ``bin`` directory."""
    where = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(where, with_pip=True, symlinks=True)
    return where / "bin"
