"""BR-33: every field of every request, one table for each call."""

from __future__ import annotations

import pytest

from volumehost import MounterArgs, NodeResizeOptions
from volumehost.api.objects import (
    LocalObjectReference,
    ObjectMeta,
    SecretReference,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
)
from volumehost_csi.names import attachment_name
from volumehost_csi_kit import csi

pytestmark = pytest.mark.root

NAME = "fake.csi.example.com"
UID = "11111111-2222-3333-4444-555555555555"
SHA = "d2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49"
POD_INFO = {
    "csi.storage.k8s.io/pod.name": "web",
    "csi.storage.k8s.io/pod.namespace": "default",
    "csi.storage.k8s.io/pod.uid": UID,
    "csi.storage.k8s.io/serviceAccount.name": "robot",
}
MULTI = csi.VolumeCapability.AccessMode.SINGLE_NODE_MULTI_WRITER
SINGLE = csi.VolumeCapability.AccessMode.SINGLE_NODE_WRITER


def reference(name):
    return SecretReference(name=name, namespace="default")


@pytest.fixture
def attached(api):
    """A VolumeAttachment with a publish context; that it is not attached does not matter here (CSI-EDGE-11)."""
    name = attachment_name("vol-1", NAME, "test-node")
    source = VolumeAttachmentSource(persistent_volume_name="pv-1")
    spec = VolumeAttachmentSpec(attacher=NAME, node_name="test-node", source=source)
    api.create(VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec))
    found = api.get(VolumeAttachment, name)
    found.status = VolumeAttachmentStatus(attached=False, attachment_metadata={"devicePath": "/dev/sdq"})
    api.replace_status(found)


@pytest.fixture
def full(make_pv, secret, csi_driver, attached):
    """A spec that uses everything that a PersistentVolume can say."""
    for name in ("stage", "publish", "expand"):
        secret(name, key=f"{name}-secret")
    csi_driver(attach_required=True, pod_info_on_mount=True)

    def make(read_only=True, **spec):
        return make_pv(
            read_only=read_only,
            fs_type="xfs",
            volume_attributes={"pool": "fast"},
            node_stage_secret_ref=reference("stage"),
            node_publish_secret_ref=reference("publish"),
            node_expand_secret_ref=reference("expand"),
            spec={"mount_options": ["noatime", "nodev"], **spec},
        )

    return make


def mount_capability(mode=SINGLE, **fields):
    mount = csi.VolumeCapability.MountVolume(**fields)
    return csi.VolumeCapability(access_mode=csi.VolumeCapability.AccessMode(mode=mode), mount=mount)


def block_capability(mode=SINGLE):
    block = csi.VolumeCapability.BlockVolume()
    return csi.VolumeCapability(access_mode=csi.VolumeCapability.AccessMode(mode=mode), block=block)


def test_node_stage_volume(node, host, staged, full):
    staged(full())
    assert node.last("NodeStageVolume") == csi.NodeStageVolumeRequest(
        volume_id="vol-1",
        publish_context={"devicePath": "/dev/sdq"},
        staging_target_path=f"{host.root_dir}/plugins/kubernetes.io/csi/{NAME}/{SHA}/globalmount",
        volume_capability=mount_capability(fs_type="xfs", mount_flags=["noatime", "nodev"]),
        secrets={"key": "stage-secret"},
        volume_context={"pool": "fast"},  # neither pod info nor tokens (CSI-DEV-08)
    )


def test_node_publish_volume_of_a_persistent_volume(node, host, mounted, full):
    mounted(full())
    assert node.last("NodePublishVolume") == csi.NodePublishVolumeRequest(
        volume_id="vol-1",
        publish_context={"devicePath": "/dev/sdq"},
        staging_target_path=f"{host.root_dir}/plugins/kubernetes.io/csi/{NAME}/{SHA}/globalmount",
        target_path=f"{host.root_dir}/pods/{UID}/volumes/kubernetes.io~csi/pv-1/mount",
        volume_capability=mount_capability(fs_type="xfs", mount_flags=["noatime", "nodev"]),
        readonly=True,
        secrets={"key": "publish-secret"},
        volume_context={"pool": "fast", **POD_INFO, "csi.storage.k8s.io/ephemeral": "false"},
    )


def test_node_publish_volume_of_an_inline_volume(plugin, node, host, make_inline, secret, csi_driver, pod):
    csi_driver(pod_info_on_mount=True)
    secret("inline", key="inline-secret")
    spec = make_inline(
        read_only=True,
        fs_type="ext4",
        volume_attributes={"size": "1Gi"},
        node_publish_secret_ref=LocalObjectReference(name="inline"),
    )
    plugin.new_mounter(spec, pod).set_up(MounterArgs())
    assert node.last("NodePublishVolume") == csi.NodePublishVolumeRequest(
        volume_id="csi-a46bec53679aafe7e6bc42077f33be9e5c533643ed1224b3bfbf2dd627bbf53c",
        target_path=f"{host.root_dir}/pods/{UID}/volumes/kubernetes.io~csi/scratch/mount",
        volume_capability=mount_capability(fs_type="ext4"),
        readonly=True,
        secrets={"key": "inline-secret"},
        volume_context={"size": "1Gi", **POD_INFO, "csi.storage.k8s.io/ephemeral": "true"},
    )


def test_csi_mnt_12_14_a_plain_volume_sends_nothing_that_nobody_asked_for(node, host, mounted, csi_driver):
    csi_driver()
    mounted()
    assert node.last("NodePublishVolume") == csi.NodePublishVolumeRequest(
        volume_id="vol-1",
        staging_target_path=f"{host.root_dir}/plugins/kubernetes.io/csi/{NAME}/{SHA}/globalmount",
        target_path=f"{host.root_dir}/pods/{UID}/volumes/kubernetes.io~csi/pv-1/mount",
        volume_capability=mount_capability(),
    )


def test_csi_cli_13_a_filesystem_named_block_is_a_filesystem(node, mounted, csi_driver, make_pv):
    csi_driver()
    mounted(make_pv(fs_type="block"))
    for call in ("NodeStageVolume", "NodePublishVolume"):
        assert node.last(call).volume_capability == mount_capability(fs_type="block")


def test_csi_plug_18_read_only_of_the_persistent_volume_alone_is_not_the_pods(node, mounted, csi_driver, make_pv):
    csi_driver()
    spec = make_pv()
    spec.persistent_volume.spec.csi.read_only = True
    mounted(spec)
    assert not node.last("NodePublishVolume").readonly


def test_node_unpublish_and_unstage_after_reconstruction(plugin, make_plugin, node, host, mounted, full):
    mounted(full())
    fresh = make_plugin(host)
    found = fresh.construct_volume_spec("pv-1", f"{host.root_dir}/pods/{UID}/volumes/kubernetes.io~csi/pv-1/mount")
    fresh.new_unmounter("pv-1", UID).tear_down()
    path = fresh.new_device_mounter().get_device_mount_path(found.spec)
    fresh.new_device_unmounter().unmount_device(path)
    assert node.last("NodeUnpublishVolume") == csi.NodeUnpublishVolumeRequest(
        volume_id="vol-1", target_path=f"{host.root_dir}/pods/{UID}/volumes/kubernetes.io~csi/pv-1/mount"
    )
    assert node.last("NodeUnstageVolume") == csi.NodeUnstageVolumeRequest(
        volume_id="vol-1",
        staging_target_path=f"{host.root_dir}/plugins/kubernetes.io/csi/{NAME}/{SHA}/globalmount",
    )


@pytest.mark.parametrize("stages", [True, False])
def test_node_expand_volume(plugin, node, full, stages):
    node.capabilities = ["EXPAND_VOLUME", *(["STAGE_UNSTAGE_VOLUME"] if stages else [])]
    options = NodeResizeOptions(full(), "/dev/sdq", "/mounted", "/staged", new_size=2 << 30, old_size=1 << 30)
    assert plugin.node_expand(options) is True
    assert node.last("NodeExpandVolume") == csi.NodeExpandVolumeRequest(
        volume_id="vol-1",
        volume_path="/mounted",
        capacity_range=csi.CapacityRange(required_bytes=2 << 30),
        staging_target_path="/staged" if stages else "",  # CSI-EXP-06 improved
        volume_capability=mount_capability(fs_type="xfs", mount_flags=["noatime", "nodev"]),
        secrets={"key": "expand-secret"},
    )


def test_node_expand_volume_of_a_block_volume(plugin, node, full):
    options = NodeResizeOptions(full(volume_mode="Block"), "/dev/sdq", "/mounted", "", new_size=5, old_size=1)
    plugin.node_expand(options)
    request = node.last("NodeExpandVolume")
    assert (request.volume_path, request.volume_capability) == ("/dev/sdq", block_capability())


def test_node_get_volume_stats(node, host, mounted, full):
    mounted(full()).mounter.get_metrics()
    assert node.last("NodeGetVolumeStats") == csi.NodeGetVolumeStatsRequest(
        volume_id="vol-1",
        volume_path=f"{host.root_dir}/pods/{UID}/volumes/kubernetes.io~csi/pv-1/mount",
        staging_target_path=f"{host.root_dir}/plugins/kubernetes.io/csi/{NAME}/{SHA}/globalmount",
    )


def test_block_stage_and_publish(plugin, node, host, full, pod):
    mapper = plugin.new_block_volume_mapper(full(volume_mode="Block"), pod)
    root = f"{host.root_dir}/plugins/kubernetes.io/csi/volumeDevices"
    assert mapper.set_up_device() == f"{root}/staging/pv-1"
    assert mapper.map_pod_device() == f"{root}/publish/pv-1/{UID}"
    assert node.last("NodeStageVolume") == csi.NodeStageVolumeRequest(
        volume_id="vol-1",
        publish_context={"devicePath": "/dev/sdq"},
        staging_target_path=f"{root}/staging/pv-1",
        volume_capability=block_capability(),
        secrets={"key": "stage-secret"},
        volume_context={"pool": "fast"},
    )
    assert node.last("NodePublishVolume") == csi.NodePublishVolumeRequest(
        volume_id="vol-1",
        publish_context={"devicePath": "/dev/sdq"},
        staging_target_path=f"{root}/staging/pv-1",
        target_path=f"{root}/publish/pv-1/{UID}",
        volume_capability=block_capability(),
        readonly=True,
        secrets={"key": "publish-secret"},
        volume_context={"pool": "fast", **POD_INFO, "csi.storage.k8s.io/ephemeral": "false"},
    )


def test_csi_plug_33_what_is_added_does_not_end_up_in_the_objects(mounted, full, pod):
    spec = full()
    mounted(spec)
    source = spec.persistent_volume.spec.csi
    assert source.volume_attributes == {"pool": "fast"}
    assert spec.persistent_volume.spec.mount_options == ["noatime", "nodev"]


def test_csi_mnt_07_the_publish_context_is_sent_each_time_and_read_once(node, api, mounted, full):
    volume = mounted(full())
    api.delete(VolumeAttachment, attachment_name("vol-1", NAME, "test-node"))
    volume.mounter.set_up(MounterArgs(is_remount=True))
    assert node.last("NodePublishVolume").publish_context == {"devicePath": "/dev/sdq"}


MODES = csi.VolumeCapability.AccessMode


@pytest.mark.parametrize(
    ("modes", "plain", "with_multi_writer"),
    [
        (["ReadWriteOnce"], MODES.SINGLE_NODE_WRITER, MODES.SINGLE_NODE_MULTI_WRITER),
        (["ReadOnlyMany"], MODES.MULTI_NODE_READER_ONLY, MODES.MULTI_NODE_READER_ONLY),
        (["ReadWriteMany"], MODES.MULTI_NODE_MULTI_WRITER, MODES.MULTI_NODE_MULTI_WRITER),
        (["ReadWriteOncePod"], MODES.SINGLE_NODE_WRITER, MODES.SINGLE_NODE_SINGLE_WRITER),
        (["ReadWriteMany", "ReadWriteOnce"], MODES.MULTI_NODE_MULTI_WRITER, MODES.MULTI_NODE_MULTI_WRITER),
        ([], MODES.SINGLE_NODE_WRITER, MODES.SINGLE_NODE_MULTI_WRITER),
        (["Sometimes"], MODES.UNKNOWN, MODES.UNKNOWN),
    ],
)
@pytest.mark.parametrize("multi", [False, True])
def test_br_42_csi_cli_08_access_modes(node, mounted, csi_driver, make_pv, modes, plain, with_multi_writer, multi):
    node.capabilities = ["STAGE_UNSTAGE_VOLUME", *(["SINGLE_NODE_MULTI_WRITER"] if multi else [])]
    csi_driver()
    mounted(make_pv(spec={"access_modes": modes}))
    expected = with_multi_writer if multi else plain
    for call in ("NodeStageVolume", "NodePublishVolume"):
        assert node.last(call).volume_capability.access_mode.mode == expected
