"""Look-up, probe and first discovery, against pluggy's relay, bare ``stat`` calls and importlib.metadata."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pluggy

import volumehost.hookspecs as contract
from bench.distributions import make_distributions
from bench.measuring import Figure, alternating, interleaved, reported_by_process
from volumehost import Spec, hookimpl
from volumehost.loader.manager import VolumePluginManager
from volumehost.loader.prober import EntryPointProber

SIZES = (30, 200, 1000)
SETTLE_SECONDS = 3.0


class _Plugin:
    """A plugin that supports one kind of source."""

    def __init__(self, number: int, source: str) -> None:
        self.number = number
        self.source = source

    @hookimpl
    def get_plugin_name(self) -> str:
        return f"bench.example.com/plugin-{self.number}"

    @hookimpl
    def get_volume_name(self, spec: Spec) -> str:
        return spec.name()

    @hookimpl
    def can_support(self, spec: Spec) -> bool:
        volume = spec.volume
        return volume is not None and getattr(volume, self.source, None) is not None

    @hookimpl
    def new_mounter(self, spec: Spec, pod: Any) -> Any:
        raise NotImplementedError

    @hookimpl
    def new_unmounter(self, volume_name: str, pod_uid: str) -> Any:
        raise NotImplementedError

    @hookimpl
    def construct_volume_spec(self, volume_name: str, mount_path: str) -> Any:
        raise NotImplementedError


class _IndexedPlugin(_Plugin):
    """The same, telling the host which sources it can support."""

    @hookimpl
    def get_volume_sources(self) -> frozenset[str]:
        return frozenset({self.source})


class _EveryAnswer:
    """The hook as a plain pluggy host has it: every plugin answers, so that two that match can be told."""

    @contract.hookspec
    def can_support(self, spec: Spec) -> bool:  # type: ignore[empty-body]  # a specification has no body
        """Whether the plugin supports the spec."""


def _volume() -> Any:
    from volumehost.api.objects import HostPathVolumeSource, Volume

    return Volume(name="data", host_path=HostPathVolumeSource(path="/srv/data"))


def _lookup(kind: type[_Plugin], count: int) -> tuple[float, float]:
    plugins = [kind(number, "host_path" if number == 0 else "nfs") for number in range(count)]
    manager = VolumePluginManager()
    manager.init_plugins(plugins, None, None)
    relay = pluggy.PluginManager(contract.PROJECT_NAME)
    relay.add_hookspecs(_EveryAnswer)
    for plugin in plugins:
        relay.register(plugin)
    spec = Spec.from_volume(_volume())
    assert manager.find_plugin_by_spec(spec).name == "bench.example.com/plugin-0"
    return interleaved(lambda: manager.find_plugin_by_spec(spec), lambda: relay.hook.can_support(spec=spec))


def lookup() -> list[Figure]:
    """``find_plugin_by_spec`` with 20 and 100 plugins, exactly one of which matches."""
    figures = []
    for count in (20, 100):
        for kind, note in ((_IndexedPlugin, "sources declared"), (_Plugin, "every plugin asked")):
            ours, anchor = _lookup(kind, count)
            figures.append(
                Figure(f"find_plugin_by_spec, {count} plugins, {note}", ours, anchor, "pm.hook.can_support", 0.35, 0.05)
            )
    return figures


def _stat_all(paths: list[str]) -> list[int]:
    stamps = []
    for path in paths:
        try:
            stamps.append(os.stat(path).st_mtime_ns)
        except OSError:
            stamps.append(0)
    return stamps


def probe() -> list[Figure]:
    """A probe when nothing changed, for three sizes of environment."""
    figures = []
    smallest = 0.0
    for size in SIZES:
        with tempfile.TemporaryDirectory() as directory:
            make_distributions(Path(directory), size, plugins=0)
            _age(Path(directory))
            path = [directory, *(entry for entry in sys.path if entry and "site-packages" not in entry)]
            prober = EntryPointProber(path=path)
            prober.init()
            prober.probe()
            ours, anchor = interleaved(prober.probe, lambda path=path: _stat_all(path))  # type: ignore[misc]
        smallest = smallest or ours
        figures.append(
            Figure(f"probe, nothing changed, {size} distributions", ours, anchor, "os.stat of sys.path", 2.0, 1.3)
        )
        if size != SIZES[0]:
            figures.append(Figure(f"  growth, {size} against {SIZES[0]}", ours, smallest, "the same probe", 1.2))
    return figures


def _age(directory: Path) -> None:
    """Wait until the directory is older than the time in which a prober distrusts its time stamps."""
    while time.time() - directory.stat().st_ctime <= SETTLE_SECONDS:
        time.sleep(0.05)


OURS = """
import json, sys, time
sys.path[:0] = sys.argv[1:]
start = time.perf_counter()
from volumehost.loader.scan import scan
found = sorted(name for distribution in scan("volumehost.plugins") for name, value in distribution.entry_points)
seconds = time.perf_counter() - start
assert found == ["bench_dist_0", "bench_dist_1"], found
print(json.dumps(seconds))
"""
STANDARD = """
import json, sys, time
sys.path[:0] = sys.argv[1:]
start = time.perf_counter()
import importlib.metadata
found = sorted(point.name for point in importlib.metadata.entry_points(group="volumehost.plugins"))
seconds = time.perf_counter() - start
assert found == ["bench_dist_0", "bench_dist_1"], found
print(json.dumps(seconds))
"""
STEVEDORE = """
import json, sys, time
sys.path[:0] = sys.argv[1:]
start = time.perf_counter()
from stevedore import _cache
found = sorted(point.name for point in _cache.get_group_all("volumehost.plugins"))
seconds = time.perf_counter() - start
assert found == ["bench_dist_0", "bench_dist_1"], found
print(json.dumps(seconds))
"""


def discovery() -> list[Figure]:
    """The first discovery of a process, imports included, the same result set on both sides.

    Without ``site``, so that only the distributions made for the purpose are there.
    """
    figures = []
    source = os.path.dirname(os.path.dirname(os.path.abspath(contract.__file__)))
    for size, at_most in zip(SIZES, (0.25, 0.25, 0.30), strict=True):
        with tempfile.TemporaryDirectory() as directory:
            make_distributions(Path(directory), size)
            ours, standard = alternating(
                [reported_by_process(code, directory, source, flags=["-S"]) for code in (OURS, STANDARD)], rounds=15
            )
            figures.append(
                Figure(f"first discovery, {size} distributions", ours, standard, "importlib.metadata", at_most, 0.1)
            )
            figures.extend(_stevedore(size, ours, directory))
    return figures


def _stevedore(size: int, ours: float, directory: str) -> list[Figure]:
    """Beside it stevedore, for comparison only: without its disk cache, and with the cache warm."""
    spec = importlib.util.find_spec("stevedore")
    if spec is None or spec.origin is None:
        return []
    packages = os.path.dirname(os.path.dirname(spec.origin))
    with tempfile.TemporaryDirectory() as holder, tempfile.TemporaryDirectory() as cache:
        os.symlink(os.path.dirname(spec.origin), os.path.join(holder, "stevedore"))
        os.symlink(os.path.join(packages, "importlib_metadata"), os.path.join(holder, "importlib_metadata"))
        (cold,) = alternating(
            [reported_by_process(STEVEDORE, directory, holder, flags=["-S"], XDG_CACHE_HOME="/dev/null/none")]
        )
        (warm,) = alternating([reported_by_process(STEVEDORE, directory, holder, flags=["-S"], XDG_CACHE_HOME=cache)])
    return [
        Figure(f"  {size}, beside stevedore without a cache", ours, cold, "stevedore"),
        Figure(f"  {size}, beside stevedore with a warm cache", ours, warm, "stevedore"),
    ]
