"""A cluster for tests: a fake API server in this process, and the command line on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from volumehost.cli import main
from volumehost.testing.api_server import ApiServer


@dataclass(frozen=True)
class Done:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


@pytest.fixture
def kubeconfig(server, tmp_path) -> str:
    return server.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
def root_dir(tmp_path) -> Path:
    """Where nothing is: a command on a cluster must make nothing there."""
    return tmp_path / "root"


@pytest.fixture
def run(root_dir, capsys, monkeypatch) -> Run:
    """Run a command within this process, with no cluster unless it is given one."""
    for name in ("KUBECONFIG", "VOLUMEHOST_KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VOLUMEHOST_ROOT_DIR", str(root_dir))

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        told = capsys.readouterr()
        assert "Traceback" not in told.err, told.err
        return Done(code, told.out, told.err)

    return run


@pytest.fixture
def volumehost(run, kubeconfig) -> Run:
    """Run a command on the cluster."""
    return lambda *arguments: run("--kubeconfig", kubeconfig, *arguments)
