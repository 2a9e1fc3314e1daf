"""Containers of a pod and how they see its volumes."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from volumehost.api.objects.base import ApiStruct, Opaque, ResourceList


class VolumeMount(ApiStruct):
    """Where a container sees a volume. ``sub_path_expr`` may use variables of the container's environment."""

    MERGE_KEY: ClassVar[str] = "mountPath"

    name: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_path: str = ""
    sub_path: str = ""
    mount_propagation: str | None = None
    sub_path_expr: str = ""


class VolumeDevice(ApiStruct):
    """Where a container sees a raw block volume."""

    MERGE_KEY: ClassVar[str] = "devicePath"

    name: str = ""
    device_path: str = ""


class ResourceRequirements(ApiStruct):
    """Resources of a container or a pod."""

    limits: ResourceList = {}
    requests: ResourceList = {}
    claims: list[Opaque] = []


class SELinuxOptions(ApiStruct):
    """Parts of an SELinux label."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SecurityContext(ApiStruct):
    """Identity and privileges of a container; unset fields fall back to the pod's."""

    capabilities: Opaque | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: Opaque | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: str | None = None
    seccomp_profile: Opaque | None = None
    app_armor_profile: Opaque | None = None


class EnvVar(ApiStruct):
    """An environment variable; ``value_from`` is kept as it is."""

    name: str = ""
    value: str = ""
    value_from: Opaque | None = None


class Container(ApiStruct):
    """A container of a pod. What volumes do not touch (probes, ports, ...) is carried along."""

    name: str = ""
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    ports: list[Opaque] = []
    env_from: list[Opaque] = []
    env: list[EnvVar] = []
    resources: ResourceRequirements | None = None
    resize_policy: list[Opaque] = []
    restart_policy: str | None = None
    restart_policy_rules: list[Opaque] = []
    volume_mounts: list[VolumeMount] = []
    volume_devices: list[VolumeDevice] = []
    liveness_probe: Opaque | None = None
    readiness_probe: Opaque | None = None
    startup_probe: Opaque | None = None
    lifecycle: Opaque | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class EphemeralContainer(Container):
    """A container added to a running pod, for debugging."""

    target_container_name: str = ""


class ContainerStateWaiting(ApiStruct):
    """The container has not started."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(ApiStruct):
    """The container runs."""

    started_at: str | None = None


class ContainerStateTerminated(ApiStruct):
    """The container has ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = field(default="", name="containerID")


class ContainerState(ApiStruct):
    """The state of a container; at most one field is set, none means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class VolumeMountStatus(ApiStruct):
    """How a volume was really mounted into a container."""

    MERGE_KEY: ClassVar[str] = "mountPath"

    name: str = ""
    mount_path: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: Opaque | None = None


class ContainerStatus(ApiStruct):
    """What became of a container."""

    name: str = ""
    state: ContainerState = field(default_factory=ContainerState)
    last_state: ContainerState = field(default_factory=ContainerState)
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = field(default="", name="imageID")
    container_id: str = field(default="", name="containerID")
    started: bool | None = None
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    volume_mounts: list[VolumeMountStatus] = []
    user: Opaque | None = None
    allocated_resources_status: list[Opaque] = []
    stop_signal: str | None = None
