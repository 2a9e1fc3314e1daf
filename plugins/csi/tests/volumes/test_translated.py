"""Volumes of a type that was built into Kubernetes, end to end: pod, translator, driver (CSI-MIG-01, CSI-NIM-25)."""

from __future__ import annotations

import copy
import os
import tempfile

import pytest

from volumehost import Spec, VolumeManager
from volumehost.api.objects import (
    CSINode,
    CSIPersistentVolumeSource,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeAttachment,
)
from volumehost.errors import SpecError
from volumehost.loader.events import NoProber
from volumehost_csi.plugin import CSIPlugin
from volumehost_csi_kit.fake import FakeDriverProcess

EBS = "ebs.csi.aws.com"
NODE = ["STAGE_UNSTAGE_VOLUME"]
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
POD = {
    "metadata": {"name": "web"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "volumeMounts": [{"name": "inline", "mountPath": "/i"}, {"name": "claimed", "mountPath": "/c"}],
            }
        ],
        "volumes": [
            {"name": "inline", "awsElasticBlockStore": {"volumeID": "vol-inline"}},
            {"name": "claimed", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
        "volumeName": "pv",
    },
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "pv"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "awsElasticBlockStore": {"volumeID": "vol-claimed"},
    },
}


class Ebs:
    """Does what the translation library does, as far as it matters here."""

    def translate(self, spec, namespace):
        if spec.volume is not None:
            handle = spec.volume.aws_elastic_block_store.volume_id
            volume = PersistentVolume(
                metadata=ObjectMeta(name=f"{EBS}-{handle}"), spec=PersistentVolumeSpec(access_modes=["ReadWriteOnce"])
            )
        else:
            volume = copy.deepcopy(spec.persistent_volume)
            handle = volume.spec.aws_elastic_block_store.volume_id
            volume.spec.aws_elastic_block_store = None
        volume.spec.csi = CSIPersistentVolumeSource(driver=EBS, volume_handle=handle)
        return Spec.from_persistent_volume(volume, spec.read_only)


@pytest.fixture
def manager():
    """A manager with the plugin and its translator, and the driver that took over."""
    with tempfile.TemporaryDirectory(prefix="csi") as short:
        endpoint = f"unix://{short}/csi.sock"
        with (
            FakeDriverProcess(endpoint, f"{short}/files", name=EBS, mounts="bind", node=NODE, controller=[]),
            VolumeManager(
                f"{short}/root",
                node_name="node-a",
                plugins=[CSIPlugin(translators={"kubernetes.io/aws-ebs": Ebs()})],
                prober=NoProber(),
            ) as manager,
        ):
            manager.drivers.register(EBS, endpoint)
            yield manager
            manager.unmount_all(timeout=60)


@pytest.mark.root
def test_an_inline_and_a_claimed_volume_are_attached_mounted_and_taken_away(manager):
    for document in (VOLUME, CLAIM):
        manager.api.create(document)
    status = manager.mount_pod(POD, timeout=60)
    assert {volume.plugin for volume in status.volumes} == {"kubernetes.io/csi"}
    (container,) = manager.container_mounts(status)
    assert all(manager.host.get_mounter().is_mount_point(mount.host_path) for mount in container.mounts)
    sources = [each.spec.source for each in manager.api.list(VolumeAttachment).items]
    assert sorted(each.persistent_volume_name or "" for each in sources) == ["", "pv"]
    (inline,) = [each.inline_volume_spec for each in sources if each.inline_volume_spec is not None]
    assert inline.csi.volume_handle == "vol-inline"
    assert manager.api.get(PersistentVolume, "pv").spec.csi is None
    manager.unmount_pod("web", timeout=60)
    assert manager.api.list(VolumeAttachment).items == []
    assert not os.listdir(f"{manager.root_dir}/pods")


@pytest.mark.root
def test_the_csi_node_tells_which_types_are_migrated(manager):
    assert manager.api.get(CSINode, "node-a").metadata.annotations == {MIGRATED: "kubernetes.io/aws-ebs"}


def test_the_host_is_told_the_kinds_that_have_a_translator():
    assert CSIPlugin().get_spec_translators() is None
    assert set(CSIPlugin(translators={}).get_spec_translators()) == set()
    assert set(CSIPlugin(translators={"kubernetes.io/aws-ebs": Ebs()}).get_spec_translators()) == {
        "aws_elastic_block_store"
    }
    with pytest.raises(SpecError, match=r"kubernetes\.io/nfs"):
        CSIPlugin(translators={"kubernetes.io/nfs": Ebs()})
