"""What the directories tell a restarted manager, where no journal does: volumes of pods, and devices (RECON, BR-55).

Only names are read here; the plugins read their own records, and have a deadline for that.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from volumehost.errors import CapabilityMissingError, PluginCallError, PluginLookupError
from volumehost.hookspecs import AttachableVolumePlugin, BlockVolumePlugin, DeviceMountableVolumePlugin
from volumehost.mount.deadline import DeadlineRunner
from volumehost.node.identity import unique_volume_name, unique_volume_name_of_pod
from volumehost.node.operations import Services, plugin_user
from volumehost.node.records import AttachedVolume, MountedVolume
from volumehost.node.states import Attachability, DeviceState, MountState
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


def volume_directories(layout: Layout) -> Iterator[VolumeDirectory]:
    """Every volume directory below every pod (RECON-01). Only names are read: a hung mount must not be touched."""
    for uid in _names(layout.pods_dir()):
        for base, mode in ((f"{layout.pods_dir()}/{uid}/volumes", FILESYSTEM_MODE),
                           (f"{layout.pods_dir()}/{uid}/volumeDevices", BLOCK_MODE)):  # fmt: skip
            for escaped in _names(base):
                for name in _names(f"{base}/{escaped}"):
                    path = f"{base}/{escaped}/{name}"
                    yield VolumeDirectory(uid, unescape_qualified_name(escaped), name, path, mode)


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        logger.warning("%s cannot be listed, what is in it is not looked at: %s", directory, error)
        return []


def find_plugin(services: Services, plugin_name: str, what: str) -> LoadedPlugin | None:
    """The plugin; None when it is not there, for which the volume then waits."""
    try:
        return services.plugins.find_plugin_by_name(plugin_name)
    except PluginLookupError as error:
        logger.warning("%s waits for its volume plugin %s: %s", what, plugin_name, error)
        return None


# --- volumes of pods --------------------------------------------------------------------------------------------


class _Rebuilt(NamedTuple):
    """What a plugin makes of a directory; the pod's own name for it where there is no more to know."""

    volume: str
    spec: Spec | None = None
    device_mount_path: str | None = None


def restore_directories(services: Services) -> tuple[int, int]:
    """Enter the volumes of pods that no journal tells of; how many there are, and how many no plugin could rebuild."""
    runner, count, failed = DeadlineRunner(), 0, 0
    for directory in volume_directories(services.host.layout):
        if services.actual.find_by_inner_name(directory.pod_uid, directory.name) is None:
            failed += not _restore_directory(services, directory, runner)
            count += 1
    return count, failed


def _restore_directory(services: Services, directory: VolumeDirectory, runner: DeadlineRunner) -> bool:
    """RECON-10 to -25, with a name of its own for what the plugin cannot rebuild (RECON-40, improved).

    Returns whether it could.
    """
    found = _Rebuilt(unique_volume_name_of_pod(directory.plugin_name, directory.pod_uid, directory.name))
    plugin = find_plugin(services, directory.plugin_name, directory.path)
    if plugin is not None:
        try:
            found = runner.run(_rebuild, plugin, directory, found, timeout=REBUILD_SECONDS, what=directory.path)
        except Exception as error:  # noqa: BLE001 - one volume that cannot be rebuilt must not hold up the others
            logger.warning("volume directory %s cannot be rebuilt, only torn down: %s", directory.path, error)
    if plugin is not None:
        plugin.hold(plugin_user(found.volume, directory.pod_uid))
    has_device = found.device_mount_path is not None
    shared = found.volume != unique_volume_name_of_pod(directory.plugin_name, directory.pod_uid, directory.name)
    services.actual.add_reconstructed(
        AttachedVolume(
            name=found.volume,
            plugin_name=directory.plugin_name,
            spec=found.spec,
            attachability=Attachability.UNCERTAIN if shared else Attachability.FALSE,
            device_state=DeviceState.UNCERTAIN if has_device else DeviceState.NOT_MOUNTED,
            device_mount_path=found.device_mount_path or "",
            device_owed=has_device,
            mode=directory.mode,
        )
    )
    services.actual.add_reconstructed_mount(
        MountedVolume(
            volume=found.volume,
            pod_uid=directory.pod_uid,
            pod_name="",
            pod_namespace="",
            plugin_name=directory.plugin_name,
            inner_name=directory.name,
            state=MountState.UNCERTAIN,
            mode=directory.mode,
            spec=found.spec,
            path=directory.path,
            reconstructed=True,
            from_directory=True,
        )
    )
    return found.spec is not None


def _rebuild(plugin: LoadedPlugin, directory: VolumeDirectory, plain: _Rebuilt) -> _Rebuilt:
    try:
        return _ask_for_spec(plugin, directory, plain)
    except Exception:
        raise
    except BaseException as error:  # on a thread of its own every one is the plugin's
        raise PluginCallError(f"it tried to end the process ({error!r})", plugin=plugin.name) from error


def _ask_for_spec(plugin: LoadedPlugin, directory: VolumeDirectory, plain: _Rebuilt) -> _Rebuilt:
    if directory.mode == BLOCK_MODE:
        return _ask_for_block_spec(plugin, directory, plain)
    spec = plugin.construct_volume_spec(directory.name, _mount_path(directory)).spec
    if not _is_shared(plugin, spec):
        return plain._replace(spec=spec)
    volume = unique_volume_name(plugin.name, plugin.get_volume_name(spec))
    return _Rebuilt(volume, spec, plugin.new_device_mounter().get_device_mount_path(spec))


def _ask_for_block_spec(plugin: LoadedPlugin, directory: VolumeDirectory, plain: _Rebuilt) -> _Rebuilt:
    """A block volume has a global map path in any case; the unmapper tells it, since making a mapper may write."""
    if not plugin.supports(BlockVolumePlugin):
        raise CapabilityMissingError(f"the volume plugin {plugin.name} has no raw block volumes", subject=plugin.name)
    spec = plugin.construct_block_volume_spec(directory.pod_uid, directory.name, directory.path)
    unmapper = plugin.new_block_volume_unmapper(directory.name, directory.pod_uid)
    volume = plain.volume
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


def restore_devices(services: Services) -> int:
    """Enter the devices that no pod's directory leads to any more (BR-55); returns how many."""
    runner, count = DeadlineRunner(), 0
    for plugin in services.plugins.loaded_plugins():
        if "find_device_mounts" not in plugin.contract.implementations:
            continue
        try:
            found = runner.run(_find_devices, plugin, timeout=REBUILD_SECONDS, what=f"devices of {plugin.name}")
        except Exception as error:  # noqa: BLE001 - one plugin that cannot tell must not hold up the others
            logger.warning("the devices of the volume plugin %s that are mounted are not known: %s", plugin.name, error)
            continue
        for volume, device in found:
            count += _restore_device(services, plugin, volume, device)
    return count


def _find_devices(plugin: LoadedPlugin) -> list[tuple[str, FoundDeviceMount]]:
    try:
        return [
            (unique_volume_name(plugin.name, plugin.get_volume_name(device.spec)), device)
            for device in plugin.find_device_mounts()
        ]
    except Exception:
        raise
    except BaseException as error:  # on a thread of its own every one is the plugin's
        raise PluginCallError(f"it tried to end the process ({error!r})", plugin=plugin.name) from error


def _restore_device(services: Services, plugin: LoadedPlugin, volume: str, device: FoundDeviceMount) -> bool:
    known = services.actual.add_reconstructed(
        AttachedVolume(
            name=volume,
            plugin_name=plugin.name,
            spec=device.spec,
            attachability=Attachability.UNCERTAIN,
            device_state=DeviceState.UNCERTAIN,
            device_mount_path=device.device_mount_path,
            device_owed=True,
            mode=device.spec.volume_mode(),
            from_directory=True,
        )
    )
    if known:
        plugin.hold(plugin_user(volume, ""))
    return known
