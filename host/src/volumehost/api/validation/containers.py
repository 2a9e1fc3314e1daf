"""Validation of how containers use volumes: mounts and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volumehost.api.objects import Container, Volume, VolumeMount
from volumehost.api.validation.names import dns_label
from volumehost.api.validation.paths import descending, no_backsteps, usable
from volumehost.api.validation.problems import Problems
from volumehost.api.validation.quantities import resource_list

MOUNT_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_READ_ONLY_MODES = ("Disabled", "Enabled", "IfPossible")


def containers(
    found: Sequence[Container], field: str, volumes: Mapping[str, Volume], taken: set[str], problems: Problems
) -> None:
    """Check containers of one kind; ``taken`` collects the names of all kinds."""
    for index, container in enumerate(found):
        path = f"{field}[{index}]"
        if not container.name:
            problems.required(f"{path}.name")
        else:
            reason = dns_label(container.name)
            if reason:
                problems.invalid(f"{path}.name", container.name, reason)
            if container.name in taken:
                problems.duplicate(f"{path}.name", container.name)
            taken.add(container.name)
        volume_mounts(container, path, volumes, problems)
        volume_devices(container, path, volumes, problems)
        if container.resources is not None:
            resource_list(container.resources.limits, f"{path}.resources.limits", problems)
            resource_list(container.resources.requests, f"{path}.resources.requests", problems)


def volume_mounts(container: Container, field: str, volumes: Mapping[str, Volume], problems: Problems) -> None:
    """Mounts of declared volumes at paths of their own."""
    devices = {device.name for device in container.volume_devices}
    device_paths = {device.device_path for device in container.volume_devices}
    paths: set[str] = set()
    for index, mount in enumerate(container.volume_mounts):
        path = f"{field}.volumeMounts[{index}]"
        _declared(mount.name, f"{path}.name", volumes, problems)
        if mount.name and mount.name in devices:
            problems.invalid(f"{path}.name", mount.name, "must not already exist in volumeDevices")
        _mount_path(mount.mount_path, f"{path}.mountPath", paths, device_paths, problems)
        _sub_path(mount, path, problems)
        _propagation(mount, container, f"{path}.mountPropagation", problems)
        _recursive_read_only(mount, f"{path}.recursiveReadOnly", problems)
        volume = volumes.get(mount.name)
        if volume is not None and volume.image is not None and mount.sub_path_expr:
            problems.forbidden(f"{path}.subPathExpr", "is not supported with an image volume")


def _declared(name: str, field: str, volumes: Mapping[str, Volume], problems: Problems) -> None:
    if not name:
        problems.required(field)
    elif name not in volumes:
        problems.not_found(field, name)


def _mount_path(path: str, field: str, paths: set[str], device_paths: set[str], problems: Problems) -> None:
    if not path:
        problems.required(field)
        return
    usable(path, field, problems)
    if ":" in path:
        problems.invalid(field, path, "must not contain ':'")
    if path in paths:
        problems.invalid(field, path, "must be unique")
    if path in device_paths:
        problems.invalid(field, path, "must not already exist as a path in volumeDevices")
    paths.add(path)


def _sub_path(mount: VolumeMount, field: str, problems: Problems) -> None:
    if mount.sub_path:
        descending(mount.sub_path, f"{field}.subPath", problems)
    if mount.sub_path_expr:
        if mount.sub_path:
            problems.forbidden(f"{field}.subPathExpr", "subPathExpr and subPath are mutually exclusive")
        descending(mount.sub_path_expr, f"{field}.subPathExpr", problems)


def _propagation(mount: VolumeMount, container: Container, field: str, problems: Problems) -> None:
    propagation = mount.mount_propagation
    if propagation is None:
        return
    if propagation not in MOUNT_PROPAGATIONS:
        problems.not_supported(field, propagation, MOUNT_PROPAGATIONS)
    context = container.security_context
    if propagation == "Bidirectional" and not (context is not None and context.privileged):
        problems.forbidden(field, "Bidirectional mount propagation is available only to privileged containers")


def _recursive_read_only(mount: VolumeMount, field: str, problems: Problems) -> None:
    mode = mount.recursive_read_only
    if mode is None or mode == "Disabled":
        return
    if mode not in RECURSIVE_READ_ONLY_MODES:
        problems.not_supported(field, mode, RECURSIVE_READ_ONLY_MODES)
        return
    if not mount.read_only:
        problems.forbidden(field, "may only be specified when readOnly is true")
    if mount.mount_propagation not in {None, "None"}:
        problems.forbidden(field, "may only be specified when mountPropagation is None or not specified")


def volume_devices(container: Container, field: str, volumes: Mapping[str, Volume], problems: Problems) -> None:
    """Devices of declared claims, at paths of their own."""
    mounts = {mount.name for mount in container.volume_mounts}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container.volume_devices):
        path = f"{field}.volumeDevices[{index}]"
        _declared(device.name, f"{path}.name", volumes, problems)
        volume = volumes.get(device.name)
        if volume is not None and volume.persistent_volume_claim is None and volume.ephemeral is None:
            problems.invalid(
                f"{path}.name", device.name, "can only use a persistentVolumeClaim or ephemeral volume for block mode"
            )
        if device.name and device.name in names:
            problems.invalid(f"{path}.name", device.name, "must be unique")
        if device.name and device.name in mounts:
            problems.invalid(f"{path}.name", device.name, "must not already exist in volumeMounts")
        names.add(device.name)
        if not device.device_path:
            problems.required(f"{path}.devicePath")
        elif no_backsteps(device.device_path, f"{path}.devicePath", problems) and device.device_path in paths:
            problems.invalid(f"{path}.devicePath", device.device_path, "must be unique")
        paths.add(device.device_path)
