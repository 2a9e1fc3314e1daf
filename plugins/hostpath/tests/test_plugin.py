"""The hooks of the hostPath plugin: HOSTPATH-01 to -10; what it costs to import it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from volumehost import Attributes, MounterArgs, Spec
from volumehost.api.objects import EmptyDirVolumeSource, Volume
from volumehost.errors import (
    NotAvailableOnHostError,
    NotSupportedMetricsError,
    OperationNotSupportedError,
    SpecError,
)
from volumehost.hookspecs import (
    DeletableVolumePlugin,
    PersistentVolumePlugin,
    ProvisionableVolumePlugin,
    RecyclableVolumePlugin,
    required_hooks,
)
from volumehost_hostpath.plugin import HostPathPlugin


def test_supports_both_kinds_of_hostpath_and_nothing_else(make_spec, make_pv_spec):
    plugin = HostPathPlugin()
    assert plugin.can_support(make_spec("/x"))
    assert plugin.can_support(make_pv_spec("/x"))
    assert not plugin.can_support(Spec())
    assert not plugin.can_support(Spec.from_volume(Volume(name="x", empty_dir=EmptyDirVolumeSource())))
    assert {make_spec("/x").source(), make_pv_spec("/x").source()} == set(plugin.get_volume_sources())


def test_names(make_spec, make_pv_spec):
    plugin = HostPathPlugin()
    assert plugin.get_plugin_name() == "kubernetes.io/host-path"
    assert plugin.get_volume_name(make_spec("/a/b")) == "/a/b"
    assert plugin.get_volume_name(make_pv_spec("/a/b")) == "/a/b"
    with pytest.raises(SpecError, match="does not reference a hostPath"):
        plugin.get_volume_name(Spec())


def test_access_modes():
    assert list(HostPathPlugin().get_access_modes()) == ["ReadWriteOnce"]


def test_has_the_interfaces_that_it_should_have():
    hooks = {name for name, value in vars(HostPathPlugin).items() if hasattr(value, "volumehost_impl")}
    for interface in (
        PersistentVolumePlugin,
        RecyclableVolumePlugin,
        DeletableVolumePlugin,
        ProvisionableVolumePlugin,
    ):
        assert required_hooks(interface) <= hooks


@pytest.mark.parametrize("read_only", [False, True])
def test_attributes_follow_the_claim_source(plugin, make_pv_spec, make_spec, read_only):
    """HOSTPATH-04, -06."""
    attributes = plugin.new_mounter(make_pv_spec("/x", read_only=read_only)).get_attributes()
    assert attributes == Attributes(read_only=read_only, managed=False, selinux_relabel=False)
    assert not plugin.new_mounter(make_spec("/x")).get_attributes().read_only


def test_path_and_metrics(plugin, make_spec):
    mounter = plugin.new_mounter(make_spec("/etc"))
    assert mounter.get_path() == "/etc"
    with pytest.raises(NotSupportedMetricsError) as caught:
        mounter.get_metrics()
    assert caught.value.code == 1


def test_set_up_changes_nothing_of_what_is_there(plugin, make_spec, directory):
    os.mkdir(f"{directory}/data", 0o700)
    before = os.stat(f"{directory}/data")
    plugin.new_mounter(make_spec(f"{directory}/data", "Directory")).set_up(MounterArgs(fs_group=5000))
    assert os.stat(f"{directory}/data") == before


def test_the_unmounter_touches_nothing(plugin, directory):
    Path(directory, "data").touch()
    unmounter = plugin.new_unmounter()
    assert unmounter.get_path() == ""
    unmounter.tear_down()
    unmounter.tear_down()
    assert Path(directory, "data").exists()


def test_at_another_directory_makes_no_sense(plugin, make_spec):
    """HOSTPATH-09."""
    with pytest.raises(OperationNotSupportedError, match=r"SetUpAt\(\) does not make sense for host paths"):
        plugin.new_mounter(make_spec("/x")).set_up_at("/y", MounterArgs())
    with pytest.raises(OperationNotSupportedError, match=r"TearDownAt\(\) does not make sense for host paths"):
        plugin.new_unmounter().tear_down_at("/y")


def test_reconstruction_knows_the_name_and_says_that_it_knows_no_more(plugin):
    found = plugin.construct_volume_spec("data")
    assert found.spec.name() == "data"
    assert plugin.can_support(found.spec)
    assert found.spec.volume.host_path.path == ""
    assert not found.complete


def test_a_controller_host_is_enough_to_load_but_not_to_mount(make_spec):
    """KHOST-04."""

    class ControllerLike:
        """Not a KubeletVolumeHost."""

    plugin = HostPathPlugin()
    plugin.init(ControllerLike())
    with pytest.raises(NotAvailableOnHostError, match="does not implement KubeletVolumeHost interface"):
        plugin.new_mounter(make_spec("/x"))


def test_no_host_at_all(make_spec, make_pv_spec):
    plugin = HostPathPlugin()
    plugin.init(None)
    assert plugin.can_support(make_spec("/x"))
    with pytest.raises(NotAvailableOnHostError, match="not initialised"):
        plugin.new_mounter(make_spec("/x"))
    with pytest.raises(NotAvailableOnHostError, match="not initialised"):
        plugin.new_deleter(make_pv_spec("/tmp/x"))


def test_importing_every_module_is_light():
    """``volumehost plugins list`` imports every plugin: nothing of the api room, no msgspec, no ctypes."""
    code = (
        "import sys, pkgutil, importlib, volumehost_hostpath as package\n"
        "for module in pkgutil.iter_modules(package.__path__):\n"
        "    importlib.import_module(f'volumehost_hostpath.{module.name}')\n"
        "heavy = {'msgspec', 'yaml', 'ctypes', 'volumehost.api.objects', 'volumehost.mount', 'tempfile', 'uuid'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"
