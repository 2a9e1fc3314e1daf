"""Reads what people write: parameters of classes, mutable parameters, attributes of inline volumes, capabilities.

Whatever is not known is refused, so that a misspelt parameter does not pass for one that has been heeded. What the
orchestrator adds on its own (``csi.storage.k8s.io/...``) is skipped.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from volumehost.errors import QuantityError
from volumehost.sdk import parse_quantity
from volumehost_csi_kit import csi
from volumehost_loop_driver.errors import InvalidArgumentError
from volumehost_loop_driver.filesystems import SUPPORTED, check_flags
from volumehost_loop_driver.records import Capability, Settings
from volumehost_loop_driver.volumes import ANY_FILESYSTEM

EPHEMERAL_KEY: Final = "csi.storage.k8s.io/ephemeral"
ACCESS_MODES: Final = (
    "SINGLE_NODE_WRITER",
    "SINGLE_NODE_READER_ONLY",
    "SINGLE_NODE_SINGLE_WRITER",
    "SINGLE_NODE_MULTI_WRITER",
)
_RESERVED: Final = "csi.storage.k8s.io/"
_MAXIMUM_READ_AHEAD_KIB: Final = 1 << 20
_MAXIMUM_GROUP: Final = (1 << 32) - 2


def read_provisioning(parameters: Mapping[str, str]) -> bool:
    """Whether a class wants its volumes allocated at once (``provisioning: thick``).

    :raises InvalidArgumentError: a parameter is unknown or wrong.
    """
    own = _own(parameters, {"provisioning"}, "parameters")
    return _one_of(own.get("provisioning", "thin"), {"thin": False, "thick": True}, "parameters: provisioning")


def read_settings(parameters: Mapping[str, str], before: Settings) -> Settings:
    """Settings with what the mutable parameters change: ``readAheadKiB`` and ``directIO``.

    :raises InvalidArgumentError: a parameter is unknown or wrong.
    """
    own = _own(parameters, {"readAheadKiB", "directIO"}, "mutable_parameters")
    settings = before
    if "readAheadKiB" in own:
        kib = _number(own["readAheadKiB"], _MAXIMUM_READ_AHEAD_KIB, "mutable_parameters: readAheadKiB")
        settings = replace(settings, read_ahead_kib=kib)
    if "directIO" in own:
        on = _one_of(own["directIO"], {"true": True, "false": False}, "mutable_parameters: directIO")
        settings = replace(settings, direct_io=on)
    return settings


def refuse_parameters(parameters: Mapping[str, str]) -> None:
    """For calls that have none of their own.

    :raises InvalidArgumentError: there is one.
    """
    _own(parameters, set(), "parameters")


@dataclass(frozen=True, slots=True)
class InlineVolume:
    """What a pod asks for: ``size`` in bytes, 0 for the default, and ``fs_type``, "" for the default."""

    size: int
    fs_type: str


def read_inline(attributes: Mapping[str, str], fs_type: str) -> InlineVolume:
    """The attributes of an inline ephemeral volume: ``size`` and ``fsType`` (else the capability's).

    :raises InvalidArgumentError: an attribute is unknown or wrong.
    """
    own = _own(attributes, {"size", "fsType"}, "volume_context")
    size = 0
    if "size" in own:
        try:
            size = parse_quantity(own["size"]).value()
        except QuantityError as error:
            raise InvalidArgumentError(str(error), action="read volume_context: size") from error
        if size <= 0:
            raise InvalidArgumentError("it must be more than 0", action="read volume_context: size")
    wanted = own.get("fsType", "") or fs_type
    _check_fs_type(wanted, "volume_context: fsType")
    return InlineVolume(size, wanted)


def read_capability(capability: csi.VolumeCapability) -> Capability:
    """A capability, if this driver has it.

    :raises InvalidArgumentError: the driver does not support it; says what it does.
    """
    mode = csi.VolumeCapability.AccessMode.Mode.Name(capability.access_mode.mode)
    if mode not in ACCESS_MODES:
        raise InvalidArgumentError(
            f"{mode} is not supported: a volume is on one machine",
            action="read the access mode",
            hint=f"use one of {', '.join(ACCESS_MODES)}",
        )
    if capability.WhichOneof("access_type") == "block":
        return Capability(block=True, mode=mode)
    mount = capability.mount
    _check_fs_type(mount.fs_type, "fs_type")
    check_flags(mount.mount_flags)
    group = mount.volume_mount_group
    return Capability(
        block=False,
        mode=mode,
        fs_type=mount.fs_type,
        mount_flags=tuple(mount.mount_flags),
        mount_group=_number(group, _MAXIMUM_GROUP, "volume_mount_group") if group else None,
    )


def read_fs_type(capabilities: Iterable[Capability]) -> str:
    """The filesystem that a volume of these capabilities will have: see ``Wanted.fs_type``.

    :raises InvalidArgumentError: they name several.
    """
    mounted = [capability for capability in capabilities if not capability.block]
    if not mounted:
        return ""
    wanted = {capability.fs_type for capability in mounted if capability.fs_type}
    if len(wanted) > 1:
        raise InvalidArgumentError(
            f"a volume has one filesystem, not {' and '.join(sorted(wanted))}", action="read the capabilities"
        )
    return wanted.pop() if wanted else ANY_FILESYSTEM


def _check_fs_type(fs_type: str, where: str) -> None:
    if fs_type and fs_type not in SUPPORTED:
        raise InvalidArgumentError(
            f"the filesystem {fs_type!r} is not supported",
            action=f"read {where}",
            hint=f"use one of {', '.join(SUPPORTED)}",
        )


def _own(given: Mapping[str, str], known: set[str], where: str) -> dict[str, str]:
    own = {key: value for key, value in given.items() if not key.startswith(_RESERVED)}
    for key in sorted(own):
        if key not in known:
            close = difflib.get_close_matches(key, known, 1, 0.6)
            there = f"there are {', '.join(sorted(known))}" if known else "there are none"
            hint = f"did you mean {close[0]}?" if close else there
            raise InvalidArgumentError(f"{key!r} is not known", action=f"read {where}", hint=hint)
    return own


def _one_of(value: str, choices: Mapping[str, bool], where: str) -> bool:
    if value not in choices:
        raise InvalidArgumentError(f"{value!r} is not one of {', '.join(choices)}", action=f"read {where}")
    return choices[value]


def _number(value: str, maximum: int, where: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", value, re.ASCII) or int(value) > maximum:
        raise InvalidArgumentError(f"{value!r} is not a number from 0 to {maximum}", action=f"read {where}")
    return int(value)
