"""Plugins that take over a kind of volume: found by the kind, asked by nobody else (CSI-MIG-01)."""

from __future__ import annotations

import pytest

from volumehost import Spec, hookimpl
from volumehost.api.objects import HostPathVolumeSource, NFSVolumeSource, Volume
from volumehost.errors import MultiplePluginsMatchedError, PluginContractError

NFS = Spec.from_volume(Volume(name="v", nfs=NFSVolumeSource(server="s", path="/p")))
OTHER = Spec.from_volume(Volume(name="v", host_path=HostPathVolumeSource(path="/p")))


@pytest.fixture
def translating(base):
    """A plugin that hands out these translators."""

    def make(translators, name="example.com/t"):
        class Plugin(base):
            @hookimpl
            def get_spec_translators(self):
                return translators

        return Plugin(name, "quobyte")

    return make


def to_other(spec, namespace):
    return OTHER


def test_only_its_kinds_are_taken_over(manager, translating):
    plugins = manager(translating({"nfs": to_other}))
    assert plugins.find_translator(NFS) is to_other
    assert plugins.find_translator(OTHER) is None


def test_without_such_a_plugin_a_spec_is_not_even_looked_at(manager, base):
    plugins = manager(base())
    assert plugins.find_translator(None) is None


def test_two_that_take_over_one_kind_are_named(manager, translating):
    plugins = manager(translating({"nfs": to_other}, "example.com/b"), translating({"nfs": to_other}, "example.com/a"))
    with pytest.raises(MultiplePluginsMatchedError, match=r"nfs: example\.com/a,example\.com/b"):
        plugins.find_translator(NFS)
    assert plugins.find_translator(OTHER) is None


@pytest.mark.parametrize("given", ["nfs", ("nfs",), {"nfs": None}, {1: to_other}])
def test_what_is_no_mapping_to_callables_is_refused(manager, translating, given):
    (error,) = manager(translating(given)).init_errors
    assert isinstance(error, PluginContractError)
    assert "get_spec_translators" in error.reason
