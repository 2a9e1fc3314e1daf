"""Runs the conformance kit as an author would: pytest inside of pytest, on the plugins in ``support``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Imported here, once: what a run inside of this process imports is forgotten after it, and imported again by the next.
import volumehost.api.manifests
import volumehost.api.store
import volumehost.testing.conformance.run
from volumehost.testing.conformance.check import Check
from volumehost.testing.conformance.suite import all_checks

pytest_plugins = ["pytester"]

SUPPORT = Path(__file__).parent / "support"
#: Plugins of pytest that are of no concern here; leaving them out halves the time of a run.
_WITHOUT = [f"-pno:{name}" for name in ("cacheprovider", "anyio", "benchmark", "hypothesispytest", "xdist", "timeout")]

VOLUMES = """
apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  containers: [{name: main, image: job}]
  volumes:
  - {name: work, flexVolume: {driver: example.com/complete, options: {handle: vol-1}}}
"""
BLOCK_VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: raw}
spec:
  capacity: {storage: 64Mi}
  accessModes: [ReadWriteOnce]
  volumeMode: Block
  flexVolume: {driver: example.com/complete, options: {handle: vol-2}}
"""


@pytest.fixture
def all_volumes() -> str:
    """Both."""
    return f"{VOLUMES}---{BLOCK_VOLUME}"


@pytest.fixture(scope="session")
def checks() -> dict[str, Check]:
    """Every check of the kit, by name."""
    _ = volumehost.api.manifests, volumehost.api.store, volumehost.testing.conformance.run
    return {check.name: check for check in all_checks()}


@pytest.fixture
def support(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The plugins of ``support`` can be imported, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    before = set(sys.modules)
    yield
    guard = sys.modules.get("broken_guard")
    for stop in guard.nothing_is_left_in_the_process.stoppers if guard is not None else ():
        stop.set()  # its thread is a leak on purpose
    for name in set(sys.modules) - before:
        if name == "complete_plugin" or name.startswith("broken_"):
            del sys.modules[name]


@pytest.fixture
def filesystem_volume() -> str:
    """The manifest of a pod with a volume of the complete plugin."""
    return VOLUMES


@pytest.fixture
def block_volume() -> str:
    """The manifest of a raw volume."""
    return BLOCK_VOLUME


@pytest.fixture
def run_kit(pytester: pytest.Pytester, support: None) -> Callable[..., Any]:
    """Runs the kit: ``run_kit("module:Object", "id", ...)`` with the volumes above, or with other ``volumes``.

    With ``inline`` it gives back the record of the calls of hooks instead of the output.
    """

    def run(plugin: str, *arguments: str, volumes: str = VOLUMES, inline: bool = False) -> Any:
        options = ["--volume-plugin", plugin]
        if volumes:
            (pytester.path / "volumes.yaml").write_text(volumes)
            options += ["--volume-spec", "volumes.yaml"]
        start = pytester.inline_run if inline else pytester.runpytest_inprocess
        without = [each for each in _WITHOUT if each.removeprefix("-pno:") not in arguments]
        return start(*without, *options, *arguments)

    return run
