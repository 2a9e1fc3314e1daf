"""The hooks of the emptyDir plugin: EMPTYDIR-01, -03, -05, -06; what it costs to import it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from volumehost import MounterArgs, Spec
from volumehost.api.objects import HostPathVolumeSource, PersistentVolume, PersistentVolumeSpec, Volume
from volumehost.errors import NotAvailableOnHostError, SpecError
from volumehost.hookspecs import ResizableEphemeralVolumePlugin, VolumePlugin, required_hooks
from volumehost_emptydir.plugin import EmptyDirPlugin


def test_supports_emptydir_volumes_alone(make_spec):
    plugin = EmptyDirPlugin()
    assert plugin.can_support(make_spec())
    assert not plugin.can_support(Spec())
    assert not plugin.can_support(Spec.from_volume(Volume(name="x", host_path=HostPathVolumeSource(path="/x"))))
    persistent_volume = PersistentVolume(spec=PersistentVolumeSpec(host_path=HostPathVolumeSource(path="/x")))
    assert not plugin.can_support(Spec.from_persistent_volume(persistent_volume, read_only=False))
    assert plugin.get_volume_sources() == (make_spec().source(),)


def test_names(make_spec):
    plugin = EmptyDirPlugin()
    assert plugin.get_plugin_name() == "kubernetes.io/empty-dir"
    assert plugin.get_volume_name(make_spec(name="cache")) == "cache"
    with pytest.raises(SpecError, match="does not reference an emptyDir"):
        plugin.get_volume_name(Spec())


def test_has_the_interfaces_that_it_should_have():
    hooks = {name for name, value in vars(EmptyDirPlugin).items() if hasattr(value, "volumehost_impl")}
    assert required_hooks(VolumePlugin) | required_hooks(ResizableEphemeralVolumePlugin) <= hooks


def test_before_init_it_says_so(make_spec, pod):
    with pytest.raises(NotAvailableOnHostError, match="not initialised"):
        EmptyDirPlugin().new_mounter(make_spec(), pod)


def test_a_volume_without_source_details_is_on_disk(plugin, pod):
    """EMPTYDIR-01: wrapping plugins hand over such volumes."""
    mounter = plugin.new_mounter(Spec.from_volume(Volume(name="scratch")), pod)
    mounter.set_up(MounterArgs())
    assert os.path.isdir(mounter.get_path())


@pytest.mark.root
@pytest.mark.parametrize("medium", ["", "Memory"])
def test_reconstruction_finds_the_medium(plugin, make_spec, pod, data_dir, medium):
    plugin.new_mounter(make_spec(medium, "1Mi"), pod).set_up(MounterArgs())
    found = plugin.construct_volume_spec("scratch", data_dir)
    assert found.spec.name() == "scratch"
    assert found.spec.volume.empty_dir.medium == medium
    assert not found.complete
    assert plugin.get_volume_name(found.spec) == "scratch"
    plugin.new_unmounter("scratch", pod.metadata.uid).tear_down()


def test_reconstruction_of_what_is_gone(plugin, data_dir):
    assert plugin.construct_volume_spec("scratch", data_dir).spec.volume.empty_dir.medium == ""


@pytest.mark.parametrize("name", ["..", ".", "a/b", "", "x" * 300])
def test_hostile_names_are_refused(plugin, pod, name):
    with pytest.raises(Exception, match="volume name"):
        plugin.new_unmounter(name, pod.metadata.uid)


def test_importing_every_module_is_light():
    """``volumehost plugins list`` imports every plugin: nothing of the api room, no msgspec, no ctypes."""
    code = (
        "import sys, pkgutil, importlib, volumehost_emptydir as package\n"
        "for module in pkgutil.iter_modules(package.__path__):\n"
        "    importlib.import_module(f'volumehost_emptydir.{module.name}')\n"
        "heavy = {'msgspec', 'yaml', 'ctypes', 'volumehost.api.objects', 'volumehost.mount', 'tempfile', 'uuid'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"
