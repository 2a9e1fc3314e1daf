"""Plugins, probers, clocks and site directories for the loader's tests."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from volumehost import hookimpl
from volumehost.loader.events import ProbeEvent, ProbeOperation, ProbeResult
from volumehost.loader.manager import VolumePluginManager
from volumehost.loader.trust import TrustPolicy


class BasePlugin:
    """The required hooks, for the one kind of source that it is told."""

    def __init__(self, name="example.com/p", source="nfs"):
        self.name = name
        self.source = source
        self.hosts = []

    @hookimpl
    def init(self, host):
        self.hosts.append(host)

    @hookimpl
    def get_plugin_name(self):
        return self.name

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        return spec.source() == self.source

    @hookimpl
    def new_mounter(self, spec, pod):
        return ("mounter", spec, pod)

    @hookimpl
    def new_unmounter(self, volume_name, pod_uid):
        return ("unmounter", volume_name, pod_uid)

    @hookimpl
    def construct_volume_spec(self, volume_name, mount_path):
        return (volume_name, mount_path)


@pytest.fixture
def base():
    """A plugin class to make plugins from."""
    return BasePlugin


class FakeVolume:
    """As much of a Volume as looking up needs: a name and one source. The real one is in the api room."""

    SOURCES = ("nfs", "csi", "host_path", "flex_volume")

    def __init__(self, source, name="data", value=None):
        self.name = name
        for each in self.SOURCES:
            setattr(self, each, (value or object()) if each == source else None)


@pytest.fixture
def spec_of():
    """Makes a spec with one kind of source."""
    from volumehost import Spec

    return lambda source="nfs", name="data", value=None: Spec.from_volume(FakeVolume(source, name, value))


@pytest.fixture
def manager():
    """Makes managers that trust everything; they are closed at the end."""
    made = []

    def make(*plugins, prober=None, host=None, **options):
        options.setdefault("trust", TrustPolicy())
        manager = VolumePluginManager(**options)
        made.append(manager)
        manager.init_errors = manager.init_plugins(plugins, prober, host)
        return manager

    yield make
    for each in made:
        each.close()


class ScriptedProber:
    """Delivers what a test tells it to, each event once."""

    def __init__(self):
        self.events = []
        self.errors = []
        self.changed = False
        self.probes = 0

    def init(self):
        pass

    def add(self, plugin, name=None):
        name = plugin.name if name is None else name
        self.events.append(ProbeEvent(ProbeOperation.ADD_OR_UPDATE, name, plugin))

    def remove(self, name):
        self.events.append(ProbeEvent(ProbeOperation.REMOVE, name))

    def probe(self):
        self.probes += 1
        result = ProbeResult(tuple(self.events), tuple(self.errors), self.changed)
        self.events, self.errors, self.changed = [], [], False
        return result


@pytest.fixture
def prober():
    return ScriptedProber()


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def eventually():
    """The condition's first true value; fails when there is none in time."""

    def wait(condition, what="the condition", seconds=30.0):
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
            threading.Event().wait(0.01)
        return value

    return wait


class Site:
    """A directory with distributions, as an installer leaves them."""

    def __init__(self, directory):
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.path = str(directory)

    def add(
        self,
        name,
        version="1.0",
        entry_points=None,
        files=None,
        *,
        record=True,
        metadata="",
        group="volumehost.plugins",
    ):
        """A distribution; ``entry_points`` maps names to values; None writes no such file."""
        info = self.directory / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        listed = {}
        for path, text in (files or {}).items():
            target = self.directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            listed[path] = len(text.encode())
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}\n\nText\n")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\n")
        if entry_points is not None:
            lines = [f"{key} = {value}" for key, value in entry_points.items()]
            (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")
        if record:
            rows = [f"{path},,{size}" for path, size in listed.items()]
            (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n")
        return info

    def remove(self, info):
        for path in info.iterdir():
            path.unlink()
        info.rmdir()


@pytest.fixture
def make_site(tmp_path):
    return lambda name="site": Site(tmp_path / name)


@pytest.fixture
def site(make_site):
    return make_site()


@pytest.fixture
def importable(site):
    """The site directory is on sys.path; its modules are forgotten at the end."""
    before = set(sys.modules)
    sys.path.append(site.path)
    yield site
    sys.path[:] = [path for path in sys.path if path != site.path]
    sys.path_importer_cache.pop(site.path, None)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(site.path):
            del sys.modules[name]


PLUGIN_SOURCE = """
from volumehost import hookimpl

class Plugin:
    version = {version!r}

    @hookimpl
    def get_plugin_name(self):
        return {name!r}

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()

    @hookimpl
    def can_support(self, spec):
        return spec.source() == {source!r}

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
def plugin_source():
    """Source code of a good plugin."""
    return lambda name, version="1.0", source="nfs": PLUGIN_SOURCE.format(name=name, version=version, source=source)
