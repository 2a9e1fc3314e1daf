"""Validation of CSIDriver and CSINode."""

from __future__ import annotations

from volumehost.api.objects import CSIDriver, CSINode, CSINodeDriver
from volumehost.api.validation.driver_sources import csi_driver_name
from volumehost.api.validation.names import qualified_name
from volumehost.api.validation.problems import Problems, immutable

FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
LIFECYCLE_MODES = ("Ephemeral", "Persistent")
_MIN_TOKEN_SECONDS = 600
_MAX_TOKEN_SECONDS = 2**32
_MIN_UPDATE_SECONDS = 10
_MAX_NODE_ID_BYTES = 256


def validate_csi_driver(driver: CSIDriver, problems: Problems) -> None:
    """The driver's name and known modes."""
    csi_driver_name(driver.metadata.name, "metadata.name", problems)
    spec = driver.spec
    if spec.fs_group_policy not in FS_GROUP_POLICIES:
        problems.not_supported("spec.fsGroupPolicy", spec.fs_group_policy, FS_GROUP_POLICIES)
    for mode in spec.volume_lifecycle_modes:
        if mode not in LIFECYCLE_MODES:
            problems.not_supported("spec.volumeLifecycleModes", mode, LIFECYCLE_MODES)
    audiences: set[str] = set()
    for index, request in enumerate(spec.token_requests):
        field = f"spec.tokenRequests[{index}]"
        if request.audience in audiences:
            problems.duplicate(f"{field}.audience", request.audience)
        audiences.add(request.audience)
        seconds = request.expiration_seconds
        if seconds is not None and not _MIN_TOKEN_SECONDS <= seconds <= _MAX_TOKEN_SECONDS:
            problems.invalid(f"{field}.expirationSeconds", seconds, "must be between 10 minutes and 2^32 seconds")
    period = spec.node_allocatable_update_period_seconds
    if period is not None and period < _MIN_UPDATE_SECONDS:
        problems.invalid(
            "spec.nodeAllocatableUpdatePeriodSeconds", period, f"must be greater than or equal to {_MIN_UPDATE_SECONDS}"
        )


def validate_csi_driver_change(driver: CSIDriver, old: CSIDriver, problems: Problems) -> None:
    """Volumes were attached and mounted in these ways."""
    immutable(driver.spec, old.spec, "attach_required", "spec.attachRequired", problems)
    immutable(driver.spec, old.spec, "volume_lifecycle_modes", "spec.volumeLifecycleModes", problems)


def validate_csi_node(node: CSINode, problems: Problems) -> None:
    """Each driver once, with its name for the node."""
    names: set[str] = set()
    for index, driver in enumerate(node.spec.drivers):
        field = f"spec.drivers[{index}]"
        csi_driver_name(driver.name, f"{field}.name", problems)
        if driver.name in names:
            problems.duplicate(f"{field}.name", driver.name)
        names.add(driver.name)
        _node_driver(driver, field, problems)


def _node_driver(driver: CSINodeDriver, field: str, problems: Problems) -> None:
    if not driver.node_id:
        problems.required(f"{field}.nodeID")
    elif len(driver.node_id.encode()) > _MAX_NODE_ID_BYTES:
        problems.too_long(f"{field}.nodeID", _MAX_NODE_ID_BYTES)
    keys: set[str] = set()
    for key in driver.topology_keys:
        reason = qualified_name(key)
        if reason:
            problems.invalid(f"{field}.topologyKeys", key, reason)
        if key in keys:
            problems.duplicate(f"{field}.topologyKeys", key)
        keys.add(key)
    count = driver.allocatable.count if driver.allocatable is not None else None
    if count is not None and count < 0:
        problems.invalid(f"{field}.allocatable.count", count, "must be greater than or equal to 0")


def validate_csi_node_change(node: CSINode, old: CSINode, problems: Problems) -> None:
    """A driver can come and go, but not become another under one name; its limit may change."""
    before = {driver.name: driver for driver in old.spec.drivers}
    for index, driver in enumerate(node.spec.drivers):
        known = before.get(driver.name)
        if known is not None:
            immutable(driver, known, "node_id", f"spec.drivers[{index}].nodeID", problems)
            immutable(driver, known, "topology_keys", f"spec.drivers[{index}].topologyKeys", problems)
