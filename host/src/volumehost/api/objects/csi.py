"""CSIDriver and CSINode: what Kubernetes is told about CSI drivers, and which node runs which."""

# ruff: noqa: RUF012 - msgspec copies empty mutable defaults for each struct

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct, always
from volumehost.api.objects.meta import KubeObject
from volumehost.api.objects.storage import STORAGE_V1


class CSITokenRequest(ApiStruct):
    """A service account token that the driver wants with each publish."""

    audience: str = ""
    expiration_seconds: int | None = None


class CSIDriverSpec(ApiStruct):
    """How the host is to treat the driver."""

    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: list[str] = []
    storage_capacity: bool | None = None
    fs_group_policy: str | None = None
    token_requests: list[CSITokenRequest] = []
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    node_allocatable_update_period_seconds: int | None = None
    service_account_token_in_secrets: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject):
    """A CSI driver, named as the driver names itself."""

    api_version: str = always(STORAGE_V1)
    kind: str = always("CSIDriver")
    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class VolumeNodeResources(ApiStruct):
    """How many volumes of a driver a node can take; unset means no known limit."""

    count: int | None = None


class CSINodeDriver(ApiStruct):
    """A driver that runs on the node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: list[str] = []
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiStruct):
    """The drivers of a node."""

    drivers: list[CSINodeDriver] = []


class CSINode(KubeObject):
    """The CSI drivers of a node, named as the node."""

    api_version: str = always(STORAGE_V1)
    kind: str = always("CSINode")
    spec: CSINodeSpec = field(default_factory=CSINodeSpec)
