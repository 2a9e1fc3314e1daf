"""Only what is implemented is served and declared; what cannot work is found when the driver is built."""

from __future__ import annotations

import pytest

from volumehost_csi_kit import csi, stubs
from volumehost_csi_kit._services import SERVICES
from volumehost_csi_kit.server import Driver, DriverDefinitionError
from volumehost_csi_kit.server.capabilities import _NAMED, _SHOWN_BY, python_name


class Node:
    def node_publish_volume(self, request, context): ...

    def node_unpublish_volume(self, request, context): ...


class StagingNode(Node):
    capabilities = frozenset({"VOLUME_MOUNT_GROUP"})

    def node_stage_volume(self, request, context): ...

    def node_unstage_volume(self, request, context): ...

    def node_expand_volume(self, request, context): ...

    def node_get_volume_stats(self, request, context): ...


class Controller:
    capabilities = ("CLONE_VOLUME",)

    def create_volume(self, request, context): ...

    def delete_volume(self, request, context): ...

    def controller_expand_volume(self, request, context): ...


def driver(**objects):
    return Driver("disk.example.com", "1.2", **{"node_id": "n", **objects})


def asked(channel):
    """Capabilities as the caller sees them."""
    node = stubs.NodeStub(channel).NodeGetCapabilities(csi.NodeGetCapabilitiesRequest(), timeout=30)
    names = csi.NodeServiceCapability.RPC.Type.Name
    return [names(capability.rpc.type) for capability in node.capabilities]


def plugin(channel):
    reply = stubs.IdentityStub(channel).GetPluginCapabilities(csi.GetPluginCapabilitiesRequest(), timeout=30)
    found = []
    for capability in reply.capabilities:
        if capability.HasField("service"):
            found.append(csi.PluginCapability.Service.Type.Name(capability.service.type))
        else:
            found.append(csi.PluginCapability.VolumeExpansion.Type.Name(capability.volume_expansion.type))
    return found


def test_a_plain_node(served, failure):
    channel = served(driver(node=Node()))
    assert asked(channel) == []
    assert plugin(channel) == []
    info = stubs.IdentityStub(channel).GetPluginInfo(csi.GetPluginInfoRequest(), timeout=30)
    assert (info.name, info.vendor_version) == ("disk.example.com", "1.2")
    assert stubs.NodeStub(channel).NodeGetInfo(csi.NodeGetInfoRequest(), timeout=30).node_id == "n"
    assert failure(stubs.NodeStub(channel).NodeStageVolume, csi.NodeStageVolumeRequest())[0] == "UNIMPLEMENTED"
    assert failure(stubs.ControllerStub(channel).ListVolumes, csi.ListVolumesRequest())[0] == "UNIMPLEMENTED"


def test_methods_show_capabilities_and_the_rest_is_named(served):
    channel = served(driver(node=StagingNode(), controller=Controller(), topology=True))
    assert asked(channel) == ["EXPAND_VOLUME", "GET_VOLUME_STATS", "STAGE_UNSTAGE_VOLUME", "VOLUME_MOUNT_GROUP"]
    assert plugin(channel) == ["CONTROLLER_SERVICE", "VOLUME_ACCESSIBILITY_CONSTRAINTS", "ONLINE"]
    reply = stubs.ControllerStub(channel).ControllerGetCapabilities(csi.ControllerGetCapabilitiesRequest(), timeout=30)
    names = csi.ControllerServiceCapability.RPC.Type.Name
    assert [names(capability.rpc.type) for capability in reply.capabilities] == [
        "CLONE_VOLUME",
        "CREATE_DELETE_VOLUME",
        "EXPAND_VOLUME",
    ]


def test_a_controller_alone_and_offline_expansion(served, failure):
    channel = served(Driver("disk.example.com", "1", controller=Controller(), expansion=["OFFLINE"]))
    assert plugin(channel) == ["CONTROLLER_SERVICE", "OFFLINE"]
    assert failure(stubs.NodeStub(channel).NodeGetInfo, csi.NodeGetInfoRequest())[0] == "UNIMPLEMENTED"


def test_group_and_metadata_services(served):
    class Groups:
        def create_volume_group_snapshot(self, request, context): ...
        def delete_volume_group_snapshot(self, request, context): ...
        def get_volume_group_snapshot(self, request, context): ...

    class Metadata:
        def get_metadata_allocated(self, request, context):
            yield csi.GetMetadataAllocatedResponse(volume_capacity_bytes=7)
            yield csi.GetMetadataAllocatedResponse(volume_capacity_bytes=8)

    channel = served(driver(controller=Controller(), group_controller=Groups(), snapshot_metadata=Metadata()))
    assert plugin(channel)[:3] == ["CONTROLLER_SERVICE", "GROUP_CONTROLLER_SERVICE", "SNAPSHOT_METADATA_SERVICE"]
    groups = stubs.GroupControllerStub(channel)
    reply = groups.GroupControllerGetCapabilities(csi.GroupControllerGetCapabilitiesRequest(), timeout=30)
    assert [capability.rpc.type for capability in reply.capabilities] == [1]
    metadata = stubs.SnapshotMetadataStub(channel)
    replies = metadata.GetMetadataAllocated(csi.GetMetadataAllocatedRequest(snapshot_id="s"), timeout=30)
    assert [reply.volume_capacity_bytes for reply in replies] == [7, 8]


def test_an_author_may_answer_for_the_kit(served):
    class Identity:
        def probe(self, request, context):
            return csi.ProbeResponse()

    class Info(Node):
        def node_get_info(self, request, context):
            return csi.NodeGetInfoResponse(node_id="own", max_volumes_per_node=3)

    channel = served(Driver("disk.example.com", "1", node=Info(), identity=Identity()))
    assert not stubs.IdentityStub(channel).Probe(csi.ProbeRequest(), timeout=30).HasField("ready")
    assert stubs.NodeStub(channel).NodeGetInfo(csi.NodeGetInfoRequest(), timeout=30).max_volumes_per_node == 3


class HalfStaging(Node):
    def node_stage_volume(self, request, context): ...


class Misspelt(Node):
    def node_stage_volum(self, request, context): ...


class Naming(Node):
    def __init__(self, *names):
        self.capabilities = names


class ConditionWithoutStats(Node):
    capabilities = ("VOLUME_CONDITION",)


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ({"node": HalfStaging()}, "STAGE_UNSTAGE_VOLUME needs node_unstage_volume"),
        ({"node": Misspelt()}, "node_stage_volum is not a call of CSI; is it node_stage_volume?"),
        ({"node": Naming("VOLUME_MOUNT_GRUP")}, "no capability 'VOLUME_MOUNT_GRUP'; did you mean 'VOLUME_MOUNT_GROUP'"),
        ({"node": Naming("EXPAND_VOLUME")}, "EXPAND_VOLUME needs node_expand_volume"),
        ({"node": Naming(7)}, "collection of names"),
        ({"node": ConditionWithoutStats()}, "VOLUME_CONDITION needs node_get_volume_stats"),
        ({"node": object()}, "every driver has node_publish_volume, node_unpublish_volume"),
        ({"node": Node(), "node_id": ""}, "needs a node_id"),
        ({}, "at least a node or a controller"),
        ({"node": Node(), "expansion": ["ONLINE"]}, "which nobody implements"),
        ({"node": StagingNode(), "expansion": ["SOMETIMES"]}, "collection of 'ONLINE' and 'OFFLINE'"),
        ({"node": StagingNode(), "expansion": "ONLINE"}, "collection of 'ONLINE' and 'OFFLINE'"),
    ],
)
def test_drivers_that_cannot_work(objects, reason):
    with pytest.raises(DriverDefinitionError, match=reason.replace("?", r"\?")):
        driver(**objects)


@pytest.mark.parametrize("name", ["", "a_b.example.com", "-a", "a-", "x" * 64, "a b", "ä.example.com"])
def test_names_that_are_none(name):
    with pytest.raises(DriverDefinitionError, match="not a driver's name"):
        Driver(name, "1", node=Node(), node_id="n")


def test_own_methods_are_the_authors_business():
    class Own(Node):
        def mount_it(self): ...
        def _node_stage_volum(self): ...

    assert driver(node=Own()).capabilities("Node") == ()


@pytest.mark.parametrize(
    ("service", "message"), [("Controller", "Controller"), ("Node", "Node"), ("GroupController", "GroupController")]
)
def test_every_capability_of_the_protocol_is_known(service, message):
    values = getattr(csi, f"{message}ServiceCapability").RPC.Type.keys()
    assert {*_SHOWN_BY[service], *_NAMED.get(service, {})} == set(values) - {"UNKNOWN"}


def test_every_call_has_a_python_name():
    names = [python_name(call) for service in SERVICES.values() for call in service.methods]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name.islower() for name in names)
    assert python_name("NodeGetVolumeStats") == "node_get_volume_stats"
