"""The columns that ``get`` shows for each kind, after those that Kubernetes users know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from volumehost.cli.durations import format_duration

#: A column: its header and the cell for an object.
Column = tuple[str, Callable[[Any], object]]

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def columns_for(kind: str) -> Sequence[Column]:
    """The columns of a kind (``Pod``); name and age for a kind without any of its own."""
    return _COLUMNS.get(kind, ((("name", _name)), ("age", age)))


def age(obj: Any) -> str:
    """How long ago the object was made."""
    return since(obj.metadata.creation_timestamp)


def since(timestamp: str | None) -> str:
    """How long ago a moment was, "" when it is not known; moments ahead of this clock count as now."""
    moment = parse_time(timestamp)
    return "" if moment is None else format_duration((datetime.now(UTC) - moment).total_seconds())


def parse_time(timestamp: str | None) -> datetime | None:
    """An RFC 3339 time, None when there is none or it cannot be read."""
    if not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def access_modes(modes: Sequence[str]) -> str:
    """``RWO,ROX``."""
    return ",".join(_MODES.get(mode, mode) for mode in modes)


def _name(obj: Any) -> str:
    return str(obj.metadata.name)


def _pod_status(pod: Any) -> str:
    return "Terminating" if pod.metadata.deletion_timestamp else pod.status.phase or "Pending"


def _claim_status(claim: Any) -> str:
    return "Terminating" if claim.metadata.deletion_timestamp else claim.status.phase or "Pending"


def _volume_status(volume: Any) -> str:
    return "Terminating" if volume.metadata.deletion_timestamp else volume.status.phase or "Pending"


def _claim_of(volume: Any) -> str:
    claim = volume.spec.claim_ref
    return f"{claim.namespace}/{claim.name}" if claim is not None else ""


def _yes(value: object) -> str:
    return "true" if value else "false"


def _default_mark(annotation: str) -> Callable[[Any], str]:
    """The name, with a mark for the class that is used when none is asked for."""

    def cell(each: Any) -> str:
        default = each.metadata.annotations.get(annotation) == "true"
        return f"{each.metadata.name} (default)" if default else str(each.metadata.name)

    return cell


def _ready(node: Any) -> str:
    states = {condition.type: condition.status for condition in node.status.conditions}
    word = {"True": "Ready", "False": "NotReady"}.get(states.get("Ready", ""), "Unknown")
    return f"{word},SchedulingDisabled" if node.spec.unschedulable else word


def _attachment_volume(attachment: Any) -> str:
    return str(attachment.spec.source.persistent_volume_name or "")


def _event_object(event: Any) -> str:
    return f"{event.involved_object.kind.lower()}/{event.involved_object.name}"


def _event_age(event: Any) -> str:
    return since(event.last_timestamp or event.event_time or event.metadata.creation_timestamp)


_NAME: Column = ("name", _name)
_AGE: Column = ("age", age)

_COLUMNS: Mapping[str, Sequence[Column]] = {
    "Pod": (
        _NAME,
        ("status", _pod_status),
        ("volumes", lambda pod: len(pod.spec.volumes)),
        ("node", lambda pod: pod.spec.node_name),
        _AGE,
    ),
    "PersistentVolume": (
        _NAME,
        ("capacity", lambda volume: volume.spec.capacity.get("storage", "")),
        ("access modes", lambda volume: access_modes(volume.spec.access_modes)),
        ("reclaim policy", lambda volume: volume.spec.persistent_volume_reclaim_policy),
        ("status", _volume_status),
        ("claim", _claim_of),
        ("storageclass", lambda volume: volume.spec.storage_class_name),
        ("reason", lambda volume: volume.status.reason),
        _AGE,
    ),
    "PersistentVolumeClaim": (
        _NAME,
        ("status", _claim_status),
        ("volume", lambda claim: claim.spec.volume_name),
        ("capacity", lambda claim: claim.status.capacity.get("storage", "")),
        ("access modes", lambda claim: access_modes(claim.status.access_modes or claim.spec.access_modes)),
        ("storageclass", lambda claim: claim.spec.storage_class_name),
        _AGE,
    ),
    "StorageClass": (
        ("name", _default_mark("storageclass.kubernetes.io/is-default-class")),
        ("provisioner", lambda storage_class: storage_class.provisioner),
        ("reclaimpolicy", lambda storage_class: storage_class.reclaim_policy),
        ("volumebindingmode", lambda storage_class: storage_class.volume_binding_mode),
        ("allowvolumeexpansion", lambda storage_class: _yes(storage_class.allow_volume_expansion)),
        _AGE,
    ),
    "VolumeAttributesClass": (_NAME, ("drivername", lambda each: each.driver_name), _AGE),
    "VolumeAttachment": (
        _NAME,
        ("attacher", lambda attachment: attachment.spec.attacher),
        ("pv", _attachment_volume),
        ("node", lambda attachment: attachment.spec.node_name),
        ("attached", lambda attachment: _yes(attachment.status.attached)),
        _AGE,
    ),
    "VolumeSnapshot": (
        _NAME,
        ("readytouse", lambda snapshot: _yes(snapshot.status.ready_to_use)),
        ("sourcepvc", lambda snapshot: snapshot.spec.source.persistent_volume_claim_name),
        ("sourcesnapshotcontent", lambda snapshot: snapshot.spec.source.volume_snapshot_content_name),
        ("restoresize", lambda snapshot: snapshot.status.restore_size),
        ("snapshotclass", lambda snapshot: snapshot.spec.volume_snapshot_class_name),
        ("snapshotcontent", lambda snapshot: snapshot.status.bound_volume_snapshot_content_name),
        ("creationtime", lambda snapshot: since(snapshot.status.creation_time)),
        _AGE,
    ),
    "VolumeSnapshotClass": (
        ("name", _default_mark("snapshot.storage.kubernetes.io/is-default-class")),
        ("driver", lambda snapshot_class: snapshot_class.driver),
        ("deletionpolicy", lambda snapshot_class: snapshot_class.deletion_policy),
        _AGE,
    ),
    "VolumeSnapshotContent": (
        _NAME,
        ("readytouse", lambda content: _yes(content.status.ready_to_use)),
        ("restoresize", lambda content: content.status.restore_size),
        ("deletionpolicy", lambda content: content.spec.deletion_policy),
        ("driver", lambda content: content.spec.driver),
        ("volumesnapshotclass", lambda content: content.spec.volume_snapshot_class_name),
        ("volumesnapshot", lambda content: content.spec.volume_snapshot_ref.name),
        ("volumesnapshotnamespace", lambda content: content.spec.volume_snapshot_ref.namespace),
        _AGE,
    ),
    "CSIDriver": (
        _NAME,
        ("attachrequired", lambda driver: _yes(driver.spec.attach_required is not False)),
        ("podinfoonmount", lambda driver: _yes(driver.spec.pod_info_on_mount)),
        ("storagecapacity", lambda driver: _yes(driver.spec.storage_capacity)),
        ("modes", lambda driver: ",".join(driver.spec.volume_lifecycle_modes or ["Persistent"])),
        _AGE,
    ),
    "CSINode": (_NAME, ("drivers", lambda node: len(node.spec.drivers)), _AGE),
    "CSIStorageCapacity": (
        _NAME,
        ("storageclass", lambda capacity: capacity.storage_class_name),
        ("capacity", lambda capacity: capacity.capacity),
        _AGE,
    ),
    "Node": (_NAME, ("status", _ready), _AGE),
    "Secret": (_NAME, ("type", lambda secret: secret.type or "Opaque"), ("data", lambda each: len(each.data)), _AGE),
    "ConfigMap": (_NAME, ("data", lambda each: len(each.data) + len(each.binary_data)), _AGE),
    "ServiceAccount": (_NAME, ("secrets", lambda account: len(account.secrets)), _AGE),
    "ClusterTrustBundle": (_NAME, ("signername", lambda bundle: bundle.spec.signer_name), _AGE),
    "Event": (
        ("last seen", _event_age),
        ("type", lambda event: event.type),
        ("reason", lambda event: event.reason),
        ("object", _event_object),
        ("count", lambda event: event.count or 1),
        ("message", lambda event: event.message),
    ),
}
