"""What a restarted manager finds: the journal first, then the directories for what no journal tells (RECON rules).

Everything found is entered as uncertain. Nothing is mounted, unmounted or even looked at closely here: a volume that
hangs must not hold up the start.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from volumehost.errors import PluginCallError, PluginLookupError
from volumehost.hookspecs import AttachableVolumePlugin, DeviceMountableVolumePlugin
from volumehost.mount.deadline import DeadlineRunner
from volumehost.node.actual import AttachedVolume, MountedVolume
from volumehost.node.identity import unique_volume_name, unique_volume_name_of_pod
from volumehost.node.journal_format import FAILED, LOST, UNMOUNTED, text_of
from volumehost.node.operations import Services, plugin_user
from volumehost.node.recorded_spec import spec_from_record
from volumehost.node.states import Attachability, DeviceState, MountState
from volumehost.sdk.names import unescape_qualified_name
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE, Spec

if TYPE_CHECKING:
    from volumehost.hosts.layout import Layout
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.node.journal_format import Key

logger = logging.getLogger(__name__)

#: Seconds that a plugin has for rebuilding one volume from its directory, which may lie on a mount that hangs.
REBUILD_SECONDS = 5.0


@dataclass(slots=True)
class Reconstruction:
    """How many volumes of pods were found and where; ``ended_pods`` were being unmounted."""

    from_journal: int = 0
    from_directories: int = 0
    ended_pods: set[str] = field(default_factory=set)


class VolumeDirectory(NamedTuple):
    """A volume's directory below a pod (RECON-02)."""

    pod_uid: str
    plugin_name: str
    name: str
    path: str
    mode: str


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
    runner = DeadlineRunner()
    for directory in volume_directories(services.host.layout):
        if services.actual.find_by_inner_name(directory.pod_uid, directory.name) is None:
            _restore_directory(services, directory, runner)
            result.from_directories += 1
    if result.from_journal or result.from_directories:
        logger.info("found volumes: %d in the journal, %d by their directories", result.from_journal,
                    result.from_directories)  # fmt: skip
    return result


# --- the journal ------------------------------------------------------------------------------------------------


def _restore_volume(services: Services, name: str, record: Mapping[str, Any]) -> None:
    """A device that was mounted, or may have been; or an attachment that is to be undone one day."""
    device = record.get("dev")
    attached = bool(record.get("att"))
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
            device_reconstructed=maybe_mounted and device != LOST,
            mode=text_of(record, "mode") or FILESYSTEM_MODE,
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
            is_mount=record.get("is_mount") if isinstance(record.get("is_mount"), bool) else None,
            # After a reboot no container uses it: a set-up that fails for good leaves nothing to tear down.
            reconstructed=record.get("state") != LOST,
        )
    )
    _hold(services, plugin_name, plugin_user(volume, pod_uid))


def _hold(services: Services, plugin_name: str, user: str) -> None:
    plugin = _find(services, plugin_name, user)
    if plugin is not None:
        plugin.hold(user)


def _find(services: Services, plugin_name: str, what: str) -> LoadedPlugin | None:
    """The plugin; None when it is not there, for which the volume then waits."""
    try:
        return services.plugins.find_plugin_by_name(plugin_name)
    except PluginLookupError as error:
        logger.warning("%s waits for its volume plugin %s: %s", what, plugin_name, error)
        return None


# --- the directories --------------------------------------------------------------------------------------------


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


class _Rebuilt(NamedTuple):
    """What a plugin makes of a directory; the pod's own name for it where there is no more to know."""

    volume: str
    spec: Spec | None = None
    device_mount_path: str | None = None


def _restore_directory(services: Services, directory: VolumeDirectory, runner: DeadlineRunner) -> None:
    """RECON-10 to -25, with a name of its own for what the plugin cannot rebuild (RECON-40, improved)."""
    found = _Rebuilt(unique_volume_name_of_pod(directory.plugin_name, directory.pod_uid, directory.name))
    plugin = _find(services, directory.plugin_name, directory.path)
    if plugin is not None and directory.mode == FILESYSTEM_MODE:
        try:
            found = runner.run(_rebuild, plugin, directory, found, timeout=REBUILD_SECONDS, what=directory.path)
        except Exception as error:  # noqa: BLE001 - one volume that cannot be rebuilt must not hold up the others
            logger.warning("volume directory %s cannot be rebuilt, only torn down: %s", directory.path, error)
    if plugin is not None:
        plugin.hold(plugin_user(found.volume, directory.pod_uid))
    has_device = found.device_mount_path is not None
    services.actual.add_reconstructed(
        AttachedVolume(
            name=found.volume,
            plugin_name=directory.plugin_name,
            spec=found.spec,
            attachability=Attachability.UNCERTAIN if has_device else Attachability.FALSE,
            device_state=DeviceState.UNCERTAIN if has_device else DeviceState.NOT_MOUNTED,
            device_mount_path=found.device_mount_path or "",
            device_reconstructed=has_device,
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


def _rebuild(plugin: LoadedPlugin, directory: VolumeDirectory, plain: _Rebuilt) -> _Rebuilt:
    try:
        return _ask_for_spec(plugin, directory, plain)
    except Exception:
        raise
    except BaseException as error:  # on a thread of its own every one is the plugin's
        raise PluginCallError(f"it tried to end the process ({error!r})", plugin=plugin.name) from error


def _ask_for_spec(plugin: LoadedPlugin, directory: VolumeDirectory, plain: _Rebuilt) -> _Rebuilt:
    spec = plugin.construct_volume_spec(directory.name, _mount_path(directory)).spec
    if not _is_device_mountable(plugin, spec):
        return plain._replace(spec=spec)
    volume = unique_volume_name(plugin.name, plugin.get_volume_name(spec))
    return _Rebuilt(volume, spec, plugin.new_device_mounter().get_device_mount_path(spec))


def _mount_path(directory: VolumeDirectory) -> str:
    """CSI volumes are mounted one level further down (LAYOUT-09)."""
    return f"{directory.path}/mount" if directory.plugin_name == "kubernetes.io/csi" else directory.path


def _is_device_mountable(plugin: LoadedPlugin, spec: Spec) -> bool:
    """Asked before attachability, for which a plugin may need objects that are not there yet (RECON-13)."""
    if plugin.supports(DeviceMountableVolumePlugin) and plugin.can_device_mount(spec):
        return True
    return plugin.supports(AttachableVolumePlugin) and plugin.can_attach(spec)


def resolve_attachability(services: Services) -> None:
    """Ask node status about what the directories left open (RECON-30 to -32)."""
    names = services.actual.uncertain_attachability()
    if not names:
        return
    attached = services.host.get_attached_volumes_from_node_status()
    for name in names:
        found = name in attached
        services.actual.set_attachability(
            name, Attachability.TRUE if found else Attachability.FALSE, attached.get(name)
        )
