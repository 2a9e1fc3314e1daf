"""A real host over a temporary directory, and a guard that finds mounts which a test leaves behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from volumehost import Spec, VolumeConfig
from volumehost.api.objects import (
    HostPathVolumeSource,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Pod,
    Volume,
    VolumeResourceRequirements,
)
from volumehost.mount.mounter import LinuxMounter
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_hostpath.plugin import HostPathPlugin


@pytest.fixture
def directory(tmp_path) -> Iterator[str]:
    """A directory; whatever is still mounted below it at the end is unmounted, and fails the test."""
    path = os.path.realpath(tmp_path)
    yield path
    left = [mount for mount in LinuxMounter().list_mounts() if mount.path.startswith(path + "/")]
    for mount in reversed(left):
        LinuxMounter().unmount(mount.path)
    assert not left, f"mounts left behind: {[mount.path for mount in left]}"


@pytest.fixture
def base(directory) -> str:
    """The directory that provisioning and deletion are confined to."""
    path = f"{directory}/base"
    os.mkdir(path)
    return path


@pytest.fixture
def host(directory, base) -> PluginTestHost:
    config = VolumeConfig(
        provisioning_enabled=True,
        recycler_minimum_timeout=50,
        recycler_timeout_increment=30,
        other_attributes={"base_dir": base},
    )
    return PluginTestHost(directory, volume_config=config)


@pytest.fixture
def plugin(host) -> HostPathPlugin:
    plugin = HostPathPlugin()
    plugin.init(host)
    return plugin


@pytest.fixture
def pod() -> Pod:
    return Pod(metadata=ObjectMeta(name="web", namespace="default", uid="11111111-2222-3333-4444-555555555555"))


@pytest.fixture
def make_spec() -> Callable[..., Spec]:
    """A spec of a pod's own volume."""

    def make(path: str, path_type: str = "") -> Spec:
        return Spec.from_volume(Volume(name="data", host_path=HostPathVolumeSource(path=path, type=path_type)))

    return make


@pytest.fixture
def make_pv_spec() -> Callable[..., Spec]:
    """A spec of a PersistentVolume."""

    def make(path: str, *, read_only: bool = False, capacity: str = "5Gi", path_type: str = "") -> Spec:
        source = HostPathVolumeSource(path=path, type=path_type)
        return Spec.from_persistent_volume(
            PersistentVolume(
                metadata=ObjectMeta(name="pv-1"),
                spec=PersistentVolumeSpec(host_path=source, capacity={"storage": capacity}),
            ),
            read_only=read_only,
        )

    return make


@pytest.fixture
def make_claim() -> Callable[..., PersistentVolumeClaim]:
    def make(*, access_modes=(), volume_mode=None, size="3Gi") -> PersistentVolumeClaim:
        return PersistentVolumeClaim(
            metadata=ObjectMeta(name="claim", namespace="default"),
            spec=PersistentVolumeClaimSpec(
                access_modes=list(access_modes),
                volume_mode=volume_mode,
                resources=VolumeResourceRequirements(requests={"storage": size}),
            ),
        )

    return make
