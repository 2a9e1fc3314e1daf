"""What a restarted manager finds: the journal first, then the directories for what no journal tells (RECON rules).

Everything found is entered as uncertain. Nothing is mounted, unmounted or even looked at closely here: a volume that
hangs must not hold up the start.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volumehost.hookspecs import AttachableVolumePlugin
from volumehost.node.execution.in_turn import in_turn
from volumehost.node.journal.format import FAILED, LOST, UNCERTAIN, UNMOUNTED
from volumehost.node.operations.common import Services, plugin_user
from volumehost.node.restart.found_on_disk import (
    REBUILD_SECONDS,
    FoundOnDisk,
    VolumeDirectory,
    find_plugin,
    restore_devices,
    restore_directories,
)
from volumehost.node.restart.mount_facts import mounted_paths
from volumehost.node.state.records import AttachedVolume, MountedVolume
from volumehost.node.state.states import Attachability, DeviceState, MountState
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.journal.format import JournalContents
    from volumehost.node.journal.records import Recorded

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Reconstruction:
    """How many volumes of pods were found and where; ``ended_pods`` were being unmounted.

    ``asked_directories``: the journal did not tell everything. ``not_rebuilt``: directories that no plugin could make a
    volume of, so that they can only be torn down (RECON-16). ``understood``: there are none, and every plugin that has
    devices could tell which.
    """

    from_journal: int = 0
    from_directories: int = 0
    not_rebuilt: int = 0
    asked_directories: bool = False
    understood: bool = True
    ended_pods: set[str] = field(default_factory=set)

    def add(self, found: FoundOnDisk) -> None:
        """Count what was found on disk, too."""
        self.from_directories += found.volumes
        self.not_rebuilt += found.not_rebuilt
        self.understood = self.understood and found.understood


def reconstruct(services: Services, journal: JournalContents) -> Reconstruction:
    """Enter all that is told of by the journal, and by the directories where that may not be all."""
    result = _restore_journal(services, journal.for_restart())
    if not (journal.intact and journal.complete):
        result.asked_directories = True
        found = look_at_disk(services)
        result.add(found)
        if not found.volumes and not found.devices and found.understood:
            services.journal.mark_complete()
    if result.from_journal or result.from_directories:
        logger.info("found volumes: %d in the journal, %d by their directories", result.from_journal,
                    result.from_directories)  # fmt: skip
    return result


def look_at_disk(services: Services, is_busy: Callable[[VolumeDirectory], bool] | None = None) -> FoundOnDisk:
    """Enter what only the directories tell of.

    :param is_busy: says of which directory somebody else knows or will know; by default of none.
    """
    found = restore_directories(services, lambda: mounted_paths(services), is_busy)
    devices, told = restore_devices(services)
    if devices:
        logger.info("found %d devices that no pod uses", devices)
    return found._replace(devices=devices, understood=found.understood and told)


# --- the journal ------------------------------------------------------------------------------------------------


def _restore_journal(services: Services, recorded: Iterable[Recorded]) -> Reconstruction:
    result = Reconstruction()
    holders = _Holders(services)
    volumes: dict[str, AttachedVolume] = {}
    mounts: list[MountedVolume] = []
    labels: dict[str, str] = {}
    for record in recorded:
        name, pod_uid = record.v, record.p
        if not name:
            if record.ended:
                result.ended_pods.add(pod_uid)
        elif not pod_uid:
            volume = _restored_volume(services, name, record)
            if volume is not None:
                volumes[name] = volume
                holders.add(record.plugin, plugin_user(name, ""))
        elif record.state and record.state != FAILED:
            mounts.append(_restored_mount(name, pod_uid, record))
            if record.sel:
                labels[name] = record.sel
            holders.add(record.plugin, plugin_user(name, pod_uid))
    for mount in mounts:
        if mount.volume not in volumes:
            volumes[mount.volume] = AttachedVolume(
                mount.volume, mount.plugin_name, None, Attachability.FALSE, mode=mount.mode
            )
    for name, label in labels.items():
        volumes[name].selinux_context = label
    services.actual.enter(volumes.values(), mounts)
    holders.hold()
    result.from_journal = len(mounts)
    return result


def _restored_volume(services: Services, name: str, record: Recorded) -> AttachedVolume | None:
    """A device that was mounted, or may have been; or an attachment that is to be undone one day."""
    maybe_mounted = bool(record.dev) and record.dev not in (UNMOUNTED, FAILED)
    attached = bool(record.att)  # to be confirmed before it is used again
    if not maybe_mounted and not attached:
        return None
    return AttachedVolume(
        name=name,
        plugin_name=record.plugin,
        spec_or_reader=services.read_spec if record.has_spec else None,
        attachability=Attachability.TRUE if attached else Attachability.FALSE,
        device_state=DeviceState.UNCERTAIN if maybe_mounted else DeviceState.NOT_MOUNTED,
        device_path=record.dpath,
        device_mount_path=record.dmpath,
        device_owed=maybe_mounted and record.dev != LOST,
        mode=record.mode or FILESYSTEM_MODE,
        attached=not attached,
        from_directory=record.dir and record.dev == UNCERTAIN,
        selinux_context=record.sel,
    )


def _restored_mount(name: str, pod_uid: str, record: Recorded) -> MountedVolume:
    mode = record.mode or FILESYSTEM_MODE
    return MountedVolume(
        volume=name,
        pod_uid=pod_uid,
        pod_name=record.pod,
        pod_namespace=record.ns,
        plugin_name=record.plugin,
        inner_name=record.inner,
        state=MountState.UNCERTAIN,
        mode=mode,
        path=record.path,
        mount_point=record.mount if mode == BLOCK_MODE else "",
        is_mount=record.is_mount,
        found=True,
        # After a reboot no container uses it: a set-up that fails for good leaves nothing to tear down.
        reconstructed=record.state != LOST,
        from_directory=record.dir and record.state == UNCERTAIN,
    )


class _Holders:
    """Who holds which plugin: told to each plugin at once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._users: dict[str, list[Hashable]] = {}

    def add(self, plugin_name: str, user: Hashable) -> None:
        self._users.setdefault(plugin_name, []).append(user)

    def hold(self) -> None:
        for name, users in self._users.items():
            plugin = find_plugin(self._services, name, f"volumes of a former run ({len(users)})")
            if plugin is not None:
                plugin.hold(*users)


# --- attachments ------------------------------------------------------------------------------------------------


def resolve_attachability(services: Services, *, standalone: bool) -> None:
    """Settle what the directories left open: by node status (RECON-30 to -32), or by the plugin where nobody has that.

    A volume that may be attached is detached one day, which does no harm to one that is not.
    """
    names = services.actual.uncertain_attachability()
    if not names or services.attachments is not None:  # which settles it once the Node is known
        return
    attached = services.host.get_attached_volumes_from_node_status()
    needed = set(attached)
    if standalone:
        needed |= _may_be_attached(services, [name for name in names if name not in attached])
    for name in names:
        services.actual.set_attachability(
            name, Attachability.TRUE if name in needed else Attachability.FALSE, attached.get(name)
        )


def _may_be_attached(services: Services, names: list[str]) -> set[str]:
    """Of the volumes those that their plugins attach, or cannot be judged."""
    of_plugins: dict[str, list[AttachedVolume]] = {}
    for name in names:
        volume = services.actual.get_volume(name)
        if volume is not None and volume.spec is not None:
            of_plugins.setdefault(volume.plugin_name, []).append(volume)
    found = set()
    for plugin_name, volumes in of_plugins.items():
        plugin = find_plugin(services, plugin_name, f"volumes that may be attached ({len(volumes)})")
        if plugin is None or not plugin.supports(AttachableVolumePlugin):
            continue
        what = f"whether volumes of {plugin_name} are attached"
        ask = functools.partial(_can_attach, plugin)
        for volume, answer in zip(volumes, in_turn(ask, volumes, seconds=REBUILD_SECONDS, what=what), strict=True):
            if isinstance(answer, BaseException):
                reason = "whether volume %s has to be detached one day is not known, so it will be: %s"
                logger.warning(reason, volume.name, answer)
            if answer:
                found.add(volume.name)
    return found


def _can_attach(plugin: LoadedPlugin, volume: AttachedVolume) -> bool:
    spec = volume.spec
    return spec is not None and plugin.can_attach(spec)
