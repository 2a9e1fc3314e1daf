"""What the specification demands of each request, checked before the driver's method sees it.

A request that breaks a rule gets INVALID_ARGUMENT with the field's name. Sizes are bytes (CSI-WIRE-08); secrets and
service account tokens are larger in practice than the specification has them, so their size is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from volumehost_csi_kit import csi
from volumehost_csi_kit.redaction import TOKEN_KEY
from volumehost_csi_kit.server.errors import FailedPreconditionError, InvalidArgumentError

Check = Callable[[Any], None]

STRING_BYTES = 128
NODE_ID_BYTES = 256
MAP_BYTES = 4096
MOUNT_FLAGS_BYTES = 4096
PATH_BYTES = 4095  # the kernel's PATH_MAX with its closing zero

_SECRET_KEY = re.compile(r"[A-Za-z0-9._-]+")
#: Marks an inline ephemeral volume, which is never staged (CSI-EPH-01, -05).
EPHEMERAL_KEY = "csi.storage.k8s.io/ephemeral"
_MAPS = ("parameters", "mutable_parameters", "volume_context", "publish_context")


def checks_of(method: str, stages: Callable[[], bool]) -> tuple[Check, ...]:
    """The checks of a call, in the order of their fields; ``stages`` tells whether the driver has NodeStageVolume."""
    request = getattr(csi, f"{method}Request").DESCRIPTOR
    found = list(_RULES.get(method, ()))
    if method == "NodePublishVolume":
        found.append(_staging_path_given(stages))
    found += [_small_map(name) for name in _MAPS if name in request.fields_by_name]
    if "secrets" in request.fields_by_name:
        found.append(_secret_keys)
    return tuple(found)


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _text(field: str, limit: int = STRING_BYTES, *, required: bool = True) -> Check:
    def check(request: Any) -> None:
        value = getattr(request, field)
        if not value:
            if required:
                raise InvalidArgumentError("must be given", field)
        elif _length(value) > limit:
            raise InvalidArgumentError(f"has {_length(value)} bytes, at most {limit} are allowed", field)

    return check


def _path(field: str, *, required: bool = True) -> Check:
    def check(request: Any) -> None:
        value: str = getattr(request, field)
        if not value:
            if required:
                raise InvalidArgumentError("must be given", field)
            return
        if not value.startswith("/"):
            raise InvalidArgumentError(f"must be an absolute path, not {value!r}", field)
        if "\0" in value:
            raise InvalidArgumentError("holds a zero byte", field)
        if "/.." in value and ".." in value.split("/"):
            raise InvalidArgumentError(f"must not lead through '..': {value!r}", field)
        if _length(value) > PATH_BYTES:
            raise InvalidArgumentError(f"is longer than {PATH_BYTES} bytes", field)

    return check


def _not_negative(field: str) -> Check:
    def check(request: Any) -> None:
        if getattr(request, field) < 0:
            raise InvalidArgumentError("must not be negative", field)

    return check


def _filled(field: str) -> Check:
    def check(request: Any) -> None:
        if not getattr(request, field):
            raise InvalidArgumentError("must not be empty", field)

    return check


def _texts(field: str) -> Check:
    """A list with at least one entry, none of them empty."""

    def check(request: Any) -> None:
        values = getattr(request, field)
        if not values:
            raise InvalidArgumentError("must not be empty", field)
        for value in values:
            if not value or _length(value) > STRING_BYTES:
                raise InvalidArgumentError(f"each must have 1 to {STRING_BYTES} bytes", field)

    return check


def _capability(*, required: bool = True) -> Check:
    def check(request: Any) -> None:
        if request.HasField("volume_capability"):
            check_capability(request.volume_capability, "volume_capability")
        elif required:
            raise InvalidArgumentError("must be given", "volume_capability")

    return check


def _capabilities(*, required: bool = True) -> Check:
    def check(request: Any) -> None:
        if required and not request.volume_capabilities:
            raise InvalidArgumentError("must not be empty", "volume_capabilities")
        for index, capability in enumerate(request.volume_capabilities):
            check_capability(capability, f"volume_capabilities[{index}]")

    return check


def check_capability(capability: csi.VolumeCapability, field: str) -> None:
    """Access type and access mode must be given, mount flags not too long.

    :raises InvalidArgumentError: something is missing.
    """
    access_type = capability.WhichOneof("access_type")
    if access_type is None:
        raise InvalidArgumentError("access_type must be block or mount", field)
    if not capability.HasField("access_mode") or not capability.access_mode.mode:
        raise InvalidArgumentError("must be given", f"{field}.access_mode")
    if access_type == "mount":
        mount = capability.mount
        if mount.mount_flags and sum(map(_length, mount.mount_flags)) > MOUNT_FLAGS_BYTES:
            raise InvalidArgumentError(f"have more than {MOUNT_FLAGS_BYTES} bytes", f"{field}.mount.mount_flags")
        for name in ("fs_type", "volume_mount_group"):
            if _length(getattr(mount, name)) > STRING_BYTES:
                raise InvalidArgumentError(f"has more than {STRING_BYTES} bytes", f"{field}.mount.{name}")


def _capacity(*, required: bool = False) -> Check:
    def check(request: Any) -> None:
        if not request.HasField("capacity_range"):
            if required:
                raise InvalidArgumentError("must be given", "capacity_range")
            return
        low, high = request.capacity_range.required_bytes, request.capacity_range.limit_bytes
        if low < 0 or high < 0:
            raise InvalidArgumentError("must not be negative", "capacity_range")
        if not low and not high:
            raise InvalidArgumentError("needs required_bytes or limit_bytes", "capacity_range")
        if high and low > high:
            raise InvalidArgumentError(f"required_bytes {low} is more than limit_bytes {high}", "capacity_range")

    return check


def _content_source(request: csi.CreateVolumeRequest) -> None:
    if not request.HasField("volume_content_source"):
        return
    source = request.volume_content_source
    kind = source.WhichOneof("type")
    if kind is None:
        raise InvalidArgumentError("must be a snapshot or a volume", "volume_content_source")
    given = source.snapshot.snapshot_id if kind == "snapshot" else source.volume.volume_id
    if not given:
        raise InvalidArgumentError("must be given", f"volume_content_source.{kind}.{kind}_id")


def _staging_path_given(stages: Callable[[], bool]) -> Check:
    def check(request: csi.NodePublishVolumeRequest) -> None:
        if not request.staging_target_path and stages() and request.volume_context.get(EPHEMERAL_KEY) != "true":
            raise FailedPreconditionError("staging_target_path: must be given, as this driver stages volumes")

    return check


def _small_map(field: str) -> Check:
    def check(request: Any) -> None:
        values: Mapping[str, str] = getattr(request, field)
        if values and _size(values.items()) > MAP_BYTES:
            raise InvalidArgumentError(f"has more than {MAP_BYTES} bytes of keys and values", field)

    return check


def _size(items: Iterable[tuple[str, str]]) -> int:
    return sum(_length(key) + _length(value) for key, value in items if key != TOKEN_KEY)


def _secret_keys(request: Any) -> None:
    for key in request.secrets:
        if not _SECRET_KEY.fullmatch(key):
            raise InvalidArgumentError("keys consist of letters, digits, '-', '_' and '.'", "secrets")


_PAGE = (_not_negative("max_entries"),)
_RULES: Mapping[str, tuple[Check, ...]] = {
    "CreateVolume": (_text("name"), _capacity(), _capabilities(), _content_source),
    "DeleteVolume": (_text("volume_id"),),
    "ControllerPublishVolume": (_text("volume_id"), _text("node_id", NODE_ID_BYTES), _capability()),
    "ControllerUnpublishVolume": (_text("volume_id"), _text("node_id", NODE_ID_BYTES, required=False)),
    "ValidateVolumeCapabilities": (_text("volume_id"), _capabilities()),
    "ListVolumes": _PAGE,
    "GetCapacity": (_capabilities(required=False),),
    "CreateSnapshot": (_text("source_volume_id"), _text("name")),
    "DeleteSnapshot": (_text("snapshot_id"),),
    "ListSnapshots": _PAGE,
    "GetSnapshot": (_text("snapshot_id"),),
    "ControllerExpandVolume": (_text("volume_id"), _capacity(required=True), _capability(required=False)),
    "ControllerGetVolume": (_text("volume_id"),),
    "ControllerModifyVolume": (_text("volume_id"), _filled("mutable_parameters")),
    "CreateVolumeGroupSnapshot": (_text("name"), _texts("source_volume_ids")),
    "DeleteVolumeGroupSnapshot": (_text("group_snapshot_id"), _texts("snapshot_ids")),
    "GetVolumeGroupSnapshot": (_text("group_snapshot_id"), _texts("snapshot_ids")),
    "GetMetadataAllocated": (_text("snapshot_id"), _not_negative("starting_offset"), _not_negative("max_results")),
    "GetMetadataDelta": (
        _text("base_snapshot_id"),
        _text("target_snapshot_id"),
        _not_negative("starting_offset"),
        _not_negative("max_results"),
    ),
    "NodeStageVolume": (_text("volume_id"), _path("staging_target_path"), _capability()),
    "NodeUnstageVolume": (_text("volume_id"), _path("staging_target_path")),
    "NodePublishVolume": (
        _text("volume_id"),
        _path("target_path"),
        _path("staging_target_path", required=False),
        _capability(),
    ),
    "NodeUnpublishVolume": (_text("volume_id"), _path("target_path")),
    "NodeGetVolumeStats": (
        _text("volume_id"),
        _path("volume_path"),
        _path("staging_target_path", required=False),
    ),
    "NodeExpandVolume": (
        _text("volume_id"),
        _path("volume_path"),
        _capacity(),
        _path("staging_target_path", required=False),
        _capability(required=False),
    ),
}
