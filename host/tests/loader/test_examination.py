from __future__ import annotations

from collections.abc import Callable

from volumehost import hookimpl
from volumehost.api.objects import PersistentVolumeSpec, Volume
from volumehost.loader.examination import examine, sample_specs
from volumehost.loader.manager import VolumePluginManager
from volumehost.loader.status import SET_ASIDE
from volumehost.spec import Spec


def make_plugin(name: str, answer: Callable[[Spec], object]) -> object:
    """A plugin that answers for specs as told."""

    class Plugin:
        @hookimpl
        def get_plugin_name(self):
            return name

        @hookimpl
        def get_volume_name(self, spec):
            return spec.name()

        @hookimpl
        def can_support(self, spec):
            return answer(spec)

        @hookimpl
        def new_mounter(self, spec, pod):
            raise NotImplementedError

        @hookimpl
        def new_unmounter(self, volume_name, pod_uid):
            raise NotImplementedError

        @hookimpl
        def construct_volume_spec(self, volume_name, mount_path):
            raise NotImplementedError

    return Plugin()


def manager_of(*plugins: object) -> VolumePluginManager:
    manager = VolumePluginManager(ask_timeout=0.3)
    assert manager.init_plugins(plugins) == []
    return manager


def test_there_is_a_sample_for_every_source_and_for_none() -> None:
    specs = [spec for _, spec in sample_specs()]
    assert len(specs) == 1 + len(Volume.SOURCES) + len(PersistentVolumeSpec.SOURCES)
    assert [spec.source() for spec in specs] == ["", *Volume.SOURCES, *PersistentVolumeSpec.SOURCES]
    assert [spec.name() for spec in specs[1:]] == ["sample"] * (len(specs) - 1)


def test_plugins_that_behave_and_differ_are_fine() -> None:
    manager = manager_of(
        make_plugin("example.com/nfs", lambda spec: spec.source() == "nfs"),
        make_plugin("example.com/none", lambda spec: False),
    )
    assert examine(manager) == []
    assert all(status.error is None for status in manager.plugins())


def test_plugins_that_claim_the_same_are_one_error_for_all_their_sources() -> None:
    manager = manager_of(
        make_plugin("example.com/one", lambda spec: spec.source() in {"nfs", "iscsi"}),
        make_plugin("example.com/two", lambda spec: spec.source() in {"nfs", "iscsi"}),
        make_plugin("example.com/three", lambda spec: spec.source() == "rbd"),
    )
    (error,) = examine(manager)
    assert error.names == ("example.com/one", "example.com/two")
    assert "nfs volumes" in error.reason
    assert "1 more" in error.reason
    assert error.hint


def test_plugins_that_answer_for_a_spec_without_a_volume_are_found() -> None:
    """PLUG-04: can_support takes a spec with neither volume nor persistent volume."""

    def careless(spec: Spec) -> bool:
        assert spec.volume is not None
        return False

    manager = manager_of(make_plugin("example.com/careless", careless))
    assert examine(manager) == []
    (status,) = manager.plugins()
    assert status.state == SET_ASIDE
    assert "AssertionError" in status.detail
