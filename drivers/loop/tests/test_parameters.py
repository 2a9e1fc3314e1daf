"""What people write in classes, pods and claims is read strictly."""

from __future__ import annotations

import pytest

from volumehost_csi_kit import csi
from volumehost_loop_driver.errors import InvalidArgumentError
from volumehost_loop_driver.parameters import (
    ACCESS_MODES,
    InlineVolume,
    read_capability,
    read_fs_type,
    read_inline,
    read_provisioning,
    read_settings,
    refuse_parameters,
)
from volumehost_loop_driver.records import Capability, Settings
from volumehost_loop_driver.topology import TOPOLOGY_KEY, accepts, reaches, segment, topology
from volumehost_loop_driver.volumes import ANY_FILESYSTEM

OURS = {"csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pv/name": "pv"}


def test_provisioning() -> None:
    assert read_provisioning({}) is False
    assert read_provisioning({"provisioning": "thin", **OURS}) is False
    assert read_provisioning({"provisioning": "thick"}) is True


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"provisioning": "fat"}, "thin, thick"),
        ({"provisoning": "thick"}, "did you mean provisioning"),
        ({"pool": "a"}, "there are provisioning"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(parameters, told) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        read_provisioning(parameters)


def test_snapshot_classes_have_no_parameters() -> None:
    refuse_parameters(OURS)
    with pytest.raises(InvalidArgumentError, match="there are none"):
        refuse_parameters({"a": "b"})


def test_mutable_parameters_change_what_they_name() -> None:
    before = Settings(read_ahead_kib=64, direct_io=True)
    assert read_settings({}, before) == before
    assert read_settings({"readAheadKiB": "0"}, before) == Settings(read_ahead_kib=0, direct_io=True)
    assert read_settings({"directIO": "false"}, before) == Settings(read_ahead_kib=64)


@pytest.mark.parametrize(
    "parameters",
    [
        {"readAheadKiB": "-1"},
        {"readAheadKiB": "1e3"},
        {"readAheadKiB": "٣"},
        {"readAheadKiB": ""},
        {"readAheadKiB": "99999999999"},
        {"directIO": "yes"},
        {"readBytesPerSecond": "1"},
    ],
)
def test_mutable_parameters_that_cannot_be(parameters) -> None:
    with pytest.raises(InvalidArgumentError, match="mutable_parameters"):
        read_settings(parameters, Settings())


def test_inline_attributes() -> None:
    context = {"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "p"}
    assert read_inline(context, "") == InlineVolume(0, "")
    assert read_inline({**context, "size": "1.5Gi", "fsType": "xfs"}, "ext4") == InlineVolume(3 << 29, "xfs")
    assert read_inline(context, "xfs") == InlineVolume(0, "xfs")


@pytest.mark.parametrize(
    "attributes", [{"size": "0"}, {"size": "-1Gi"}, {"size": "big"}, {"fsType": "btrfs"}, {"sise": "1Gi"}]
)
def test_inline_attributes_that_cannot_be(attributes) -> None:
    with pytest.raises(InvalidArgumentError):
        read_inline(attributes, "")


def test_access_modes_wire07(client) -> None:
    modes = csi.VolumeCapability.AccessMode.Mode.keys()
    for mode in modes:
        capability = client.capability(mode=mode)
        if mode in ACCESS_MODES:
            assert read_capability(capability).mode == mode
        else:
            with pytest.raises(InvalidArgumentError, match="one machine"):
                read_capability(capability)


def test_capabilities(client) -> None:
    assert read_capability(client.capability(block=True, mode="SINGLE_NODE_WRITER")) == Capability(
        block=True, mode="SINGLE_NODE_WRITER"
    )
    read = read_capability(client.capability(fs_type="xfs", group="2000", flags=("noatime",)))
    assert (read.fs_type, read.mount_group, read.mount_flags) == ("xfs", 2000, ("noatime",))


@pytest.mark.parametrize(
    "fields",
    [
        {"fs_type": "ntfs"},
        {"group": "wheel"},
        {"group": "-1"},
        {"group": "4294967295"},
        {"flags": ("bind",)},
        {"flags": ("noatime,rbind",)},
        {"flags": ("loop=/dev/loop0",)},
    ],
)
def test_capabilities_that_cannot_be(client, fields) -> None:
    with pytest.raises(InvalidArgumentError):
        read_capability(client.capability(**fields))


def test_the_filesystem_of_several_capabilities() -> None:
    def mount(fs_type: str) -> Capability:
        return Capability(block=False, mode="SINGLE_NODE_WRITER", fs_type=fs_type)

    block = Capability(block=True, mode="SINGLE_NODE_WRITER")
    assert read_fs_type([]) == ""
    assert read_fs_type([block]) == ""
    assert read_fs_type([mount("")]) == ANY_FILESYSTEM
    assert read_fs_type([block, mount("xfs"), mount("")]) == "xfs"
    with pytest.raises(InvalidArgumentError, match="one filesystem"):
        read_fs_type([mount("xfs"), mount("ext4")])


def test_topology_wire12() -> None:
    assert segment("node-1.example.com") == "node-1.example.com"
    for odd in ("a" * 64, "under score", "-x", "ü"):
        assert len(segment(odd)) <= 63
        assert segment(odd) != segment(odd + "2")
    here, there = topology("here"), topology("there")
    assert dict(here.segments) == {TOPOLOGY_KEY: "here"}
    assert reaches("here", here)
    assert reaches("here", csi.Topology())
    assert not reaches("here", there)
    assert not reaches("here", csi.Topology(segments={**here.segments, "zone": "z"}))
    assert accepts("here", csi.TopologyRequirement(preferred=[there]))
    assert accepts("here", csi.TopologyRequirement(requisite=[there, here]))
    assert not accepts("here", csi.TopologyRequirement(requisite=[there]))
