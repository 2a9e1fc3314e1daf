"""A real host over a temporary directory, and a guard that finds mounts which a test leaves behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from volumehost import Spec
from volumehost.api.objects import (
    Container,
    EmptyDirVolumeSource,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceRequirements,
    Volume,
)
from volumehost.host_services import MountPoint
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_emptydir.plugin import EmptyDirPlugin

GIB = 1 << 30


def mounts_below(path: str) -> list[MountPoint]:
    return [mount for mount in LinuxMounter().list_mounts() if mount.path == path or mount.path.startswith(path + "/")]


@pytest.fixture
def directory(tmp_path) -> Iterator[str]:
    """A directory; whatever is still mounted below it at the end is unmounted, and fails the test."""
    path = os.path.realpath(tmp_path)
    yield path
    left = mounts_below(path)
    for mount in reversed(left):
        LinuxMounter().unmount(mount.path)
    assert not left, f"mounts left behind: {[mount.path for mount in left]}"


@pytest.fixture
def mounts(directory) -> Callable[[], list[MountPoint]]:
    return lambda: mounts_below(directory)


@pytest.fixture
def host(directory) -> PluginTestHost:
    return PluginTestHost(directory, allocatable={"memory": 16 * GIB})


@pytest.fixture
def plugin(host) -> EmptyDirPlugin:
    plugin = EmptyDirPlugin()
    plugin.init(host)
    return plugin


@pytest.fixture
def make_pod() -> Callable[..., Pod]:
    def make(*, limits=None, requests=None, uid="11111111-2222-3333-4444-555555555555", **spec) -> Pod:
        resources = ResourceRequirements(limits=limits or {}, requests=requests or {})
        spec.setdefault("containers", [Container(name="main", resources=resources)])
        return Pod(metadata=ObjectMeta(name="web", namespace="default", uid=uid), spec=PodSpec(**spec))

    return make


@pytest.fixture
def pod(make_pod) -> Pod:
    return make_pod()


@pytest.fixture
def make_spec() -> Callable[..., Spec]:
    def make(medium="", size_limit=None, name="scratch") -> Spec:
        source = EmptyDirVolumeSource(medium=medium, size_limit=size_limit)
        return Spec.from_volume(Volume(name=name, empty_dir=source))

    return make


@pytest.fixture
def data_dir(host, pod) -> str:
    return f"{host.root_dir}/pods/{pod.metadata.uid}/volumes/kubernetes.io~empty-dir/scratch"


@pytest.fixture
def meta_dir(host, pod) -> str:
    return f"{host.root_dir}/pods/{pod.metadata.uid}/plugins/kubernetes.io~empty-dir/scratch"
