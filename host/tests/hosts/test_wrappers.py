"""Wrapper mounters (WRAP-01 to -06)."""

import pytest

from volumehost.errors import (
    NotAvailableOnHostError,
    PluginCallError,
    PluginLookupError,
    UncertainProgressError,
    is_uncertain_progress_error,
)
from volumehost.hosts.node_host import NodeHost
from volumehost.loader.manager import VolumePluginManager
from volumehost.spec import Spec

VOLUME = {"name": "outer", "emptyDir": {"medium": "Memory"}}


def _host(plugin):
    manager = VolumePluginManager()
    assert manager.init_plugins([plugin]) == []
    return NodeHost("/r", plugin_manager=manager)


def test_wrap01_the_inner_name_is_wrapped(pod, scratch_plugin):
    plugin = scratch_plugin()
    web = pod(VOLUME)
    found = _host(plugin).new_wrapper_mounter("vol", Spec.from_volume(web.spec.volumes[0]), web)
    assert found == ("mounter", "wrapped_vol")
    assert plugin.calls[0][2] is web
    assert plugin.calls[0][1].volume.empty_dir.medium == "Memory"


def test_wrap02_the_unmounter_gets_the_same_name(pod, scratch_plugin):
    spec = Spec.from_volume(pod(VOLUME).spec.volumes[0])
    assert _host(scratch_plugin()).new_wrapper_unmounter("vol", spec, "u") == ("unmounter", "wrapped_vol", "u")


def test_wrap03_the_callers_spec_is_not_changed(pod, scratch_plugin):
    web = pod(VOLUME)
    spec = Spec.from_volume(web.spec.volumes[0])
    host = _host(scratch_plugin())
    for name in ("a", "b"):
        assert host.new_wrapper_mounter(name, spec, web) == ("mounter", f"wrapped_{name}")
    assert spec.name() == "outer"


def test_wrap06_no_plugin(pod, scratch_plugin):
    web = pod({"name": "v", "nfs": {"server": "s", "path": "/"}})
    with pytest.raises(PluginLookupError, match="can't use volume plugins for wrapped_v") as caught:
        _host(scratch_plugin()).new_wrapper_mounter("v", Spec.from_volume(web.spec.volumes[0]), web)
    assert caught.value.__cause__ is not None


def test_wrap06_a_failing_constructor_keeps_the_kind_of_its_error(pod, scratch_plugin):
    web = pod(VOLUME)
    spec = Spec.from_volume(web.spec.volumes[0])
    host = _host(scratch_plugin(error=UncertainProgressError("still going on")))
    with pytest.raises(PluginCallError, match="failed to instantiate mounter for volume: wrapped_v") as caught:
        host.new_wrapper_mounter("v", spec, web)
    assert "example.com/scratch with a root cause: still going on" in str(caught.value)
    assert is_uncertain_progress_error(caught.value)
    with pytest.raises(UncertainProgressError):
        host.new_wrapper_unmounter("v", spec, "u")


def test_without_plugins_there_is_nothing_to_wrap(pod):
    web = pod(VOLUME)
    with pytest.raises(NotAvailableOnHostError):
        NodeHost("/r").new_wrapper_mounter("v", Spec.from_volume(web.spec.volumes[0]), web)
