"""What the directories tell a restarted manager, where no journal does: volumes of pods, and devices (RECON, BR-55).

Only names and the mount table are read here; the plugins read their own records, and have a deadline for that.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import CapabilityMissingError, PluginLookupError
from volumehost.hookspecs import AttachableVolumePlugin, BlockVolumePlugin, DeviceMountableVolumePlugin
from volumehost.node.execution.in_turn import in_turn
from volumehost.node.operations.common import Services, plugin_user
from volumehost.node.state.identity import split_unique_volume_name, unique_volume_name, unique_volume_name_of_pod
from volumehost.node.state.records import AttachedVolume, MountedVolume
from volumehost.node.state.states import Attachability, DeviceState, MountState
from volumehost.sdk.names import unescape_qualified_name
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE, Spec

if TYPE_CHECKING:
    from volumehost.hosts.layout import Layout
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.volumes import FoundDeviceMount

logger = logging.getLogger(__name__)

#: Seconds that a plugin has for rebuilding one volume from its directory, which may lie on a mount that hangs.
REBUILD_SECONDS = 5.0


class VolumeDirectory(NamedTuple):
    """A volume's directory below a pod (RECON-02)."""

    pod_uid: str
    plugin_name: str
    name: str
    path: str
    mode: str


def volume_directories(layout: Layout, unreadable: list[str] | None = None) -> Iterator[VolumeDirectory]:
    """Every volume directory below every pod (RECON-01). Only names are read: a hung mount must not be touched.

    What a link leads to is not looked at: whatever is there is nobody's volume.

    :param unreadable: gets the directories that could not be listed, so that what is in them is not known.
    """
    failed = unreadable if unreadable is not None else []
    for uid in _names(layout.pods_dir(), failed, directories=True):
        pod_dir = f"{layout.pods_dir()}/{uid}"
        bases = _names(pod_dir, failed, directories=True)
        for base, mode in (("volumes", FILESYSTEM_MODE), ("volumeDevices", BLOCK_MODE)):
            for escaped in _names(f"{pod_dir}/{base}", failed, directories=True) if base in bases else ():
                plugin_name = unescape_qualified_name(escaped)
                for name in _names(f"{pod_dir}/{base}/{escaped}", failed):
                    yield VolumeDirectory(uid, plugin_name, name, f"{pod_dir}/{base}/{escaped}/{name}", mode)


def _names(directory: str, unreadable: list[str], *, directories: bool = False) -> list[str]:
    """What is in a directory.

    :param unreadable: gets the directory when it cannot be listed.
    :param directories: only those that are directories themselves, and no links; for where nothing is mounted.
    """
    try:
        if not directories:
            return sorted(os.listdir(directory))
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        logger.warning("%s cannot be listed, what is in it is not looked at: %s", directory, error)
        unreadable.append(directory)
        return []


def find_plugin(services: Services, plugin_name: str, what: str) -> LoadedPlugin | None:
    """The plugin; None when it is not there, for which the volume then waits."""
    try:
        return services.plugins.find_plugin_by_name(plugin_name)
    except PluginLookupError as error:
        logger.warning("a volume plugin is not there, %s wait for %s: %s", what, plugin_name, error)
        return None


# --- volumes of pods --------------------------------------------------------------------------------------------


class _Rebuilt(NamedTuple):
    """What a plugin makes of a directory; the pod's own name for it where there is no more to know."""

    volume: str
    spec: Spec | None = None
    device_mount_path: str | None = None
    understood: bool = True
    selinux_context: str = ""


class FoundOnDisk(NamedTuple):
    """How many volumes of pods and devices were entered.

    ``not_rebuilt``: of how many directories no plugin could make a volume, so that they can only be torn down
    (RECON-16). ``understood``: that is none, every plugin could tell its devices, and every directory could be listed.
    """

    volumes: int = 0
    not_rebuilt: int = 0
    devices: int = 0
    understood: bool = True


def restore_directories(
    services: Services, read_table: Callable[[], Container[str]], is_busy: Callable[[VolumeDirectory], bool] | None
) -> FoundOnDisk:
    """Enter the volumes of pods that no journal tells of.

    :param read_table: gives the paths in the mount table; called when there is something to look up.
    :param is_busy: says which directories are to be passed over; asked again when the plugin has answered.
    """
    unknown: dict[str, list[VolumeDirectory]] = {}
    of_pod, known = "", frozenset[str]()
    unreadable: list[str] = []
    for directory in volume_directories(services.host.layout, unreadable):
        if directory.pod_uid != of_pod:
            of_pod = directory.pod_uid
            known = frozenset(mount.inner_name for mount in services.actual.mounts_of_pod(of_pod))
        if directory.name not in known and not (is_busy and is_busy(directory)):
            unknown.setdefault(directory.plugin_name, []).append(directory)
    count, failed, mounted = 0, 0, read_table() if unknown else ()
    for plugin_name, directories in unknown.items():
        plugin = find_plugin(services, plugin_name, f"volumes that were found on disk ({len(directories)})")
        rebuilt = _rebuild_all(plugin, directories) if plugin is not None else map(_as_named_by_pod, directories)
        found = list(zip(directories, rebuilt, strict=True))
        if is_busy is not None:
            found = [each for each in found if not is_busy(each[0]) and _is_there(each[0])]
        count += len(found)
        failed += sum(not volume.understood for _, volume in found)
        if plugin is not None:
            plugin.hold(*(plugin_user(volume.volume, directory.pod_uid) for directory, volume in found))
        services.actual.enter(
            [_attached_volume(*each) for each in found], [_mounted_volume(*each, mounted) for each in found]
        )
    return FoundOnDisk(count, failed, understood=not failed and not unreadable)


def _rebuild_all(plugin: LoadedPlugin, directories: list[VolumeDirectory]) -> Iterator[_Rebuilt]:
    """RECON-10 to -16, with a name of its own for what the plugin cannot rebuild (RECON-40, improved)."""
    answers = in_turn(
        lambda directory: _rebuild(plugin, directory),
        directories,
        seconds=REBUILD_SECONDS,
        what=f"rebuilding volumes of {plugin.name}",
    )
    for directory, answer in zip(directories, answers, strict=True):
        if isinstance(answer, BaseException):
            logger.warning("volume directory %s cannot be rebuilt, only torn down: %s", directory.path, answer)
            answer = _as_named_by_pod(directory)  # noqa: PLW2901
        yield answer


def _as_named_by_pod(directory: VolumeDirectory) -> _Rebuilt:
    name = unique_volume_name_of_pod(directory.plugin_name, directory.pod_uid, directory.name)
    return _Rebuilt(name, understood=False)


def _is_there(directory: VolumeDirectory) -> bool:
    """Still, by its name alone: what is mounted there may hang."""
    return directory.name in _names(os.path.dirname(directory.path), [])


def _attached_volume(directory: VolumeDirectory, found: _Rebuilt) -> AttachedVolume:
    """RECON-20, -21, -23."""
    has_device = found.device_mount_path is not None
    shared = found.volume != unique_volume_name_of_pod(directory.plugin_name, directory.pod_uid, directory.name)
    return AttachedVolume(
        name=found.volume,
        plugin_name=directory.plugin_name,
        spec_or_reader=found.spec,
        attachability=Attachability.UNCERTAIN if shared else Attachability.FALSE,
        device_state=DeviceState.UNCERTAIN if has_device else DeviceState.NOT_MOUNTED,
        device_mount_path=found.device_mount_path or "",
        device_owed=has_device,
        mode=directory.mode,
        selinux_context=found.selinux_context,
    )


def _mounted_volume(directory: VolumeDirectory, found: _Rebuilt, mounted: Container[str]) -> MountedVolume:
    """RECON-22. What is no mount now may never have been one: then nothing is missing there (RECON-25)."""
    place = _mount_path(directory)
    return MountedVolume(
        volume=found.volume,
        pod_uid=directory.pod_uid,
        pod_name="",
        pod_namespace="",
        plugin_name=directory.plugin_name,
        inner_name=directory.name,
        state=MountState.UNCERTAIN,
        mode=directory.mode,
        path=directory.path,
        is_mount=True if directory.mode == FILESYSTEM_MODE and place in mounted else None,
        found=True,
        reconstructed=True,
        from_directory=True,
        mount_point=place if place != directory.path else "",
    )


def _rebuild(plugin: LoadedPlugin, directory: VolumeDirectory) -> _Rebuilt:
    if directory.mode == BLOCK_MODE:
        return _ask_for_block_spec(plugin, directory)
    answer = plugin.construct_volume_spec(directory.name, _mount_path(directory))
    spec, context = answer.spec, answer.selinux_mount_context
    if not _is_shared(plugin, spec):
        return _as_named_by_pod(directory)._replace(spec=spec, understood=True, selinux_context=context)
    volume = unique_volume_name(plugin.name, plugin.get_volume_name(spec))
    path = plugin.new_device_mounter().get_device_mount_path(spec)
    return _Rebuilt(volume, spec, path, selinux_context=context)


def _ask_for_block_spec(plugin: LoadedPlugin, directory: VolumeDirectory) -> _Rebuilt:
    """A block volume has a global map path in any case; the unmapper tells it, since making a mapper may write."""
    if not plugin.supports(BlockVolumePlugin):
        raise CapabilityMissingError(f"the volume plugin {plugin.name} has no raw block volumes", subject=plugin.name)
    spec = plugin.construct_block_volume_spec(directory.pod_uid, directory.name, directory.path)
    unmapper = plugin.new_block_volume_unmapper(directory.name, directory.pod_uid)
    volume = _as_named_by_pod(directory).volume
    if _is_shared(plugin, spec):
        volume = unique_volume_name(plugin.name, plugin.get_volume_name(spec))
    return _Rebuilt(volume, spec, unmapper.get_global_map_path(spec))


def _mount_path(directory: VolumeDirectory) -> str:
    """CSI volumes are mounted one level further down (LAYOUT-09)."""
    return f"{directory.path}/mount" if directory.plugin_name == "kubernetes.io/csi" else directory.path


def _is_shared(plugin: LoadedPlugin, spec: Spec) -> bool:
    """Asked before attachability, for which a plugin may need objects that are not there yet (RECON-13)."""
    if plugin.supports(DeviceMountableVolumePlugin) and plugin.can_device_mount(spec):
        return True
    return plugin.supports(AttachableVolumePlugin) and plugin.can_attach(spec)


# --- devices ----------------------------------------------------------------------------------------------------


def restore_devices(services: Services) -> tuple[int, bool]:
    """Enter the devices that no pod's directory leads to any more (BR-55).

    :returns: how many, and whether every plugin could tell.
    """
    known: dict[str, set[str]] = {}
    for unique_name in services.actual.volumes_with_devices():
        plugin_name, name = split_unique_volume_name(unique_name)
        known.setdefault(plugin_name, set()).add(name)
    count, told = 0, True
    for plugin in services.plugins.loaded_plugins():
        if "find_device_mounts" not in plugin.contract.implementations:
            continue
        (found,) = in_turn(
            lambda plugin: _find_devices(plugin, frozenset(known.get(plugin.name, ()))),
            [plugin],
            seconds=REBUILD_SECONDS,
            what=f"finding devices of {plugin.name}",
        )
        if isinstance(found, BaseException):
            logger.warning("the devices of the volume plugin %s that are mounted are not known: %s", plugin.name, found)
            told = False
            continue
        new = services.actual.enter([_device(plugin, *each) for each in found], ())
        if new:  # who holds it has all of its modules imported
            plugin.hold(*(plugin_user(volume, "") for volume in new))
        count += len(new)
    return count, told


def _find_devices(plugin: LoadedPlugin, known: frozenset[str]) -> list[tuple[str, FoundDeviceMount]]:
    return [
        (unique_volume_name(plugin.name, plugin.get_volume_name(device.spec)), device)
        for device in plugin.find_device_mounts(known)
    ]


def _device(plugin: LoadedPlugin, volume: str, device: FoundDeviceMount) -> AttachedVolume:
    return AttachedVolume(
        name=volume,
        plugin_name=plugin.name,
        spec_or_reader=device.spec,
        attachability=Attachability.UNCERTAIN,
        device_state=DeviceState.UNCERTAIN,
        device_mount_path=device.device_mount_path,
        device_owed=True,
        mode=device.spec.volume_mode(),
        from_directory=True,
    )
