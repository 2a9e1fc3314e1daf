"""Specs from what is on disk, and in-tree names (CSI-PLUG-30, -31, BR-55, BR-56, CSI-MIG)."""

from __future__ import annotations

import os

import pytest

from volumehost import MounterArgs, Spec
from volumehost.api.objects import (
    AWSElasticBlockStoreVolumeSource,
    CSIPersistentVolumeSource,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeSpec,
)
from volumehost.errors import SpecError
from volumehost_csi import vol_data
from volumehost_csi.migration import DRIVERS_OF_IN_TREE_PLUGINS, Migration
from volumehost_csi.vol_data import BrokenRecordError

NAME = "fake.csi.example.com"
UID = "11111111-2222-3333-4444-555555555555"


@pytest.mark.root
@pytest.mark.parametrize("below", ["/mount", ""])
def test_csi_plug_30_a_persistent_volume(plugin, csi_driver, mounted, below):
    csi_driver()
    volume = mounted()
    found = plugin.construct_volume_spec("ignored", volume.target.removesuffix("/mount") + below)
    assert not found.complete
    assert found.selinux_mount_context == ""
    persistent = found.spec.persistent_volume
    assert (persistent.metadata.name, persistent.spec.volume_mode) == ("pv-1", "Filesystem")
    assert (persistent.spec.csi.driver, persistent.spec.csi.volume_handle) == (NAME, "vol-1")
    assert not found.spec.read_only
    assert plugin.get_volume_name(found.spec) == plugin.get_volume_name(volume.spec)


@pytest.mark.root
def test_csi_plug_30_an_inline_volume(plugin, csi_driver, make_inline, pod):
    csi_driver()
    mounter = plugin.new_mounter(make_inline(), pod)
    mounter.set_up(MounterArgs())
    found = plugin.construct_volume_spec("scratch", mounter.get_path())
    assert found.spec.persistent_volume is None
    assert (found.spec.volume.name, found.spec.volume.csi.driver) == ("scratch", NAME)


def test_csi_data_10_a_record_of_an_old_release_is_of_a_persistent_volume(plugin, host):
    directory = host.get_pod_volume_dir(UID, "kubernetes.io/csi", "old")
    os.makedirs(directory)
    vol_data.write(directory, {"specVolID": "old", "driverName": NAME, "volumeHandle": "h"})
    assert plugin.construct_volume_spec("old", f"{directory}/mount").spec.persistent_volume.metadata.name == "old"


@pytest.mark.root
def test_br_56_a_broken_record_is_made_up_for(plugin, csi_driver, mounted):
    csi_driver()
    volume = mounted()
    with open(f"{os.path.dirname(volume.target)}/vol_data.json", "w"):
        pass
    found = plugin.construct_volume_spec("pv-1", volume.target)
    assert plugin.get_volume_name(found.spec) == f"{NAME}^vol-1"


def test_without_any_witness_there_is_no_spec(plugin, host):
    directory = host.get_pod_volume_dir(UID, "kubernetes.io/csi", "lost")
    with pytest.raises(BrokenRecordError, match="there is no record"):
        plugin.construct_volume_spec("lost", f"{directory}/mount")
    os.makedirs(directory)
    with open(f"{directory}/vol_data.json", "w"):
        pass
    with pytest.raises(BrokenRecordError):
        plugin.construct_volume_spec("lost", f"{directory}/mount")


def test_csi_plug_31_a_block_volume(plugin, csi_driver, make_pv, pod, host, api):
    spec = make_pv(spec={"volume_mode": "Block", "capacity": {"storage": "1Gi"}})
    csi_driver()
    mapper = plugin.new_block_volume_mapper(spec, pod)
    mapper.set_up_device()
    found = plugin.construct_block_volume_spec("pv-1")
    assert found.volume_mode() == "Block"
    assert plugin.get_volume_name(found) == f"{NAME}^vol-1"
    with open(f"{mapper._paths.data_dir}/vol_data.json", "w"):
        pass
    with pytest.raises(BrokenRecordError):
        plugin.construct_block_volume_spec("pv-1")
    api.create(spec.persistent_volume)
    assert plugin.get_volume_name(plugin.construct_block_volume_spec("pv-1")) == f"{NAME}^vol-1"


@pytest.mark.root
def test_br_55_devices_are_found_by_their_records(plugin, host, csi_driver, staged, make_pv, pod, caplog):
    csi_driver()
    assert list(plugin.find_device_mounts(())) == []
    filesystem = staged()
    block = make_pv("pv-2", handle="vol-2", spec={"volume_mode": "Block"})
    mapper = plugin.new_block_volume_mapper(block, pod)
    mapper.set_up_device()
    base = f"{host.root_dir}/plugins/kubernetes.io/csi"
    for nonsense in ("x", "volumeDevices/broken/data", f"{NAME}/0000", f"{NAME}/1111"):
        os.makedirs(f"{base}/{nonsense}")
    vol_data.write(f"{base}/{NAME}/0000", {"driverName": NAME, "volumeHandle": "another"})  # not its hash
    vol_data.write(f"{base}/{NAME}/1111", {"driverName": "../..", "volumeHandle": "vol-1"})
    with open(f"{base}/volumeDevices/broken/data/vol_data.json", "w"):
        pass
    found = {each.device_mount_path: plugin.get_volume_name(each.spec) for each in plugin.find_device_mounts(())}
    assert found == {
        plugin.new_device_mounter().get_device_mount_path(filesystem): f"{NAME}^vol-1",
        mapper.get_global_map_path(block): f"{NAME}^vol-2",
    }
    assert "cannot be told by its record" in caplog.text
    assert plugin.find_device_mounts({f"{NAME}^vol-1", f"{NAME}^vol-2", "no name of a CSI volume"}) == []


# --- migration ------------------------------------------------------------------------------------------------


class Ebs:
    def translate(self, spec, namespace):
        handle = spec.persistent_volume.spec.aws_elastic_block_store.volume_id
        translated = PersistentVolume(
            metadata=ObjectMeta(name=spec.name()),
            spec=PersistentVolumeSpec(csi=CSIPersistentVolumeSource(driver="ebs.csi.aws.com", volume_handle=handle)),
        )
        return Spec.from_persistent_volume(translated, read_only=False)


def in_tree(read_only=False):
    source = AWSElasticBlockStoreVolumeSource(volume_id="vol-0abc")
    volume = PersistentVolume(metadata=ObjectMeta(name="pv"), spec=PersistentVolumeSpec(aws_elastic_block_store=source))
    return Spec.from_persistent_volume(volume, read_only=read_only)


def test_csi_mig_02_the_seven_names():
    assert DRIVERS_OF_IN_TREE_PLUGINS == {
        "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
        "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
        "kubernetes.io/cinder": "cinder.csi.openstack.org",
        "kubernetes.io/azure-disk": "disk.csi.azure.com",
        "kubernetes.io/azure-file": "file.csi.azure.com",
        "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
        "kubernetes.io/portworx-volume": "pxd.portworx.com",
    }


def test_csi_mig_01_04_a_translated_spec_is_marked_and_keeps_read_only():
    migration = Migration({"kubernetes.io/aws-ebs": Ebs()})
    assert migration.migrated_plugins() == ("kubernetes.io/aws-ebs",)
    translated = migration.translate(in_tree(read_only=True))
    assert (translated.migrated, translated.read_only) == (True, True)
    assert not translated.inline_volume_spec_for_csi_migration
    assert translated.persistent_volume.spec.csi.volume_handle == "vol-0abc"


def test_csi_mig_06_without_a_translator_a_spec_stays_as_it_is(make_pv):
    spec = in_tree()
    assert Migration().translate(spec) is spec
    other = make_pv()
    assert Migration({"kubernetes.io/aws-ebs": Ebs()}).translate(other) is other


def test_a_translator_of_an_unknown_plugin_is_refused():
    with pytest.raises(SpecError, match=r"kubernetes\.io/rbd"):
        Migration({"kubernetes.io/rbd": Ebs()})


def test_a_translator_that_returns_something_else_is_refused():
    class Wrong:
        def translate(self, spec, namespace):
            return spec

    with pytest.raises(SpecError):
        Migration({"kubernetes.io/aws-ebs": Wrong()}).translate(in_tree())
