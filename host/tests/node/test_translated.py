"""Volumes of a kind that a plugin has taken over are mounted by the plugin of the translated spec (CSI-MIG-01)."""

import pytest

from volumehost import Spec, hookimpl
from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, Volume
from volumehost.errors import SpecError, VolumesFailedError
from volumehost.node.state.recorded_spec import spec_from_record, wire_spec

IN_TREE = {"name": "data", "awsElasticBlockStore": {"volumeID": "vol-1"}}


@pytest.fixture
def translating(bind):
    """A plugin for nfs volumes that takes over another kind; what it was asked is in ``asked``."""
    plugin = bind()
    plugin.asked = []
    plugin.answer = None

    def translate(spec, namespace):
        plugin.asked.append((spec.source(), namespace))
        if plugin.answer is None:
            raise SpecError("the zone of vol-1 is not known")
        return plugin.answer

    class Translating(type(plugin)):
        @hookimpl
        def get_spec_translators(self):
            return {"aws_elastic_block_store": translate}

    plugin.__class__ = Translating
    return plugin


@pytest.mark.root
def test_a_pod_gets_what_the_translator_makes_of_its_volume(manager, translating, nfs, make_pod, mounts):
    translating.answer = Spec.from_volume(to_object(Volume, nfs("data")))
    node = manager(translating)
    status = node.mount_pod(make_pod(IN_TREE, namespace="team"), timeout=20)
    assert status.ready
    assert set(translating.asked) == {("aws_elastic_block_store", "team")}
    assert len(mounts()) == 1
    node.unmount_pod("web", "team", timeout=20)
    assert mounts() == []


@pytest.mark.root
def test_a_translator_that_fails_costs_its_kind_alone(manager, translating, nfs, make_pod):
    node = manager(translating)
    with pytest.raises(VolumesFailedError) as caught:
        node.mount_pod(make_pod(IN_TREE, nfs("other")), timeout=20, attempts=1)
    (line,) = caught.value.details
    assert "the zone of vol-1 is not known" in line
    node.unmount_pod("web", timeout=20)


def test_the_journal_keeps_what_a_translator_made():
    volume = to_object(PersistentVolume, {"metadata": {"name": "pv"}})
    for spec in (
        Spec(persistent_volume=volume, read_only=True, migrated=True, inline_volume_spec_for_csi_migration=True),
        Spec(persistent_volume=volume, migrated=True),
        Spec(persistent_volume=volume),
    ):
        read = spec_from_record(wire_spec(spec))
        assert (read.read_only, read.migrated, read.inline_volume_spec_for_csi_migration) == (
            spec.read_only,
            spec.migrated,
            spec.inline_volume_spec_for_csi_migration,
        )
