"""Pod: what asks for volumes."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct, Opaque, ResourceList, always
from volumehost.api.objects.container import (
    Container,
    ContainerStatus,
    EphemeralContainer,
    ResourceRequirements,
    SELinuxOptions,
)
from volumehost.api.objects.meta import Condition, KubeObject, LocalObjectReference
from volumehost.api.objects.volume import Volume


class PodSecurityContext(ApiStruct):
    """Identity of all containers, and the group that owns the pod's volumes (``fs_group``)."""

    se_linux_options: SELinuxOptions | None = None
    windows_options: Opaque | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: list[int] = []
    supplemental_groups_policy: str | None = None
    fs_group: int | None = None
    sysctls: list[Opaque] = []
    fs_group_change_policy: str | None = None
    seccomp_profile: Opaque | None = None
    app_armor_profile: Opaque | None = None
    se_linux_change_policy: str | None = None


class PodSpec(ApiStruct):
    """The volumes of a pod and the containers that use them. What volumes do not touch is carried along."""

    volumes: list[Volume] = []
    init_containers: list[Container] = []
    containers: list[Container] = []
    ephemeral_containers: list[EphemeralContainer] = []
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    dns_policy: str = ""
    node_selector: dict[str, str] = {}
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: list[LocalObjectReference] = []
    hostname: str = ""
    subdomain: str = ""
    affinity: Opaque | None = None
    scheduler_name: str = ""
    tolerations: list[Opaque] = []
    host_aliases: list[Opaque] = []
    priority_class_name: str = ""
    priority: int | None = None
    dns_config: Opaque | None = None
    readiness_gates: list[Opaque] = []
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: ResourceList = {}
    topology_spread_constraints: list[Opaque] = []
    set_hostname_as_fqdn: bool | None = field(default=None, name="setHostnameAsFQDN")
    os: Opaque | None = None
    host_users: bool | None = None
    scheduling_gates: list[Opaque] = []
    resource_claims: list[Opaque] = []
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: Opaque | None = None


class IPAddress(ApiStruct):
    """An address of a pod or its host."""

    ip: str = ""


class PodStatus(ApiStruct):
    """``phase`` is ``Pending``, ``Running``, ``Succeeded``, ``Failed`` or ``Unknown``."""

    observed_generation: int = 0
    phase: str = ""
    conditions: list[Condition] = []
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = field(default="", name="hostIP")
    host_ips: list[IPAddress] = field(default_factory=list, name="hostIPs")
    pod_ip: str = field(default="", name="podIP")
    pod_ips: list[IPAddress] = field(default_factory=list, name="podIPs")
    start_time: str | None = None
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []
    qos_class: str = ""
    ephemeral_container_statuses: list[ContainerStatus] = []
    resize: str = ""
    resource_claim_statuses: list[Opaque] = []
    extended_resource_claim_status: Opaque | None = None
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: list[Opaque] = []


class Pod(KubeObject):
    """Containers that share volumes on one node."""

    api_version: str = always("v1")
    kind: str = always("Pod")
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)
