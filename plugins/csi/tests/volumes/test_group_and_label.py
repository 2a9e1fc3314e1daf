"""fsGroup and SELinux: who applies what (CSI-FSG, CSI-SEL)."""

from __future__ import annotations

import json
import os

import pytest

from volumehost import DeviceMounterArgs, MounterArgs
from volumehost.errors import MountError, TransientOperationError, UncertainProgressError
from volumehost_csi.driver_objects import DriverTreatment

NAME = "fake.csi.example.com"
LABEL = "system_u:object_r:container_file_t:s0:c0,c1"
ONCE = ["ReadWriteOnce"]


@pytest.mark.parametrize(
    ("policy", "modes", "fs_type", "read_only", "applied"),
    [
        (None, ONCE, "ext4", False, True),
        ("", ONCE, "ext4", False, True),
        (None, ["ReadWriteOncePod"], "ext4", False, True),
        (None, ["ReadOnlyMany", "ReadWriteOnce"], "ext4", False, True),
        (None, ONCE, "", False, False),
        (None, ["ReadWriteMany", "ReadOnlyMany"], "ext4", False, False),
        (None, [], "ext4", False, False),
        (None, ONCE, "ext4", True, False),
        ("File", ["ReadWriteMany"], "", False, True),
        ("File", ["ReadWriteMany"], "", True, False),
        ("None", ONCE, "ext4", False, False),
    ],
)
def test_csi_fsg_02_to_06_edge_16(csi_driver, make_pv, policy, modes, fs_type, read_only, applied):
    treatment = DriverTreatment.of(csi_driver(fs_group_policy=policy))
    spec = make_pv(fs_type=fs_type, spec={"access_modes": modes})
    assert treatment.host_applies_group(spec, fs_type, read_only=read_only) is applied


@pytest.mark.parametrize(("fs_type", "applied"), [("ext4", True), ("", False)])
def test_csi_fsg_05_inline_volumes_need_a_filesystem_type_only(csi_driver, make_inline, fs_type, applied):
    treatment = DriverTreatment.of(csi_driver())
    assert treatment.host_applies_group(make_inline(), fs_type, read_only=False) is applied


@pytest.fixture
def publish(plugin, staged, make_pv, pod):
    """Mounts a volume; returns (mounter, groups that the host applied)."""

    def run(group=7, **source):
        applied = []
        mounter = plugin.new_mounter(staged(make_pv(**source)), pod)
        mounter.set_up(
            MounterArgs(
                fs_group=group,
                volume_ownership_applicator=lambda mounter, directory, args: applied.append((directory, args.fs_group)),
            )
        )
        return mounter, applied

    return run


@pytest.mark.root
def test_csi_fsg_08_the_host_applies_the_group_to_the_target(publish, csi_driver, node):
    csi_driver()
    mounter, applied = publish(fs_type="ext4")
    assert applied == [(mounter.get_path(), 7)]
    assert node.last("NodePublishVolume").volume_capability.mount.volume_mount_group == ""


@pytest.mark.root
def test_csi_fsg_08_without_an_applicator_the_tree_is_walked(plugin, staged, csi_driver, make_pv, pod):
    csi_driver(fs_group_policy="File")
    mounter = plugin.new_mounter(staged(make_pv()), pod)
    mounter.set_up(MounterArgs(fs_group=4321))
    assert os.stat(mounter.get_path()).st_gid == 4321


@pytest.mark.root
@pytest.mark.parametrize("policy", ["ReadWriteOnceWithFSType", "File", "None"])
@pytest.mark.parametrize("group", [0, 7])
def test_csi_fsg_01_edge_17_a_driver_that_can_gets_the_group_and_the_host_does_nothing(
    publish, plugin, csi_driver, node, make_pv, policy, group
):
    node.capabilities = ["STAGE_UNSTAGE_VOLUME", "VOLUME_MOUNT_GROUP"]
    csi_driver(fs_group_policy=policy)
    _, applied = publish(group, fs_type="ext4")
    assert applied == []
    assert node.last("NodePublishVolume").volume_capability.mount.volume_mount_group == str(group)
    mounter = plugin.new_device_mounter()
    spec = make_pv()
    mounter.mount_device(spec, "", mounter.get_device_mount_path(spec), DeviceMounterArgs(fs_group=group))
    assert node.last("NodeStageVolume").volume_capability.mount.volume_mount_group == str(group)


@pytest.mark.root
def test_csi_edge_17_no_group_is_no_group(publish, csi_driver, node):
    node.capabilities = ["STAGE_UNSTAGE_VOLUME", "VOLUME_MOUNT_GROUP"]
    csi_driver()
    _, applied = publish(None, fs_type="ext4")
    assert applied == []
    assert node.last("NodePublishVolume").volume_capability.mount.volume_mount_group == ""


@pytest.mark.root
def test_csi_fsg_10_a_change_of_the_group_is_counted_once_by_whoever_makes_it(
    publish, plugin, staged, csi_driver, make_pv, pod
):
    csi_driver()
    metrics = plugin._services.metrics
    labels = (f"kubernetes.io/csi:{NAME}", "volume_apply_access_control")
    _, applied = publish(fs_type="ext4")
    assert applied
    assert metrics.storage_operations.count(*labels, "success", "false") == 0, "the host has counted it"
    plugin.new_mounter(staged(make_pv(fs_type="ext4")), pod).set_up(MounterArgs(fs_group=7))
    assert metrics.volume_operations.count(*labels) == 1
    assert metrics.storage_operations.count(*labels, "success", "false") == 1


# --- SELinux --------------------------------------------------------------------------------------------------


class SELinuxHost:
    """Stands for a machine with SELinux, which hardly any test machine has."""

    def __init__(self, answer):
        self.answer = answer

    def get_selinux_support(self, path):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def record(path):
    with open(f"{os.path.dirname(path)}/vol_data.json") as file:
        return json.load(file)


@pytest.mark.root
def test_csi_sel_01_to_03_edge_14_the_label_comes_last_and_is_recorded(plugin, csi_driver, make_pv, pod, node):
    csi_driver(se_linux_mount=True)
    spec = make_pv(spec={"mount_options": ["noatime"]})
    device = plugin.new_device_mounter()
    path = device.get_device_mount_path(spec)
    device.mount_device(spec, "", path, DeviceMounterArgs(selinux_label=LABEL))
    mounter = plugin.new_mounter(spec, pod)
    mounter.set_up(MounterArgs(selinux_label=LABEL))
    for call in ("NodeStageVolume", "NodePublishVolume"):
        assert list(node.last(call).volume_capability.mount.mount_flags) == ["noatime", f'context="{LABEL}"']
    assert record(path)["seLinuxMountContext"] == record(mounter.get_path())["seLinuxMountContext"] == LABEL
    assert not mounter.get_attributes().selinux_relabel
    found = plugin.construct_volume_spec("pv-1", mounter.get_path())
    assert found.selinux_mount_context == LABEL  # CSI-SEL-07


@pytest.mark.root
@pytest.mark.parametrize(("supported", "label"), [(True, ""), (False, LABEL), (None, LABEL)])
def test_csi_edge_14_no_option_without_support_and_label(plugin, staged, csi_driver, pod, node, supported, label):
    csi_driver(se_linux_mount=supported)
    mounter = plugin.new_mounter(staged(), pod)
    mounter.set_up(MounterArgs(selinux_label=label))
    assert list(node.last("NodePublishVolume").volume_capability.mount.mount_flags) == []
    assert "seLinuxMountContext" not in record(mounter.get_path())


@pytest.mark.root
@pytest.mark.parametrize("answer", [True, False])
def test_csi_sel_06_mnt_22_the_runtime_relabels_where_the_mount_carries_labels(plugin, staged, csi_driver, pod, answer):
    csi_driver()
    plugin._services._host_util = SELinuxHost(answer)
    mounter = plugin.new_mounter(staged(), pod)
    mounter.set_up(MounterArgs())
    attributes = mounter.get_attributes()
    assert (attributes.selinux_relabel, attributes.managed, attributes.read_only) == (answer, True, False)


@pytest.mark.root
def test_csi_err_15_what_cannot_be_found_out_after_the_publish_is_uncertain(plugin, staged, csi_driver, pod):
    csi_driver()
    plugin._services._host_util = SELinuxHost(MountError("no table"))
    with pytest.raises(UncertainProgressError, match="no table"):
        plugin.new_mounter(staged(), pod).set_up(MounterArgs())


@pytest.mark.root
def test_a_label_that_would_end_its_quotes_is_refused(plugin, staged, csi_driver, pod, node):
    csi_driver(se_linux_mount=True)
    mounter = plugin.new_mounter(staged(), pod)
    with pytest.raises(Exception, match="holds a quote"):
        mounter.set_up(MounterArgs(selinux_label='a",rw,context="b'))
    assert "NodePublishVolume" not in node.names()


# --- lifecycle modes ------------------------------------------------------------------------------------------


@pytest.mark.root
@pytest.mark.parametrize(
    ("modes", "inline", "allowed"),
    [
        (None, False, True),
        (None, True, False),
        (["Persistent"], False, True),
        (["Persistent"], True, False),
        (["Ephemeral"], False, False),
        (["Ephemeral"], True, True),
        (["Ephemeral", "Persistent"], True, True),
    ],
)
def test_csi_mnt_02_edge_08_lifecycle_modes(
    plugin, csi_driver, make_pv, make_inline, pod, node, api, modes, inline, allowed
):
    node.capabilities = []
    if modes is not None:
        csi_driver(volume_lifecycle_modes=modes)
    mounter = plugin.new_mounter(make_inline() if inline else make_pv(), pod)
    if modes is None and not inline:
        # No CSIDriver object means that it must be attached, which it is not (CSI-DRV-01).
        with pytest.raises(TransientOperationError, match="VolumeAttachment"):
            mounter.set_up(MounterArgs())
    elif allowed:
        mounter.set_up(MounterArgs())
    else:
        with pytest.raises(TransientOperationError, match="volumeLifecycleModes"):
            mounter.set_up(MounterArgs())
        assert not os.path.exists(os.path.dirname(mounter.get_path()))
