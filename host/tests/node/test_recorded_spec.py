"""Specs on record: read when somebody needs one, as they were but for what nobody needs to take a volume down."""

import contextlib

import pytest

from volumehost.api.convert import to_object
from volumehost.api.objects import PersistentVolume, Volume
from volumehost.node.journal.journal import Journal
from volumehost.node.state.recorded_spec import read_spec, spec_from_record, wire_spec
from volumehost.spec import Spec


@pytest.fixture
def journal(tmp_path):
    with contextlib.closing(Journal(str(tmp_path / "journal"), boot_id="b")) as made:
        made.open()
        yield made


@pytest.fixture
def volume():
    return to_object(
        PersistentVolume,
        {
            "metadata": {
                "name": "pv",
                "uid": "u",
                "annotations": {"a": "b"},
                "resourceVersion": "7",
                "finalizers": ["kubernetes.io/pv-protection"],
            },
            "spec": {
                "capacity": {"storage": "1Gi"},
                "volumeMode": "Block",
                "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"é": "☃"}},
            },
            "status": {"phase": "Bound"},
        },
    )


@pytest.mark.parametrize("flags", [(False, False, False), (True, False, False), (False, True, True)])
def test_a_persistent_volume(journal, volume, flags):
    read_only, migrated, inline = flags
    spec = Spec(
        persistent_volume=volume,
        read_only=read_only,
        migrated=migrated,
        inline_volume_spec_for_csi_migration=inline,
    )
    journal.write({"v": "vol", "dev": "mounted", **wire_spec(spec)})
    for found in (read_spec(journal, "vol"), spec_from_record(journal.entry("vol"))):
        assert (found.read_only, found.migrated, found.inline_volume_spec_for_csi_migration) == flags
        assert found.persistent_volume.spec == volume.spec
        metadata = found.persistent_volume.metadata
        assert (metadata.name, metadata.uid, metadata.annotations) == ("pv", "u", {"a": "b"})
        assert (metadata.resource_version, metadata.finalizers) == ("", [])
        assert found.persistent_volume.status.phase != "Bound"


def test_a_volume_of_the_pod(journal):
    volume = to_object(Volume, {"name": "v", "csi": {"driver": "d"}})
    journal.write({"v": "vol", **wire_spec(Spec.from_volume(volume))})
    assert read_spec(journal, "vol").volume == volume


def test_no_spec_and_no_record(journal):
    journal.write({"v": "vol", "dev": "mounted"})
    assert read_spec(journal, "vol") is None
    assert read_spec(journal, "other") is None


def test_br56_what_makes_no_sense_is_told_and_is_no_spec(journal, caplog):
    journal.write({"v": "vol", "pv": {"metadata": {"name": 7}}})
    assert read_spec(journal, "vol") is None
    assert "the recorded spec of volume vol cannot be read" in caplog.text


def test_br56_a_record_of_a_newer_writer_is_read_by_what_is_known_of_it(journal, volume):
    record = wire_spec(Spec(persistent_volume=volume))
    record["pv"]["spec"]["colour"] = "blue"
    journal.write({"v": "vol", "hue": {"deep": [1]}, **record})
    assert read_spec(journal, "vol").persistent_volume.spec == volume.spec
