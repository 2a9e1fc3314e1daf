"""The fake controller behaves as the specification has it (CSI-WIRE-13, CSI-WIRE-19)."""

from __future__ import annotations

import pytest

from volumehost_csi_kit import csi
from volumehost_csi_kit.fake import CONTROLLER_CAPABILITIES, FakeDriver

T = {"timeout": 30}


@pytest.fixture
def create(rpc, capability):
    """Create a volume, and give it back."""

    def create(name="n", **fields):
        return rpc.controller.CreateVolume(creation(capability, name, **fields), **T).volume

    return create


def creation(capability, name="n", *, low=0, high=0, **fields):
    if low or high:
        fields["capacity_range"] = csi.CapacityRange(required_bytes=low, limit_bytes=high)
    return csi.CreateVolumeRequest(name=name, volume_capabilities=[capability()], **fields)


def from_snapshot(snapshot_id):
    return csi.VolumeContentSource(snapshot=csi.VolumeContentSource.SnapshotSource(snapshot_id=snapshot_id))


def from_volume(volume_id):
    return csi.VolumeContentSource(volume=csi.VolumeContentSource.VolumeSource(volume_id=volume_id))


def test_every_capability_of_the_protocol_is_there(rpc):
    reply = rpc.controller.ControllerGetCapabilities(csi.ControllerGetCapabilitiesRequest(), **T)
    names = csi.ControllerServiceCapability.RPC.Type
    assert {names.Name(each.rpc.type) for each in reply.capabilities} == set(names.keys()) - {"UNKNOWN"}
    assert set(CONTROLLER_CAPABILITIES) == set(names.keys()) - {"UNKNOWN"}


def test_a_volume_is_made_once(create, rpc, capability, failure):
    made = create(low=10)
    assert made.capacity_bytes == 10
    assert create(low=10) == made
    assert create(high=20) == made
    for fields in ({"low": 11}, {"high": 9}, {"volume_content_source": from_volume(made.volume_id)}):
        assert failure(rpc.controller.CreateVolume, creation(capability, **fields))[0] == "ALREADY_EXISTS"
    assert create("other").volume_id != made.volume_id


def test_deleting_twice_and_what_never_was(create, rpc):
    request = csi.DeleteVolumeRequest(volume_id=create().volume_id)
    for _ in range(2):
        rpc.controller.DeleteVolume(request, **T)
    assert not rpc.controller.ListVolumes(csi.ListVolumesRequest(), **T).entries


def test_there_is_only_so_much(fake, create, rpc, capability, failure):
    fake.configure(capacity_bytes=100)
    create(low=60)
    assert rpc.controller.GetCapacity(csi.GetCapacityRequest(), **T).available_capacity == 40
    assert failure(rpc.controller.CreateVolume, creation(capability, "o", low=41))[0] == "RESOURCE_EXHAUSTED"
    create("o", low=40)


def test_snapshots_and_what_is_made_of_them(create, rpc, capability, failure):
    volume = create(low=10)
    request = csi.CreateSnapshotRequest(name="s", source_volume_id=volume.volume_id)
    snapshot = rpc.controller.CreateSnapshot(request, **T).snapshot
    assert snapshot.ready_to_use
    assert snapshot.size_bytes == 10
    assert rpc.controller.CreateSnapshot(request, **T).snapshot == snapshot
    other = csi.CreateSnapshotRequest(name="s", source_volume_id=create("other").volume_id)
    assert failure(rpc.controller.CreateSnapshot, other)[0] == "ALREADY_EXISTS"
    for name, source in (("r", from_snapshot(snapshot.snapshot_id)), ("c", from_volume(volume.volume_id))):
        made = create(name, low=12, volume_content_source=source)
        assert made.content_source == source
        assert made.capacity_bytes == 12
        small = creation(capability, f"{name}-small", low=1, volume_content_source=source)
        assert failure(rpc.controller.CreateVolume, small)[0] == "OUT_OF_RANGE"
        missing = from_snapshot("no") if name == "r" else from_volume("no")
        request = creation(capability, f"{name}-missing", volume_content_source=missing)
        assert failure(rpc.controller.CreateVolume, request)[0] == "NOT_FOUND"
    get = csi.GetSnapshotRequest(snapshot_id=snapshot.snapshot_id)
    assert rpc.controller.GetSnapshot(get, **T).snapshot == snapshot
    rpc.controller.DeleteSnapshot(csi.DeleteSnapshotRequest(snapshot_id=snapshot.snapshot_id), **T)
    assert failure(rpc.controller.GetSnapshot, get)[0] == "NOT_FOUND"


def publication(capability, volume_id, *, mode="SINGLE_NODE_WRITER", node="fake-node", readonly=False):
    return csi.ControllerPublishVolumeRequest(
        volume_id=volume_id, node_id=node, volume_capability=capability(mode), readonly=readonly
    )


def test_publishing_to_the_node(fake, create, rpc, capability, failure):
    volume = create().volume_id
    publish, unpublish = rpc.controller.ControllerPublishVolume, rpc.controller.ControllerUnpublishVolume
    first = publish(publication(capability, volume), **T)
    assert publish(publication(capability, volume), **T) == first
    assert first.publish_context
    assert failure(publish, publication(capability, volume, readonly=True))[0] == "ALREADY_EXISTS"
    assert failure(publish, publication(capability, "no"))[0] == "NOT_FOUND"
    assert failure(publish, publication(capability, volume, node="elsewhere"))[0] == "NOT_FOUND"
    assert failure(rpc.controller.DeleteVolume, csi.DeleteVolumeRequest(volume_id=volume))[0] == "FAILED_PRECONDITION"
    entry = rpc.controller.ListVolumes(csi.ListVolumesRequest(), **T).entries[0]
    assert list(entry.status.published_node_ids) == ["fake-node"]
    for node in ("fake-node", "", "elsewhere"):
        unpublish(csi.ControllerUnpublishVolumeRequest(volume_id=volume, node_id=node), **T)
    unpublish(csi.ControllerUnpublishVolumeRequest(volume_id="no"), **T)
    rpc.controller.DeleteVolume(csi.DeleteVolumeRequest(volume_id=volume), **T)


@pytest.mark.parametrize(
    ("mode", "code"), [("SINGLE_NODE_WRITER", "FAILED_PRECONDITION"), ("MULTI_NODE_MULTI_WRITER", "")]
)
def test_on_two_nodes(fake, create, rpc, capability, failure, mode, code):
    volume = create().volume_id
    rpc.controller.ControllerPublishVolume(publication(capability, volume, mode=mode), **T)
    fake.configure(node_id="second")
    second = publication(capability, volume, mode=mode, node="second")
    if code:
        assert failure(rpc.controller.ControllerPublishVolume, second)[0] == code
    else:
        rpc.controller.ControllerPublishVolume(second, **T)


def test_a_node_takes_only_so_many(fake, create, rpc, capability, failure):
    fake.configure(max_volumes=1)
    assert rpc.node.NodeGetInfo(csi.NodeGetInfoRequest(), **T).max_volumes_per_node == 1
    one, two = create("one").volume_id, create("two").volume_id
    for _ in range(2):
        rpc.controller.ControllerPublishVolume(publication(capability, one), **T)
    request = publication(capability, two)
    assert failure(rpc.controller.ControllerPublishVolume, request)[0] == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize("node", [True, False])
def test_expanding(fake, create, rpc, failure, node):
    fake.configure(node_expansion=node, capacity_bytes=100)
    volume = create(low=10).volume_id

    def request(low, high=0):
        capacity = csi.CapacityRange(required_bytes=low, limit_bytes=high)
        return csi.ControllerExpandVolumeRequest(volume_id=volume, capacity_range=capacity)

    for low, expected in ((20, 20), (20, 20), (15, 20)):
        reply = rpc.controller.ControllerExpandVolume(request(low), **T)
        assert (reply.capacity_bytes, reply.node_expansion_required) == (expected, node)
    for low, high in ((101, 0), (0, 19)):
        assert failure(rpc.controller.ControllerExpandVolume, request(low, high))[0] == "OUT_OF_RANGE"


def test_pages(create, rpc, failure):
    made = {create(f"n{number}").volume_id for number in range(5)}
    found, token = [], ""
    while True:
        page = rpc.controller.ListVolumes(csi.ListVolumesRequest(max_entries=2, starting_token=token), **T)
        assert len(page.entries) <= 2
        found += [entry.volume.volume_id for entry in page.entries]
        token = page.next_token
        if not token:
            break
    assert sorted(found) == sorted(made)
    for wrong in ("6", "x", "-1"):
        request = csi.ListVolumesRequest(starting_token=wrong)
        assert failure(rpc.controller.ListVolumes, request)[0] == "ABORTED"


def test_listing_snapshots_of_one_volume(create, rpc):
    for volume in ("a", "b"):
        for number in range(2):
            source = create(volume).volume_id
            request = csi.CreateSnapshotRequest(name=f"{volume}{number}", source_volume_id=source)
            rpc.controller.CreateSnapshot(request, **T)
    source = create("a").volume_id
    entries = rpc.controller.ListSnapshots(csi.ListSnapshotsRequest(source_volume_id=source), **T).entries
    assert {entry.snapshot.source_volume_id for entry in entries} == {source}
    assert len(entries) == 2
    one = csi.ListSnapshotsRequest(snapshot_id=entries[0].snapshot.snapshot_id)
    assert len(rpc.controller.ListSnapshots(one, **T).entries) == 1


def test_topology(fake, create, rpc, capability, failure):
    fake.configure(topology={"topology.example.com/zone": "a"})
    capabilities = rpc.identity.GetPluginCapabilities(csi.GetPluginCapabilitiesRequest(), **T).capabilities
    assert csi.PluginCapability.Service.VOLUME_ACCESSIBILITY_CONSTRAINTS in {c.service.type for c in capabilities}
    here, there = (csi.Topology(segments={"topology.example.com/zone": zone}) for zone in "ab")
    assert rpc.node.NodeGetInfo(csi.NodeGetInfoRequest(), **T).accessible_topology == here
    made = create("h", accessibility_requirements=csi.TopologyRequirement(requisite=[here]))
    assert list(made.accessible_topology) == [here]
    request = creation(capability, "t", accessibility_requirements=csi.TopologyRequirement(requisite=[there]))
    assert failure(rpc.controller.CreateVolume, request)[0] == "RESOURCE_EXHAUSTED"
    assert rpc.controller.GetCapacity(csi.GetCapacityRequest(accessible_topology=there), **T).available_capacity == 0
    assert rpc.controller.GetCapacity(csi.GetCapacityRequest(accessible_topology=here), **T).available_capacity


def test_modifying_and_the_condition(fake, create, rpc):
    volume = create(parameters={"a": "1"}, mutable_parameters={"b": "1"}).volume_id
    request = csi.ControllerModifyVolumeRequest(volume_id=volume, mutable_parameters={"b": "2"})
    rpc.controller.ControllerModifyVolume(request, **T)
    assert fake.state()["volumes"][volume]["parameters"] == {"a": "1", "b": "2"}
    get = csi.ControllerGetVolumeRequest(volume_id=volume)
    assert not rpc.controller.ControllerGetVolume(get, **T).status.volume_condition.abnormal
    fake.configure(abnormal="one disk is gone")
    condition = rpc.controller.ControllerGetVolume(get, **T).status.volume_condition
    assert (condition.abnormal, condition.message) == (True, "one disk is gone")


def test_validating(create, rpc, capability, failure):
    request = csi.ValidateVolumeCapabilitiesRequest(
        volume_id=create().volume_id, volume_capabilities=[capability()], parameters={"a": "1"}
    )
    confirmed = rpc.controller.ValidateVolumeCapabilities(request, **T).confirmed
    assert list(confirmed.volume_capabilities) == [capability()]
    assert confirmed.parameters == {"a": "1"}
    request.volume_id = "no"
    assert failure(rpc.controller.ValidateVolumeCapabilities, request)[0] == "NOT_FOUND"


def test_what_is_switched_off_is_not_there(fake, rpc, create, failure):
    create()
    fake.configure(controller=["CREATE_DELETE_VOLUME"])
    assert failure(rpc.controller.ListVolumes, csi.ListVolumesRequest())[0] == "UNIMPLEMENTED"
    create("another")
    fake.configure(controller=None)
    for call, request in (
        (rpc.controller.ControllerGetCapabilities, csi.ControllerGetCapabilitiesRequest()),
        (rpc.controller.DeleteVolume, csi.DeleteVolumeRequest(volume_id="v")),
    ):
        assert failure(call, request)[0] == "UNIMPLEMENTED"
    capabilities = rpc.identity.GetPluginCapabilities(csi.GetPluginCapabilitiesRequest(), **T).capabilities
    assert [each.WhichOneof("type") for each in capabilities] == ["volume_expansion"]


def test_a_field_that_the_configuration_does_not_have(fake):
    with pytest.raises(TypeError, match="colour"):
        fake.configure(colour="blue")
    with pytest.raises(TypeError, match="colour"):
        FakeDriver("/run/x.sock", colour="blue")


def test_who_it_is_can_change(fake, rpc):
    fake.configure(name="other.example.com", version="2", ready=None)
    info = rpc.identity.GetPluginInfo(csi.GetPluginInfoRequest(), **T)
    assert (info.name, info.vendor_version) == ("other.example.com", "2")
    assert not rpc.identity.Probe(csi.ProbeRequest(), **T).HasField("ready")
    fake.configure(ready=False)
    assert not rpc.identity.Probe(csi.ProbeRequest(), **T).ready.value


def test_a_state_file_outlives_the_driver(directory, connect, capability):
    path = f"{directory}/state.json"
    for _ in range(2):
        with FakeDriver(f"{directory}/csi.sock", state_path=path) as driver:
            rpc = connect(driver.endpoint)
            volume = rpc.controller.CreateVolume(creation(capability), **T).volume
            snapshot = csi.CreateSnapshotRequest(name="s", source_volume_id=volume.volume_id)
            rpc.controller.CreateSnapshot(snapshot, **T)
            assert len(driver.state()["volumes"]) == len(driver.state()["snapshots"]) == 1
