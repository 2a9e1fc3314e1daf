"""Node: the machine, its capacity, and the volumes attached to it and in use on it."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct, Opaque, ResourceList, always
from volumehost.api.objects.meta import Condition, KubeObject


class Taint(ApiStruct):
    """Keeps pods away from a node."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(ApiStruct):
    """What is wanted of a node."""

    pod_cidr: str = field(default="", name="podCIDR")
    pod_cidrs: list[str] = field(default_factory=list, name="podCIDRs")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: list[Taint] = []
    config_source: Opaque | None = None
    external_id: str = field(default="", name="externalID")


class NodeAddress(ApiStruct):
    """An address of a node: ``type`` is ``Hostname``, ``InternalIP`` and so on."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(ApiStruct):
    """Identity and versions of the machine."""

    machine_id: str = field(default="", name="machineID")
    system_uuid: str = field(default="", name="systemUUID")
    boot_id: str = field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""
    swap: Opaque | None = None


class AttachedVolume(ApiStruct):
    """A volume attached to the node: its unique name and the device path, where known."""

    name: str = ""
    device_path: str = ""


class NodeStatus(ApiStruct):
    """What the node has and which volumes it holds (unique volume names)."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    phase: str = ""
    conditions: list[Condition] = []
    addresses: list[NodeAddress] = []
    daemon_endpoints: Opaque = {}
    node_info: NodeSystemInfo = field(default_factory=NodeSystemInfo)
    images: list[Opaque] = []
    volumes_in_use: list[str] = []
    volumes_attached: list[AttachedVolume] = []
    config: Opaque | None = None
    runtime_handlers: list[Opaque] = []
    features: Opaque | None = None
    declared_features: list[str] = []


class Node(KubeObject):
    """A machine that runs pods."""

    api_version: str = always("v1")
    kind: str = always("Node")
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)
