"""The driver as a process on its socket: what each call answers, with which code."""

from __future__ import annotations

import os
import stat
from importlib.metadata import entry_points

import pytest

from volumehost.api.manifests import load_manifests
from volumehost.mount.mounter import LinuxMounter
from volumehost_csi_kit import csi
from volumehost_loop_driver import main as main_module
from volumehost_loop_driver.driver import DRIVER_NAME

pytestmark = pytest.mark.root
MiB = 1 << 20
RPC = csi.ControllerServiceCapability.RPC.Type


@pytest.fixture
def process(start):
    return start()


def names(reply) -> set[str]:
    kind = type(reply.capabilities[0].rpc)
    return {kind.Type.Name(item.rpc.type) for item in reply.capabilities}


def test_who_it_is_and_what_it_can_do_wire04_wire05_wire06(process, client) -> None:
    info = client.call("GetPluginInfo")
    assert (info.name, bool(info.vendor_version)) == (DRIVER_NAME, True)
    assert client.call("Probe").ready.value
    services = {
        csi.PluginCapability.Service.Type.Name(item.service.type)
        for item in client.call("GetPluginCapabilities").capabilities
        if item.HasField("service")
    }
    assert services == {"CONTROLLER_SERVICE", "VOLUME_ACCESSIBILITY_CONSTRAINTS", "GROUP_CONTROLLER_SERVICE"}
    assert names(client.call("ControllerGetCapabilities")) == set(RPC.keys()) - {"UNKNOWN"}
    assert names(client.call("NodeGetCapabilities")) == {
        "STAGE_UNSTAGE_VOLUME",
        "GET_VOLUME_STATS",
        "EXPAND_VOLUME",
        "VOLUME_CONDITION",
        "SINGLE_NODE_MULTI_WRITER",
        "VOLUME_MOUNT_GROUP",
    }
    node = client.call("NodeGetInfo")
    assert node.node_id == "node-1"
    assert dict(node.accessible_topology.segments) == {"topology.loop.csi.volumehost/node": "node-1"}


def test_a_life_of_a_volume(process, client, place) -> None:
    capability = client.capability()
    volume = client.create("claim", 32 * MiB)
    assert volume.capacity_bytes == 32 * MiB
    assert [dict(item.segments) for item in volume.accessible_topology] == [
        {"topology.loop.csi.volumehost/node": "node-1"}
    ]
    id = volume.volume_id
    publish = client.call("ControllerPublishVolume", volume_id=id, node_id="node-1", volume_capability=capability)
    stage, target = os.path.join(place, "stage"), os.path.join(place, "target")
    os.mkdir(stage)
    at_stage = {"volume_id": id, "staging_target_path": stage + "/"}
    client.call("NodeStageVolume", volume_capability=capability, publish_context=publish.publish_context, **at_stage)
    client.call("NodePublishVolume", target_path=target, volume_capability=capability, **at_stage)
    with open(os.path.join(target, "file"), "wb") as file:
        file.write(bytes(MiB))
    stats = client.call("NodeGetVolumeStats", volume_id=id, volume_path=target)
    units = {csi.VolumeUsage.Unit.Name(item.unit): item for item in stats.usage}
    assert units["BYTES"].used >= MiB
    assert units["INODES"].total > units["INODES"].used > 0
    assert not stats.volume_condition.abnormal

    listed = client.call("ListVolumes").entries[0]
    assert (listed.volume.volume_id, list(listed.status.published_node_ids)) == (id, ["node-1"])
    assert not listed.status.volume_condition.abnormal
    assert client.call("ControllerGetVolume", volume_id=id).status == csi.ControllerGetVolumeResponse.VolumeStatus(
        published_node_ids=["node-1"], volume_condition=listed.status.volume_condition
    )
    size = csi.CapacityRange(required_bytes=48 * MiB)
    expanded = client.call("ControllerExpandVolume", volume_id=id, capacity_range=size, volume_capability=capability)
    assert (expanded.capacity_bytes, expanded.node_expansion_required) == (48 * MiB, True)

    snapshot = client.call("CreateSnapshot", source_volume_id=id, name="snap").snapshot
    assert snapshot.ready_to_use
    assert snapshot.size_bytes == 48 * MiB
    assert abs(snapshot.creation_time.seconds - os.stat(target).st_mtime) < 3600

    client.call("NodeUnpublishVolume", volume_id=id, target_path=target)
    assert not os.path.exists(target)
    client.call("NodeUnstageVolume", **at_stage)
    code, _ = client.fails("DeleteVolume", volume_id=id)
    assert code == "FAILED_PRECONDITION"
    client.call("ControllerUnpublishVolume", volume_id=id, node_id="node-1")
    client.call("DeleteVolume", volume_id=id)
    source = csi.VolumeContentSource(snapshot=csi.VolumeContentSource.SnapshotSource(snapshot_id=snapshot.snapshot_id))
    restored = client.create("restored", 48 * MiB, volume_content_source=source)
    assert restored.content_source == source
    client.call("DeleteVolume", volume_id=restored.volume_id)
    client.call("DeleteSnapshot", snapshot_id=snapshot.snapshot_id)


def test_a_raw_volume_needs_no_growth_on_the_node(process, client, place) -> None:
    block = client.capability(block=True)
    id = client.create("disk", 8 * MiB, volume_capabilities=[block]).volume_id
    stage, target = os.path.join(place, "stage"), os.path.join(place, "disk")
    client.call("NodeStageVolume", volume_id=id, staging_target_path=stage, volume_capability=block)
    client.call(
        "NodePublishVolume", volume_id=id, staging_target_path=stage, target_path=target, volume_capability=block
    )
    size = csi.CapacityRange(required_bytes=12 * MiB)
    assert not client.call("ControllerExpandVolume", volume_id=id, capacity_range=size).node_expansion_required
    assert stat.S_ISBLK(os.stat(target).st_mode)
    with open(target, "rb") as file:
        assert file.seek(0, os.SEEK_END) == 12 * MiB
    client.call("NodeUnpublishVolume", volume_id=id, target_path=target)
    client.call("NodeUnstageVolume", volume_id=id, staging_target_path=stage)
    client.call("DeleteVolume", volume_id=id)


def test_published_read_only_by_the_controller_means_read_only(process, client, place) -> None:
    capability, stage = client.capability(), os.path.join(place, "stage")
    id = client.create("claim").volume_id
    node = {"volume_id": id, "staging_target_path": stage}
    for read_only in (False, True):
        context = client.call(
            "ControllerPublishVolume",
            volume_id=id,
            node_id="node-1",
            volume_capability=capability,
            readonly=read_only,
        ).publish_context
        client.call("NodeStageVolume", volume_capability=capability, publish_context=context, **node)
        assert bool(os.statvfs(stage).f_flag & os.ST_RDONLY) is read_only
        client.call("NodeUnstageVolume", **node)
        client.call("ControllerUnpublishVolume", volume_id=id, node_id="node-1")
    client.call("DeleteVolume", volume_id=id)


def test_an_inline_volume_eph05(process, client, place) -> None:
    target = os.path.join(place, "target")
    context = {"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "p", "size": "8Mi"}
    fields = {
        "volume_id": "csi-" + "0" * 64,
        "target_path": target,
        "volume_capability": client.capability(mode="SINGLE_NODE_WRITER"),
    }
    client.call("NodePublishVolume", volume_context=context, **fields)
    assert os.path.ismount(target)
    assert not client.call("ListVolumes").entries, "it belongs to its pod"
    client.call("NodeUnpublishVolume", volume_id=fields["volume_id"], target_path=target)
    code, message = client.fails("NodePublishVolume", volume_context={**context, "size": "big"}, **fields)
    assert (code, "size" in message) == ("INVALID_ARGUMENT", True)


def test_groups(process, client) -> None:
    ids = [client.create(name, MiB).volume_id for name in ("a", "b")]
    group = client.call("CreateVolumeGroupSnapshot", name="g", source_volume_ids=ids).group_snapshot
    snapshots = [item.snapshot_id for item in group.snapshots]
    assert group.ready_to_use
    assert {item.group_snapshot_id for item in group.snapshots} == {group.group_snapshot_id}
    fields = {"group_snapshot_id": group.group_snapshot_id}
    assert client.call("GetVolumeGroupSnapshot", snapshot_ids=snapshots, **fields).group_snapshot == group
    assert client.fails("GetVolumeGroupSnapshot", snapshot_ids=snapshots[:1], **fields)[0] == "INVALID_ARGUMENT"
    assert client.fails("DeleteVolumeGroupSnapshot", snapshot_ids=["snap-x"], **fields)[0] == "INVALID_ARGUMENT"
    assert client.fails("DeleteSnapshot", snapshot_id=snapshots[0])[0] == "INVALID_ARGUMENT"
    client.call("DeleteVolumeGroupSnapshot", snapshot_ids=snapshots, **fields)
    assert client.fails("GetVolumeGroupSnapshot", snapshot_ids=snapshots, **fields)[0] == "NOT_FOUND"
    assert not client.call("ListSnapshots").entries


def test_codes_of_the_controller_wire19(process, client) -> None:
    capability = client.capability()
    client.create("claim")
    one = {"name": "claim", "volume_capabilities": [capability]}
    size = csi.CapacityRange
    for expected, method, fields in [
        ("ALREADY_EXISTS", "CreateVolume", {**one, "capacity_range": size(required_bytes=32 * MiB)}),
        ("OUT_OF_RANGE", "CreateVolume", {**one, "name": "x", "capacity_range": size(limit_bytes=1)}),
        ("RESOURCE_EXHAUSTED", "CreateVolume", {**one, "name": "x", "capacity_range": size(required_bytes=1 << 60)}),
        ("INVALID_ARGUMENT", "CreateVolume", {**one, "name": "x", "parameters": {"pool": "a"}}),
        ("INVALID_ARGUMENT", "CreateVolume", {**one, "name": "x", "mutable_parameters": {"iops": "1"}}),
        ("INVALID_ARGUMENT", "CreateVolume", {"name": "x"}),
        (
            "INVALID_ARGUMENT",
            "CreateVolume",
            {"name": "x", "volume_capabilities": [client.capability(mode="MULTI_NODE_MULTI_WRITER")]},
        ),
        (
            "RESOURCE_EXHAUSTED",
            "CreateVolume",
            {
                **one,
                "name": "x",
                "accessibility_requirements": csi.TopologyRequirement(
                    requisite=[csi.Topology(segments={"topology.loop.csi.volumehost/node": "elsewhere"})]
                ),
            },
        ),
        ("INVALID_ARGUMENT", "DeleteVolume", {}),
        ("NOT_FOUND", "ControllerGetVolume", {"volume_id": "none"}),
        ("NOT_FOUND", "GetSnapshot", {"snapshot_id": "none"}),
        ("NOT_FOUND", "CreateSnapshot", {"source_volume_id": "none", "name": "s"}),
        (
            "NOT_FOUND",
            "ControllerPublishVolume",
            {"volume_id": "none", "node_id": "node-1", "volume_capability": capability},
        ),
        (
            "NOT_FOUND",
            "ValidateVolumeCapabilities",
            {"volume_id": "none", "volume_capabilities": [capability]},
        ),
        ("NOT_FOUND", "ControllerModifyVolume", {"volume_id": "none", "mutable_parameters": {"directIO": "true"}}),
        ("ABORTED", "ListVolumes", {"starting_token": "17"}),
        ("ABORTED", "ListSnapshots", {"starting_token": "17"}),
        ("INVALID_ARGUMENT", "ListVolumes", {"max_entries": -1}),
    ]:
        code, message = client.fails(method, **fields)
        assert code == expected, (method, fields, message)


def test_codes_of_the_node_wire19(process, client, place) -> None:
    capability = client.capability()
    id = client.create("claim").volume_id
    stage, target = os.path.join(place, "stage"), os.path.join(place, "target")
    at_stage = {"staging_target_path": stage, "volume_capability": capability}
    for expected, method, fields in [
        ("NOT_FOUND", "NodeStageVolume", {"volume_id": "../x", **at_stage}),
        ("NOT_FOUND", "NodePublishVolume", {"volume_id": "x", "target_path": target, **at_stage}),
        ("FAILED_PRECONDITION", "NodePublishVolume", {"volume_id": id, "target_path": target, **at_stage}),
        (
            "FAILED_PRECONDITION",
            "NodePublishVolume",
            {"volume_id": id, "target_path": target, "volume_capability": capability},
        ),
        ("NOT_FOUND", "NodeGetVolumeStats", {"volume_id": id, "volume_path": target}),
        ("NOT_FOUND", "NodeGetVolumeStats", {"volume_id": "x", "volume_path": target}),
        ("NOT_FOUND", "NodeExpandVolume", {"volume_id": "x", "volume_path": target}),
        ("FAILED_PRECONDITION", "NodeExpandVolume", {"volume_id": id, "volume_path": target}),
        ("INVALID_ARGUMENT", "NodeStageVolume", {"volume_id": "v" * 4096, **at_stage}),
        (
            "INVALID_ARGUMENT",
            "NodeStageVolume",
            {"volume_id": id, "staging_target_path": stage, "volume_capability": client.capability(fs_type="ntfs")},
        ),
        ("INVALID_ARGUMENT", "NodeUnpublishVolume", {"volume_id": id, "target_path": f"{place}/../x"}),
    ]:
        code, message = client.fails(method, **fields)
        assert code == expected, (method, fields, message)
    client.call("DeleteVolume", volume_id=id)


def test_validating(process, client) -> None:
    id = client.create("claim").volume_id
    good = client.call(
        "ValidateVolumeCapabilities",
        volume_id=id,
        volume_capabilities=[client.capability(), client.capability(block=True)],
        parameters={"provisioning": "thin"},
    )
    assert len(good.confirmed.volume_capabilities) == 2
    assert good.confirmed.parameters == {"provisioning": "thin"}
    for fields in (
        {"volume_capabilities": [client.capability(mode="MULTI_NODE_MULTI_WRITER")]},
        {"volume_capabilities": [client.capability(fs_type="xfs")]},
        {"volume_capabilities": [client.capability()], "parameters": {"provisioning": "thick"}},
        {"volume_capabilities": [client.capability()], "parameters": {"pool": "a"}},
    ):
        bad = client.call("ValidateVolumeCapabilities", volume_id=id, **fields)
        assert not bad.HasField("confirmed")
        assert bad.message


def test_capacity(start, client) -> None:
    start("--capacity", "1Gi")
    client.create("claim", 64 * MiB)
    answer = client.call("GetCapacity", volume_capabilities=[client.capability(fs_type="xfs")])
    assert answer.available_capacity == (1 << 30) - 64 * MiB
    assert answer.minimum_volume_size.value == 300 * MiB
    elsewhere = csi.Topology(segments={"topology.loop.csi.volumehost/node": "elsewhere"})
    assert client.call("GetCapacity", accessible_topology=elsewhere).available_capacity == 0
    many = [client.capability(mode="MULTI_NODE_MULTI_WRITER")]
    assert client.call("GetCapacity", volume_capabilities=many).available_capacity == 0


def test_pages_and_filters(process, client) -> None:
    ids = {client.create(f"v{number}", MiB).volume_id for number in range(5)}
    first = client.call("ListVolumes", max_entries=3)
    rest = client.call("ListVolumes", max_entries=3, starting_token=first.next_token)
    assert {entry.volume.volume_id for entry in [*first.entries, *rest.entries]} == ids
    assert (len(first.entries), rest.next_token) == (3, "")
    one, other = sorted(ids)[:2]
    taken = [
        client.call("CreateSnapshot", source_volume_id=id, name=name).snapshot.snapshot_id
        for id, name in ((one, "a"), (one, "b"), (other, "c"))
    ]

    def listed(**fields: object) -> set[str]:
        return {entry.snapshot.snapshot_id for entry in client.call("ListSnapshots", **fields).entries}

    assert listed() == set(taken)
    assert listed(source_volume_id=one) == set(taken[:2])
    assert listed(snapshot_id=taken[2]) == {taken[2]}
    assert listed(snapshot_id=taken[2], source_volume_id=one) == set()
    assert listed(snapshot_id="none") == set()
    assert len(listed(max_entries=2)) == 2
    assert client.call("GetSnapshot", snapshot_id=taken[0]).snapshot.source_volume_id == one


def test_the_condition_of_a_lost_image_is_listed(process, client, place) -> None:
    id = client.create("claim").volume_id
    os.unlink(os.path.join(place, "data/volumes", f"{id.removeprefix('vol-')}.img"))
    condition = client.call("ListVolumes").entries[0].status.volume_condition
    assert condition.abnormal
    assert "is missing" in condition.message


def test_modify_vac(process, client) -> None:
    id = client.create("claim", mutable_parameters={"readAheadKiB": "64"}).volume_id
    client.call("ControllerModifyVolume", volume_id=id, mutable_parameters={"directIO": "true"})
    code, message = client.fails("ControllerModifyVolume", volume_id=id, mutable_parameters={"directIo": "true"})
    assert (code, "directIO" in message) == ("INVALID_ARGUMENT", True)


def test_secrets_are_in_no_log_br74(process, client) -> None:
    client.create("claim", secrets={"token": "hunter2-hunter2"})
    client.fails("CreateVolume", name="claim", secrets={"token": "hunter2-hunter2"})
    assert "CreateVolume" in process.text()
    assert "hunter2" not in process.text()


def test_mounts_outlive_the_process_and_the_next_one_goes_on(start, client, place) -> None:
    first = start()
    capability, stage, target = client.capability(), os.path.join(place, "stage"), os.path.join(place, "target")
    id = client.create("claim").volume_id
    at_stage = {"volume_id": id, "staging_target_path": stage, "volume_capability": capability}
    client.call("NodeStageVolume", **at_stage)
    client.call("NodePublishVolume", target_path=target, **at_stage)
    with open(f"{target}/file", "wb") as file:
        assert first.stop() == 0
        file.write(b"while no driver runs")
    assert not os.path.exists(first.socket)
    start()
    client.reconnect()
    client.call("NodeStageVolume", **at_stage)
    client.call("NodePublishVolume", target_path=target, **at_stage)
    assert sum(mount.path == target for mount in LinuxMounter().list_mounts()) == 1
    client.call("NodeUnpublishVolume", volume_id=id, target_path=target)
    client.call("NodeUnstageVolume", volume_id=id, staging_target_path=stage)
    client.call("DeleteVolume", volume_id=id)


# --- starting -------------------------------------------------------------------------------------------------


def test_the_entry_point_and_the_manifest_beside_it() -> None:
    (point,) = [item for item in entry_points(group="volumehost.csi_drivers") if item.name == DRIVER_NAME]
    assert point.load() is main_module.main
    path = os.path.join(os.path.dirname(main_module.__file__), "csi-driver.json")
    objects = {manifest.obj.kind: manifest.document for manifest in load_manifests([path])}
    assert objects["CSIDriver"]["metadata"]["name"] == DRIVER_NAME
    assert objects["CSIDriver"]["spec"]["podInfoOnMount"] is True
    assert set(objects["CSIDriver"]["spec"]["volumeLifecycleModes"]) == {"Persistent", "Ephemeral"}
    assert objects["StorageClass"]["provisioner"] == DRIVER_NAME
    assert objects["StorageClass"]["allowVolumeExpansion"] is True
    assert objects["VolumeSnapshotClass"]["driver"] == DRIVER_NAME


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--data-dir", "/proc/nowhere"], "cannot start"),
        (["--capacity", "lots"], "not a quantity"),
        (["--capacity", "0"], "not more than 0"),
        (["--endpoint", "tcp://127.0.0.1:1"], "unix sockets only"),
    ],
)
def test_what_cannot_work_is_told_at_once(start, arguments, told) -> None:
    process = start(*arguments)
    assert process.process.wait(30) == 2
    assert told in process.text()
    assert "Traceback" not in process.text()


def test_a_machine_without_loop_devices_is_told_what_to_do(tmp_path) -> None:
    with pytest.raises(Exception, match="modprobe loop"):
        main_module.check_machine(str(tmp_path / "loop-control"))
    main_module.check_machine()
