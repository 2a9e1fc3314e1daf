"""Recycling: HOSTPATH-40, -41, RECYCLE-02, UTIL-25."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volumehost import Spec, VolumeConfig
from volumehost.api.objects import HostPathVolumeSource, ObjectMeta, Pod, PodSpec, Volume
from volumehost.errors import SpecError
from volumehost.testing.plugin_host import PluginTestHost
from volumehost_hostpath.plugin import HostPathPlugin
from volumehost_hostpath.recycling import recycler_pod


def test_the_directory_is_emptied_and_stays(plugin, host, directory, make_pv_spec):
    path = f"{directory}/volume"
    os.makedirs(f"{path}/sub")
    Path(path, ".hidden").touch()
    events = []
    plugin.recycle("pv-1", make_pv_spec(path), lambda kind, message: events.append((kind, message)))
    assert os.listdir(path) == []
    ((name, pod),) = host.recycler.pods
    assert name == "pv-1"
    assert pod.spec.volumes[0].host_path.path == path
    assert all(kind == "Normal" for kind, _ in events)


@pytest.mark.parametrize(("capacity", "seconds"), [("500M", 50), ("2Gi", 60), ("150Gi", 4500), ("1999Mi", 50)])
def test_the_deadline(make_pv_spec, capacity, seconds):
    config = VolumeConfig(recycler_minimum_timeout=50, recycler_timeout_increment=30)
    pod = recycler_pod(make_pv_spec("/srv/x", capacity=capacity), config)
    assert pod.spec.active_deadline_seconds == seconds


def test_the_default_template(make_pv_spec):
    pod = recycler_pod(make_pv_spec("/srv/x"), VolumeConfig())
    (container,) = pod.spec.containers
    assert pod.metadata.generate_name == "pv-recycler-"
    assert container.volume_mounts[0].name == pod.spec.volumes[0].name == "vol"
    assert container.volume_mounts[0].mount_path == "/scrub"


def test_a_template_is_copied_for_each_run(make_pv_spec):
    """HOSTPATH-41, improved."""
    template = Pod(metadata=ObjectMeta(name="own"), spec=PodSpec(volumes=[Volume(name="mine"), Volume(name="another")]))
    config = VolumeConfig(recycler_pod_template=template)
    first = recycler_pod(make_pv_spec("/srv/1"), config)
    second = recycler_pod(make_pv_spec("/srv/2"), config)
    assert [pod.spec.volumes[0].host_path.path for pod in (first, second)] == ["/srv/1", "/srv/2"]
    assert first.spec.volumes[0].name == "mine"
    assert template.spec.volumes[0] == Volume(name="mine")
    assert template.spec.active_deadline_seconds is None
    first.spec.volumes[1].name = "changed"
    assert template.spec.volumes[1].name == "another"


def test_a_template_without_volumes(directory, make_pv_spec):
    plugin = HostPathPlugin()
    config = VolumeConfig(recycler_pod_template=Pod(spec=PodSpec()))
    plugin.init(PluginTestHost(directory, volume_config=config))
    with pytest.raises(SpecError, match=r"does not contain any volume\(s\)"):
        plugin.recycle("pv-1", make_pv_spec("/srv/x"), lambda *_: None)


@pytest.mark.parametrize(
    "spec", [Spec(), Spec.from_volume(Volume(name="v", host_path=HostPathVolumeSource(path="/x")))]
)
def test_only_persistent_volumes_are_recycled(plugin, spec):
    with pytest.raises(SpecError, match=r"spec\.PersistentVolume\.Spec\.HostPath is nil"):
        plugin.recycle("pv-1", spec, lambda *_: None)
