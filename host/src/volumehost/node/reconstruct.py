"""What a restarted manager finds: the journal first, then the directories for what no journal tells (RECON rules).

Everything found is entered as uncertain. Nothing is mounted, unmounted or even looked at closely here: a volume that
hangs must not hold up the start.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from volumehost.hookspecs import AttachableVolumePlugin
from volumehost.mount.deadline import DeadlineRunner
from volumehost.node.found_on_disk import REBUILD_SECONDS, find_plugin, restore_devices, restore_directories
from volumehost.node.journal_format import FAILED, LOST, UNMOUNTED, text_of
from volumehost.node.operations import Services, plugin_user
from volumehost.node.recorded_spec import spec_from_record
from volumehost.node.records import AttachedVolume, MountedVolume
from volumehost.node.states import Attachability, DeviceState, MountState
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE

if TYPE_CHECKING:
    from volumehost.node.journal_format import Key

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Reconstruction:
    """How many volumes of pods were found and where; ``ended_pods`` were being unmounted.

    ``not_rebuilt``: directories that no plugin could make a volume of, so that they can only be torn down (RECON-16).
    """

    from_journal: int = 0
    from_directories: int = 0
    not_rebuilt: int = 0
    ended_pods: set[str] = field(default_factory=set)


def reconstruct(services: Services, entries: Mapping[Key, Mapping[str, Any]]) -> Reconstruction:
    """Enter all that the journal and the directories tell of into the actual state."""
    result = Reconstruction()
    for (volume, pod_uid), record in entries.items():
        if not volume:
            if record.get("ended"):
                result.ended_pods.add(pod_uid)
        elif not pod_uid:
            _restore_volume(services, volume, record)
    for (volume, pod_uid), record in entries.items():
        if volume and pod_uid and record.get("state") not in (None, FAILED):
            _restore_mount(services, volume, pod_uid, record)
            result.from_journal += 1
    result.from_directories, result.not_rebuilt = restore_directories(services)
    devices = restore_devices(services)
    if devices:
        logger.info("found %d devices that no pod uses", devices)
    if result.from_journal or result.from_directories:
        logger.info("found volumes: %d in the journal, %d by their directories", result.from_journal,
                    result.from_directories)  # fmt: skip
    return result


# --- the journal ------------------------------------------------------------------------------------------------


def _restore_volume(services: Services, name: str, record: Mapping[str, Any]) -> None:
    """A device that was mounted, or may have been; or an attachment that is to be undone one day."""
    device = record.get("dev")
    attached = bool(record.get("att"))  # to be confirmed before it is used again
    maybe_mounted = device is not None and device not in (UNMOUNTED, FAILED)
    if not maybe_mounted and not attached:
        return
    services.actual.add_reconstructed(
        AttachedVolume(
            name=name,
            plugin_name=text_of(record, "plugin"),
            spec=spec_from_record(record),
            attachability=Attachability.TRUE if attached else Attachability.FALSE,
            device_state=DeviceState.UNCERTAIN if maybe_mounted else DeviceState.NOT_MOUNTED,
            device_path=text_of(record, "dpath"),
            device_mount_path=text_of(record, "dmpath"),
            device_owed=maybe_mounted and device != LOST,
            mode=text_of(record, "mode") or FILESYSTEM_MODE,
            attached=not attached,
        )
    )
    _hold(services, text_of(record, "plugin"), plugin_user(name, ""))


def _restore_mount(services: Services, volume: str, pod_uid: str, record: Mapping[str, Any]) -> None:
    plugin_name = text_of(record, "plugin")
    mode = text_of(record, "mode") or FILESYSTEM_MODE
    services.actual.add_reconstructed(
        AttachedVolume(volume, plugin_name, None, Attachability.FALSE, mode=mode)
    )  # unless its own record has entered it
    services.actual.add_reconstructed_mount(
        MountedVolume(
            volume=volume,
            pod_uid=pod_uid,
            pod_name=text_of(record, "pod"),
            pod_namespace=text_of(record, "ns"),
            plugin_name=plugin_name,
            inner_name=text_of(record, "inner"),
            state=MountState.UNCERTAIN,
            mode=mode,
            path=text_of(record, "path"),
            mount_point=text_of(record, "mount") if mode == BLOCK_MODE else "",
            is_mount=record.get("is_mount") if isinstance(record.get("is_mount"), bool) else None,
            # After a reboot no container uses it: a set-up that fails for good leaves nothing to tear down.
            reconstructed=record.get("state") != LOST,
        )
    )
    _hold(services, plugin_name, plugin_user(volume, pod_uid))


def _hold(services: Services, plugin_name: str, user: str) -> None:
    plugin = find_plugin(services, plugin_name, user)
    if plugin is not None:
        plugin.hold(user)


def resolve_attachability(services: Services, *, standalone: bool) -> None:
    """Settle what the directories left open: by node status (RECON-30 to -32), or by the plugin where nobody has that.

    A volume that may be attached is detached one day, which does no harm to one that is not.
    """
    names = services.actual.uncertain_attachability()
    if not names:
        return
    attached = services.host.get_attached_volumes_from_node_status()
    for name in names:
        needed = name in attached or (standalone and _may_be_attached(services, name))
        services.actual.set_attachability(
            name, Attachability.TRUE if needed else Attachability.FALSE, attached.get(name)
        )


def _may_be_attached(services: Services, name: str) -> bool:
    volume = services.actual.get_volume(name)
    plugin = find_plugin(services, volume.plugin_name, name) if volume is not None else None
    if volume is None or plugin is None or volume.spec is None or not plugin.supports(AttachableVolumePlugin):
        return False
    spec = volume.spec
    try:
        return DeadlineRunner().run(lambda: plugin.can_attach(spec), timeout=REBUILD_SECONDS, what=name)
    except Exception as error:  # noqa: BLE001 - one volume that cannot be judged must not hold up the others
        logger.warning("whether volume %s has to be detached one day is not known, so it will be: %s", name, error)
        return True
