"""Look-up, probe and first discovery, against pluggy's relay, bare ``stat`` calls and importlib.metadata."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pluggy
from volumehost.loader.manager import VolumePluginManager
from volumehost.loader.prober import EntryPointProber

import volumehost.hookspecs as contract
from bench.distributions import make_distributions
from bench.measuring import Figure, alternating, interleaved, reported_by_process
from volumehost import Spec, hookimpl

SIZES = (30, 200, 1000)


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
    from volumehost.loader import scan

    settle = getattr(scan, "SETTLE_SECONDS", 2.0)
    changed = directory.stat().st_ctime
    import time

    while time.time() - changed <= settle:
        time.sleep(0.05)


OURS = """
import json, sys, time
start = time.perf_counter()
from volumehost.loader.scan import Scanner
found = sorted(point.name for record in Scanner(path=[sys.argv[1]]).scan() for point in record.entry_points)
seconds = time.perf_counter() - start
assert len(found) == 2, found
print(json.dumps(seconds))
"""
STANDARD = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
start = time.perf_counter()
import importlib.metadata
found = sorted(point.name for point in importlib.metadata.entry_points(group="volumehost.plugins"))
seconds = time.perf_counter() - start
assert len(found) == 2, found
print(json.dumps(seconds))
"""
STEVEDORE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
start = time.perf_counter()
from stevedore import ExtensionManager
found = sorted(ExtensionManager("volumehost.plugins", invoke_on_load=False).entry_points_names())
seconds = time.perf_counter() - start
print(json.dumps(seconds))
"""


def discovery() -> list[Figure]:
    """The first discovery of a process, imports included, the same result set on both sides."""
    figures = []
    for size, at_most in zip(SIZES, (0.25, 0.25, 0.30), strict=True):
        with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as cache:
            make_distributions(Path(directory), size)
            ours, standard = alternating(
                [reported_by_process(OURS, directory), reported_by_process(STANDARD, directory)]
            )
            figures.append(
                Figure(f"first discovery, {size} distributions", ours, standard, "importlib.metadata", at_most, 0.1)
            )
            figures.extend(_stevedore(size, ours, directory, cache))
    return figures


def _stevedore(size: int, ours: float, directory: str, cache: str) -> list[Figure]:
    """stevedore beside it: with its disk cache warm, for comparison only."""
    try:
        import stevedore  # noqa: F401  # only whether it is there
    except ImportError:
        return []
    (cached,) = alternating([reported_by_process(STEVEDORE, directory, XDG_CACHE_HOME=cache)])
    return [Figure(f"  the same, {size}, stevedore with a warm cache", ours, cached, "stevedore")]
