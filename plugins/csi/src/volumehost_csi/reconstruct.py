"""Rebuilding specs from what is on disk, where no better record is left (CSI-PLUG-30, -31, BR-55, BR-56)."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Collection, Container, Iterator
from typing import TYPE_CHECKING

from volumehost.api.objects import (
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeSpec,
    Volume,
)
from volumehost.errors import SpecError
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE, Spec
from volumehost.volumes import FoundDeviceMount, ReconstructedVolume
from volumehost_csi import vol_data
from volumehost_csi.identify import block_volume_named, volume_published_at
from volumehost_csi.names import BlockPaths, split_volume_name, staging_component, staging_path, volume_name
from volumehost_csi.plugin import PLUGIN_NAME
from volumehost_csi.source import EPHEMERAL

if TYPE_CHECKING:
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)


def filesystem_volume(services: Services, volume_name: str, mount_path: str) -> ReconstructedVolume:
    """A minimal spec from the record in ``mount_path``, or beside it; other witnesses where that is unusable.

    :raises BrokenRecordError: there is no record, or it is broken and nothing else tells which volume it is.
    """
    directory = mount_path.removesuffix("/mount")
    target = f"{directory}/mount"
    try:
        record = vol_data.read(directory)
    except FileNotFoundError as error:
        raise _no_record(volume_name, error) from error
    except vol_data.BrokenRecordError as error:
        logger.warning("%s; looking for another witness", error)
        pod_uid = mount_path.removeprefix(f"{services.host.get_pods_dir()}/").partition("/")[0]
        driver, handle = volume_published_at(services, pod_uid, volume_name, target, str(error))
        return ReconstructedVolume(_persistent(volume_name, driver, handle, FILESYSTEM_MODE), complete=False)
    name, driver = record.get(vol_data.SPEC_NAME, ""), record.get(vol_data.DRIVER, "")
    if record.get(vol_data.LIFECYCLE_MODE) == EPHEMERAL:
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


def device_mounts(services: Services, known: Collection[str] = ()) -> list[FoundDeviceMount]:
    """Every device that is staged or may be, by the records beside the staging paths and the block volumes.

    :param known: names of volumes that need not be told; their records are not read.
    """
    return [*_staged_filesystems(services, known), *_block_devices(services, known)]


def _staged_filesystems(services: Services, known: Collection[str]) -> Iterator[FoundDeviceMount]:
    base = services.host.get_plugin_dir(PLUGIN_NAME)
    told = set()
    for name in known:
        with contextlib.suppress(SpecError):  # then it is told once more
            told.add(f"{base}/{staging_component(*split_volume_name(name))}")
    for driver in _directories(base):
        for component in _directories(f"{base}/{driver}", told):
            record = _record(f"{base}/{driver}/{component}")
            handle = record.get(vol_data.HANDLE, "")
            if record.get(vol_data.DRIVER) == driver and handle:
                path = staging_path(services.host, driver, handle)
                if path == f"{base}/{driver}/{component}/globalmount":
                    yield FoundDeviceMount(_persistent(handle, driver, handle, FILESYSTEM_MODE), path)


def _block_devices(services: Services, known: Collection[str]) -> Iterator[FoundDeviceMount]:
    base = services.host.get_volume_device_plugin_dir(PLUGIN_NAME)
    for component in _directories(base):
        if component in {"staging", "publish"}:
            continue
        record = _record(f"{base}/{component}/data")
        driver, handle = record.get(vol_data.DRIVER), record.get(vol_data.HANDLE)
        if driver and handle and volume_name(driver, handle) not in known:
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


def _directories(path: str, but: Container[str] = ()) -> list[str]:
    """Names of the directories in the directory, without those whose paths are in ``but``."""
    try:
        with os.scandir(path) as entries:
            return sorted(
                entry.name for entry in entries if entry.path not in but and entry.is_dir(follow_symlinks=False)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        logger.warning("%s cannot be listed, what is in it is not looked at: %s", path, error)
        return []


def _persistent(name: str, driver: str, handle: str, mode: str) -> Spec:
    source = CSIPersistentVolumeSource(driver=driver, volume_handle=handle)
    volume = PersistentVolume(metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(csi=source, volume_mode=mode))
    return Spec.from_persistent_volume(volume, read_only=False)
