"""The hooks of the four plugins: PAYLOAD-01, PLUG-04, -05, -07, -08; what it costs to import them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from volumehost import Spec
from volumehost.api.convert import to_object
from volumehost.api.objects import HostPathVolumeSource, PersistentVolume, PersistentVolumeSpec, Volume
from volumehost.errors import NotAvailableOnHostError, SpecError
from volumehost.hookspecs import VolumePlugin, required_hooks
from volumehost_projected import plugins

CONFIG_MAP = (plugins.ConfigMapPlugin, "kubernetes.io/configmap", {"configMap": {"name": "app"}}, "data/app")
SECRET = (plugins.SecretPlugin, "kubernetes.io/secret", {"secret": {"secretName": "db"}}, "db")
DOWNWARD = (plugins.DownwardAPIPlugin, "kubernetes.io/downward-api", {"downwardAPI": {"items": []}}, "data")
PROJECTED = (plugins.ProjectedPlugin, "kubernetes.io/projected", {"projected": {"sources": []}}, "data")
ALL = [CONFIG_MAP, SECRET, DOWNWARD, PROJECTED]
each = pytest.mark.parametrize(("plugin", "name", "source", "volume_name"), ALL, ids=[name for _, name, *_ in ALL])


def spec_of(source) -> Spec:
    return Spec.from_volume(to_object(Volume, {"name": "data", **source}))


@each
def test_names_and_kinds(plugin, name, source, volume_name):
    made, spec = plugin(), spec_of(source)
    assert (made.get_plugin_name(), made.get_volume_name(spec)) == (name, volume_name)
    assert made.get_volume_sources() == (spec.source(),)
    assert made.requires_remount(spec) is True
    hooks = {hook for hook in dir(plugin) if hasattr(getattr(plugin, hook), "volumehost_impl")}
    assert required_hooks(VolumePlugin) <= hooks


@each
def test_supports_its_own_kind_alone(plugin, name, source, volume_name):
    supported = [other for other, _, of_other, _ in ALL if plugin().can_support(spec_of(of_other))]
    assert supported == [plugin]
    persistent_volume = PersistentVolume(spec=PersistentVolumeSpec(host_path=HostPathVolumeSource(path="/x")))
    for spec in (Spec(), Spec.from_persistent_volume(persistent_volume, read_only=False)):
        assert not plugin().can_support(spec)
        with pytest.raises(SpecError, match="does not reference a"):
            plugin().get_volume_name(spec)


@each
def test_before_init_it_says_so(plugin, name, source, volume_name, world):
    pod = world.pod({"name": "data", **source})
    with pytest.raises(NotAvailableOnHostError, match="not initialised"):
        plugin().new_mounter(Spec.from_volume(pod.spec.volumes[0]), pod)
    with pytest.raises(NotAvailableOnHostError, match="not initialised"):
        plugin().new_unmounter("data", "u-1")


@each
def test_attributes_metrics_and_reconstruction(plugin, name, source, volume_name, world):
    mounter = world.mounter(world.pod({"name": "data", **source}))
    attributes = mounter.get_attributes()
    assert (attributes.read_only, attributes.managed, attributes.selinux_relabel) == (True, True, True)
    found = world.plugins.find_plugin_by_name(name).construct_volume_spec("data", mounter.get_path())
    assert not found.complete
    assert found.spec.name() == "data"
    assert plugin().can_support(found.spec)
    assert plugin().get_volume_name(found.spec) == {"data/app": "data/data", "db": "data"}.get(volume_name, "data")


@pytest.mark.root
def test_metrics_are_those_of_the_files(world):
    world.config_map("app", binary_data={"a": b"x" * 100_000})
    path = world.mount({"name": "data", "configMap": {"name": "app"}})
    of_mounter = world.mounter(world.pod({"name": "data", "configMap": {"name": "app"}})).get_metrics()
    uid = path.split("/")[-4]
    of_unmounter = world.plugins.find_plugin_by_name("kubernetes.io/configmap").new_unmounter("data", uid).get_metrics()
    for metrics in (of_mounter, of_unmounter):
        assert 100_000 <= metrics.used < 200_000
        assert metrics.capacity > 0
        assert metrics.source == "du"


@pytest.mark.parametrize("hostile", ["..", ".", "a/b", "", "x" * 300])
@each
def test_hostile_names_are_refused(plugin, name, source, volume_name, world, hostile):
    with pytest.raises(Exception, match="volume name"):
        world.plugins.find_plugin_by_name(name).new_unmounter(hostile, "u-1").tear_down()


def test_importing_the_plugins_is_light():
    """``volumehost plugins list`` imports them: nothing of the api room, no msgspec."""
    code = (
        "import sys, volumehost_projected.plugins\n"
        "heavy = {'msgspec', 'yaml', 'json', 'volumehost.api.objects', 'volumehost.sdk', 'volumehost.mount'}\n"
        "print(sorted(heavy & set(sys.modules)), [m for m in sys.modules if m.startswith('volumehost_projected')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[] ['volumehost_projected', 'volumehost_projected.plugins']"
