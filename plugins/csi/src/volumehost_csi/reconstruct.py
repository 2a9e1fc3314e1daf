"""Rebuilding specs from what is on disk, where no better record is left (CSI-PLUG-30, -31, BR-55, BR-56)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE, Spec
from volumehost.volumes import FoundDeviceMount, ReconstructedVolume
from volumehost_csi import vol_data
from volumehost_csi.identify import block_volume_named, volume_published_at
from volumehost_csi.names import BlockPaths, staging_path
from volumehost_csi.plugin import PLUGIN_NAME
from volumehost_csi.source import EPHEMERAL

if TYPE_CHECKING:
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)


def filesystem_volume(services: Services, volume_name: str, mount_path: str) -> ReconstructedVolume:
    """A minimal spec from the record in ``mount_path``, or beside it; other witnesses where that is unusable.

    :raises BrokenRecordError: there is no record, or it is broken and nothing else tells which volume it is.
    """
    target = mount_path if os.path.basename(mount_path) == "mount" else f"{mount_path}/mount"
    try:
        record = vol_data.read(os.path.dirname(target))
    except FileNotFoundError as error:
        raise _no_record(volume_name, error) from error
    except vol_data.BrokenRecordError as error:
        logger.warning("%s; looking for another witness", error)
        pod_uid = mount_path.removeprefix(f"{services.host.get_pods_dir()}/").partition("/")[0]
        driver, handle = volume_published_at(services, pod_uid, volume_name, target, str(error))
        return ReconstructedVolume(_persistent(volume_name, driver, handle, FILESYSTEM_MODE), complete=False)
    name, driver = record.get(vol_data.SPEC_NAME, ""), record.get(vol_data.DRIVER, "")
    if record.get(vol_data.LIFECYCLE_MODE) == EPHEMERAL:
        from volumehost.api.objects import CSIVolumeSource, Volume

        spec = Spec.from_volume(Volume(name=name, csi=CSIVolumeSource(driver=driver)))
    else:
        spec = _persistent(name, driver, record.get(vol_data.HANDLE, ""), FILESYSTEM_MODE)
    return ReconstructedVolume(spec, record.get(vol_data.SELINUX_CONTEXT, ""), complete=False)


def block_volume(services: Services, volume_name: str) -> Spec:
    """A minimal spec of a block volume from its record, or from the API where that is unusable.

    :raises BrokenRecordError: there is no record, or it is broken and the API does not tell which volume it is.
    """
    paths = BlockPaths(services.host, volume_name)
    try:
        record = vol_data.read(paths.data_dir)
    except FileNotFoundError as error:
        raise _no_record(volume_name, error) from error
    except vol_data.BrokenRecordError as error:
        driver, handle = block_volume_named(services, volume_name, paths.volume_dir, str(error))
        return _persistent(volume_name, driver, handle, BLOCK_MODE)
    return _persistent(
        record.get(vol_data.SPEC_NAME, ""), record.get(vol_data.DRIVER, ""), record.get(vol_data.HANDLE, ""), BLOCK_MODE
    )


def _no_record(name: str, error: FileNotFoundError) -> vol_data.BrokenRecordError:
    return vol_data.BrokenRecordError(
        f"there is no record {error.filename}", action=f"rebuilding the spec of the CSI volume {name}", subject=name
    )


def device_mounts(services: Services) -> list[FoundDeviceMount]:
    """Every device that is staged or may be, by the records beside the staging paths and the block volumes."""
    return [*_staged_filesystems(services), *_block_devices(services)]


def _staged_filesystems(services: Services) -> Iterator[FoundDeviceMount]:
    base = services.host.get_plugin_dir(PLUGIN_NAME)
    for driver in _directories(base):
        for component in _directories(f"{base}/{driver}"):
            record = _record(f"{base}/{driver}/{component}")
            handle = record.get(vol_data.HANDLE, "")
            if record.get(vol_data.DRIVER) == driver and handle:
                path = staging_path(services.host, driver, handle)
                if path == f"{base}/{driver}/{component}/globalmount":
                    yield FoundDeviceMount(_persistent(handle, driver, handle, FILESYSTEM_MODE), path)


def _block_devices(services: Services) -> Iterator[FoundDeviceMount]:
    base = services.host.get_volume_device_plugin_dir(PLUGIN_NAME)
    for component in _directories(base):
        if component in {"staging", "publish"}:
            continue
        record = _record(f"{base}/{component}/data")
        driver, handle = record.get(vol_data.DRIVER), record.get(vol_data.HANDLE)
        if driver and handle:
            name = record.get(vol_data.SPEC_NAME) or component
            yield FoundDeviceMount(_persistent(name, driver, handle, BLOCK_MODE), f"{base}/{component}/dev")


def _record(directory: str) -> dict[str, str]:
    try:
        return vol_data.read(directory)
    except FileNotFoundError:
        return {}
    except vol_data.BrokenRecordError as error:
        logger.warning("a staged CSI volume cannot be told by its record: %s", error)
        return {}


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        logger.warning("%s cannot be listed, what is in it is not looked at: %s", path, error)
        return []


def _persistent(name: str, driver: str, handle: str, mode: str) -> Spec:
    from volumehost.api.objects import CSIPersistentVolumeSource, ObjectMeta, PersistentVolume, PersistentVolumeSpec

    source = CSIPersistentVolumeSource(driver=driver, volume_handle=handle)
    volume = PersistentVolume(metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(csi=source, volume_mode=mode))
    return Spec.from_persistent_volume(volume, read_only=False)
