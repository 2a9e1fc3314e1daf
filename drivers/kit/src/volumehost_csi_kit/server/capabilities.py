"""Which calls an author's object implements, and the capabilities that follow.

A capability that a method shows is declared by implementing it; one that no method can show (``CLONE_VOLUME``, say) is
named in the object's ``capabilities``. What is named must be there, and a pair is implemented whole or not at all: half
a capability is an error when the driver is built, not when the first volume meets it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from volumehost_csi_kit._services import SERVICES, Method

#: Capability to the calls that it stands for, by service.
_SHOWN_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Controller": {
        "CREATE_DELETE_VOLUME": ("CreateVolume", "DeleteVolume"),
        "PUBLISH_UNPUBLISH_VOLUME": ("ControllerPublishVolume", "ControllerUnpublishVolume"),
        "LIST_VOLUMES": ("ListVolumes",),
        "GET_CAPACITY": ("GetCapacity",),
        "CREATE_DELETE_SNAPSHOT": ("CreateSnapshot", "DeleteSnapshot"),
        "LIST_SNAPSHOTS": ("ListSnapshots",),
        "EXPAND_VOLUME": ("ControllerExpandVolume",),
        "GET_VOLUME": ("ControllerGetVolume",),
        "MODIFY_VOLUME": ("ControllerModifyVolume",),
        "GET_SNAPSHOT": ("GetSnapshot",),
    },
    "Node": {
        "STAGE_UNSTAGE_VOLUME": ("NodeStageVolume", "NodeUnstageVolume"),
        "GET_VOLUME_STATS": ("NodeGetVolumeStats",),
        "EXPAND_VOLUME": ("NodeExpandVolume",),
    },
    "GroupController": {
        "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT": (
            "CreateVolumeGroupSnapshot",
            "DeleteVolumeGroupSnapshot",
            "GetVolumeGroupSnapshot",
        ),
    },
}
#: Capabilities that an author names, and the calls that they need.
_NAMED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Controller": {
        "CLONE_VOLUME": ("CreateVolume",),
        "PUBLISH_READONLY": ("ControllerPublishVolume",),
        "LIST_VOLUMES_PUBLISHED_NODES": ("ListVolumes",),
        "VOLUME_CONDITION": (),
        "SINGLE_NODE_MULTI_WRITER": (),
    },
    "Node": {
        "VOLUME_CONDITION": ("NodeGetVolumeStats",),
        "SINGLE_NODE_MULTI_WRITER": (),
        "VOLUME_MOUNT_GROUP": (),
    },
}
#: Calls without which there is no such service.
_NEEDED: Mapping[str, tuple[str, ...]] = {"Node": ("NodePublishVolume", "NodeUnpublishVolume")}


class DriverDefinitionError(TypeError):
    """A driver is put together in a way that cannot work. For its author."""


@dataclass(frozen=True)
class Implemented:
    """The calls of one service that an object implements, by name, and its capabilities, sorted."""

    service: str
    methods: Mapping[str, Method]
    capabilities: tuple[str, ...]


def python_name(call: str) -> str:
    """``NodePublishVolume`` as a method's name: ``node_publish_volume``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", call).lower()


def implemented(service: str, implementation: object) -> Implemented:
    """What ``implementation`` serves.

    :raises DriverDefinitionError: a method's name is almost that of a call, half of a pair is missing, or a capability
        is named that does not exist or has no method.
    """
    calls = SERVICES[service].methods
    by_name = {python_name(call): call for call in calls}
    found = {call: calls[call] for name, call in by_name.items() if callable(getattr(implementation, name, None))}
    who = f"{type(implementation).__name__}, the {service} service"
    _refuse_misspelt(who, implementation, by_name)
    missing = [python_name(call) for call in _NEEDED.get(service, ()) if call not in found]
    if missing:
        raise DriverDefinitionError(f"{who}: every driver has {', '.join(missing)}")
    shown = {name for name, calls in _SHOWN_BY.get(service, {}).items() if any(call in found for call in calls)}
    named = set(_named_capabilities(who, service, implementation))
    for capability in sorted(shown | named):
        needed = _SHOWN_BY.get(service, {}).get(capability) or _NAMED[service][capability]
        missing = [python_name(call) for call in needed if call not in found]
        if missing:
            raise DriverDefinitionError(f"{who}: {capability} needs {', '.join(missing)}")
    return Implemented(service, found, tuple(sorted(shown | named)))


def _named_capabilities(who: str, service: str, implementation: object) -> Iterable[str]:
    given = getattr(implementation, "capabilities", ())
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise DriverDefinitionError(f"{who}: capabilities is a collection of names such as 'VOLUME_CONDITION'")
    known = [*_SHOWN_BY.get(service, {}), *_NAMED.get(service, {})]
    for name in given:
        if name not in known:
            raise DriverDefinitionError(f"{who}: there is no capability {name!r}{_did_you_mean(name, known)}")
    return given


def _refuse_misspelt(who: str, implementation: object, known: Mapping[str, str]) -> None:
    for name in dir(implementation):
        if name.startswith("_") or name in known:
            continue
        close = difflib.get_close_matches(name, known, 1, 0.9)
        if close and callable(getattr(implementation, name, None)):
            raise DriverDefinitionError(
                f"{who}: {name} is not a call of CSI; is it {close[0]}? Begin its name with '_' if it is your own"
            )


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
