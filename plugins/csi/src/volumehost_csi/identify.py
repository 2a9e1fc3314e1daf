"""Finding out which volume is mounted somewhere when its record is missing or broken (CSI-PLUG-19 improved, BR-56).

The witnesses, in this order: other records, the mount table, the API. Only teardown asks, and only after the record
itself was of no use.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from volumehost.errors import ApiError, VolumeHostError
from volumehost_csi import vol_data
from volumehost_csi.names import driver_of_staging_path, ephemeral_handle, staging_path
from volumehost_csi.plugin import PLUGIN_NAME

if TYPE_CHECKING:
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)

_STAGING_PATH: Final = re.compile(rf"/plugins/{re.escape(PLUGIN_NAME)}(/[^/]+/[0-9a-f]{{64}}/globalmount)$")

#: A driver and a handle.
Volume = tuple[str, str]


def volume_staged_at(services: Services, path: str, problem: str) -> Volume:
    """The volume whose global mount the path is.

    :param problem: what is wrong with the record, for the error.
    :raises BrokenRecordError: nothing tells.
    """
    driver = driver_of_staging_path(services.host, path)
    for candidate in _candidates(services):
        if candidate[0] == driver and staging_path(services.host, *candidate) == path:
            return candidate
    raise _unknown(path, problem)


def volume_published_at(services: Services, pod_uid: str, name: str, target: str, problem: str) -> Volume:
    """The volume that the pod calls ``name`` and that was published at ``target``.

    :raises BrokenRecordError: nothing tells.
    """
    found = _by_mount_table(services, target) or _of_pod(services, pod_uid, name)
    if found is None:
        raise _unknown(target, problem)
    return found


def block_volume_named(services: Services, name: str, path: str, problem: str) -> Volume:
    """The block volume of the PersistentVolume with that name.

    :raises BrokenRecordError: the API does not tell.
    """
    found = _of_persistent_volume(services, name)
    if found is None:
        raise _unknown(path, problem)
    return found


def _candidates(services: Services) -> Iterator[Volume]:
    """Volumes that pods use here, by their records; then those of the API's PersistentVolumes."""
    pattern = f"{glob.escape(services.host.get_pods_dir())}/*/volumes/{PLUGIN_NAME.replace('/', '~')}/*"
    for directory in glob.iglob(pattern):
        with contextlib.suppress(FileNotFoundError, vol_data.BrokenRecordError):
            record = vol_data.read(directory)
            driver, handle = record.get(vol_data.DRIVER), record.get(vol_data.HANDLE)
            if driver and handle:
                yield driver, handle
    api = services.host.get_kube_client()
    if api is None:
        return
    from volumehost.api.objects import PersistentVolume

    try:
        volumes = api.list(PersistentVolume).items
    except ApiError as error:
        logger.warning("the API cannot be asked for PersistentVolumes: %s", error)
        return
    for volume in volumes:
        source = volume.spec.csi
        if source is not None and source.driver and source.volume_handle:
            yield source.driver, source.volume_handle


def _of_pod(services: Services, pod_uid: str, name: str) -> Volume | None:
    """What the API says of the pod's volume: the PersistentVolume of that name, or the pod's own inline volume."""
    api = services.host.get_kube_client()
    if api is None:
        return None
    from volumehost.api.objects import Pod

    try:
        for pod in api.list(Pod).items:
            if pod.metadata.uid == pod_uid:
                for volume in pod.spec.volumes:
                    if volume.name == name and volume.csi is not None:
                        return volume.csi.driver, ephemeral_handle(pod_uid, name)
    except ApiError as error:
        logger.warning("the API cannot be asked for pod %s: %s", pod_uid, error)
    return _of_persistent_volume(services, name)


def _of_persistent_volume(services: Services, name: str) -> Volume | None:
    api = services.host.get_kube_client()
    if api is None:
        return None
    from volumehost.api.objects import PersistentVolume

    try:
        source = api.get(PersistentVolume, name).spec.csi
    except ApiError as error:
        logger.debug("the API does not tell which volume %s is: %s", name, error)
        return None
    return (source.driver, source.volume_handle) if source is not None else None


def _by_mount_table(services: Services, target: str) -> Volume | None:
    """The volume whose global mount, or plain staging directory, is what is mounted at the target."""
    mounter = services.host.get_mounter()
    try:
        shown = [entry.root for entry in mounter.list_mounts() if entry.path == target]
        shown += mounter.get_mount_refs(target)
    except (VolumeHostError, OSError) as error:
        logger.warning("the mount table does not tell what is mounted at %s: %s", target, error)
        return None
    for found in filter(None, map(_STAGING_PATH.search, shown)):
        # The root of a bind mount is a path within its filesystem, so only its end counts.
        path = f"{services.host.get_plugin_dir(PLUGIN_NAME)}{found[1]}"
        with contextlib.suppress(FileNotFoundError, vol_data.BrokenRecordError):
            record = vol_data.read(os.path.dirname(path))
            if record.get(vol_data.HANDLE):
                return driver_of_staging_path(services.host, path), record[vol_data.HANDLE]
        with contextlib.suppress(vol_data.BrokenRecordError):
            return volume_staged_at(services, path, "")
    return None


def _unknown(path: str, problem: str) -> vol_data.BrokenRecordError:
    return vol_data.BrokenRecordError(
        f"it is not known which volume of which driver it is: {problem}; neither the mount table nor the API tell",
        action=f"unmounting the CSI volume at {path}",
        subject=path,
        hint=f"create its PersistentVolume again, or unmount {path} by hand and remove it with {vol_data.FILE_NAME}",
    )
