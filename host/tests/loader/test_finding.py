"""MGR-FIND-01 to -05: the two basic look-ups."""

from __future__ import annotations

import pytest

from volumehost import Spec, hookimpl
from volumehost.errors import (
    MultiplePluginsMatchedError,
    NoPluginMatchedError,
    PluginLookupError,
    PluginNotFoundError,
    SpecError,
)


def test_mgr_find_01_an_absent_spec_is_an_error_and_nobody_is_asked(manager, prober):
    made = manager(prober=prober)
    before = prober.probes
    with pytest.raises(SpecError, match="could not find plugin because volume spec is nil"):
        made.find_plugin_by_spec(None)
    assert prober.probes == before


def test_the_plugin_that_supports_the_spec_is_found(manager, base, spec_of):
    made = manager(base("example.com/a", "nfs"), base("example.com/b", "csi"))
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/a"
    assert made.find_plugin_by_spec(spec_of("csi")).name == "example.com/b"


def test_mgr_find_02_no_match_is_the_sentinel(manager, base, spec_of):
    made = manager(base())
    for _ in range(3):
        with pytest.raises(NoPluginMatchedError, match=r"^no volume plugin matched") as caught:
            made.find_plugin_by_spec(spec_of("csi", "my-volume"))
        assert caught.value.reason == "no volume plugin matched"
        assert caught.value.subject == "my-volume"
        assert caught.value.hint == "volumes of kind csi need a plugin that serves them: install one with pip"


@pytest.mark.parametrize(
    ("volume", "kind"),
    [
        ({"hostPath": {"path": "/x"}}, "hostPath"),
        ({"flexVolume": {"driver": "example.com/disk"}}, "flexVolume with driver example.com/disk"),
    ],
)
def test_the_kind_that_nobody_serves_is_named_as_in_manifests(manager, volume, kind):
    from volumehost.api.convert import to_object
    from volumehost.api.objects import Volume

    spec = Spec.from_volume(to_object(Volume, {"name": "v", **volume}))
    with pytest.raises(NoPluginMatchedError) as caught:
        manager().find_plugin_by_spec(spec)
    assert caught.value.hint == f"volumes of kind {kind} need a plugin that serves them: install one with pip"


def test_plug_04_an_empty_spec_is_legal(manager, base):
    with pytest.raises(NoPluginMatchedError) as caught:
        manager(base()).find_plugin_by_spec(Spec())
    assert caught.value.hint == ""


def test_mgr_find_03_more_than_one_is_an_error_that_names_them_sorted(manager, base, spec_of):
    made = manager(base("example.com/z"), base("example.com/a"), base("example.com/m", "csi"))
    for _ in range(3):  # the first time guarded, then from the memo
        with pytest.raises(MultiplePluginsMatchedError) as caught:
            made.find_plugin_by_spec(spec_of("nfs"))
        assert caught.value.reason == "multiple volume plugins matched: example.com/a,example.com/z"
        assert caught.value.names == ("example.com/a", "example.com/z")


def test_mgr_find_04_an_unknown_name_is_not_the_sentinel(manager, base):
    made = manager(base())
    with pytest.raises(PluginNotFoundError) as caught:
        made.find_plugin_by_name("example.com/other")
    assert caught.value.reason == "no volume plugin matched name: example.com/other"
    assert not isinstance(caught.value, NoPluginMatchedError)
    assert isinstance(caught.value, PluginLookupError)


def test_sources_declared_are_asked_alone_and_still_verified(manager, base, spec_of):
    asked = []

    class Indexed(base):
        @hookimpl
        def get_volume_sources(self):
            return {"nfs"}

        @hookimpl
        def can_support(self, spec):
            asked.append(self.name)
            return self.source == "really"

    made = manager(Indexed("example.com/no"), Indexed("example.com/yes", "really"), base("example.com/csi", "csi"))
    assert made.find_plugin_by_spec(spec_of("nfs")).name == "example.com/yes"
    assert asked == ["example.com/no", "example.com/yes"]
    asked.clear()
    assert made.find_plugin_by_spec(spec_of("csi")).name == "example.com/csi"
    assert asked == []


def test_an_ambiguity_between_one_that_declares_and_one_that_does_not_is_seen(manager, base, spec_of):
    class Indexed(base):
        @hookimpl
        def get_volume_sources(self):
            return ["nfs"]

    made = manager(Indexed("example.com/a"), base("example.com/b"))
    with pytest.raises(MultiplePluginsMatchedError):
        made.find_plugin_by_spec(spec_of("nfs"))


def test_a_match_that_depends_on_the_spec_is_asked_each_time(manager, base, spec_of):
    class ByName(base):
        @hookimpl
        def can_support(self, spec):
            return spec.name() == self.source

    made = manager(ByName("example.com/a", "one"), ByName("example.com/b", "two"))
    for _ in range(2):
        assert made.find_plugin_by_spec(spec_of("nfs", "one")).name == "example.com/a"
        assert made.find_plugin_by_spec(spec_of("nfs", "two")).name == "example.com/b"
        with pytest.raises(NoPluginMatchedError):
            made.find_plugin_by_spec(spec_of("nfs", "three"))
