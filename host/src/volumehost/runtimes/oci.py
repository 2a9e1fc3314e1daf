"""A container's volumes in an OCI runtime configuration (``config.json``), as crun, runc and others read it."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from volumehost.errors import ManifestError
from volumehost.mount.bind import changes_whole_trees
from volumehost.node.workloads.containers import ContainerDevice, ContainerMount
from volumehost.runtimes.demands import Runtime, in_order, is_recursive, propagation_option
from volumehost.runtimes.device_files import block_device

if TYPE_CHECKING:
    from volumehost.node.workloads.containers import ContainerMounts

#: How the container's own root has to be mounted for mounts to come in and go out; from none to both.
_ROOT_PROPAGATIONS: Final = ("", "rprivate", "private", "rslave", "slave", "rshared", "shared")


def oci_fragment(container: ContainerMounts) -> dict[str, Any]:
    """The configuration of a container's volumes alone, in the form of ``config.json``.

    ``mounts``; for raw block volumes ``linux.devices``, and the rules of ``linux.resources.devices`` that let the
    container use them; where mounts are to propagate ``linux.rootfsPropagation``; ``process.user.additionalGids``.

    :raises ContainerRuntimeError: a runtime could not do something.
    :raises FailedPreconditionError: a block device is gone.
    """
    runtime = _runtime()
    mounts: list[dict[str, Any]] = []
    devices: list[dict[str, Any]] = []
    rules: list[dict[str, Any]] = []
    propagation = ""
    for item in in_order(container, runtime):
        if isinstance(item, ContainerDevice):
            devices.append(_device(item))
            rules.append(_rule(devices[-1], read_only=item.read_only))
            continue
        option = propagation_option(container, item)
        access = "rw"
        if item.read_only:
            access = "rro" if is_recursive(container, item, runtime) else "ro"
        mounts.append(_mount(item, option, access))
        if option != "rprivate":
            propagation = _stronger(propagation, option)
    linux: dict[str, Any] = {}
    if devices:
        linux = {"devices": devices, "resources": {"devices": rules}}
    if propagation:
        linux["rootfsPropagation"] = propagation
    fragment: dict[str, Any] = {"mounts": mounts}
    if linux:
        fragment["linux"] = linux
    if container.supplemental_groups:
        fragment["process"] = {"user": {"additionalGids": list(container.supplemental_groups)}}
    return fragment


def merge_into(config: Mapping[str, Any], container: ContainerMounts) -> dict[str, Any]:
    """A runtime configuration with a container's volumes; the one given is not changed.

    Mounts are ordered so that none hides another. What the configuration has at the place of a volume gives way to it.

    :raises ManifestError: it is no runtime configuration.
    :raises ContainerRuntimeError: a runtime could not do something.
    """
    merged = copy.deepcopy(dict(config))
    fragment = oci_fragment(container)
    mounts = _list(merged, "mounts", "$.mounts")
    taken = {mount["destination"] for mount in fragment["mounts"]}
    kept = [mount for mount in mounts if _clean(mount.get("destination")) not in taken]
    merged["mounts"] = sorted([*kept, *fragment["mounts"]], key=lambda mount: _depth(mount.get("destination")))
    wanted = fragment.get("linux", {})
    if wanted:
        linux = _mapping(merged, "linux", "$.linux")
        if "devices" in wanted:
            devices = _list(linux, "devices", "$.linux.devices")
            paths = {device["path"] for device in wanted["devices"]}
            linux["devices"] = [each for each in devices if each.get("path") not in paths] + wanted["devices"]
            resources = _mapping(linux, "resources", "$.linux.resources")
            # The last rule that fits counts: after the one that forbids everything.
            rules = _list(resources, "devices", "$.linux.resources.devices")
            resources["devices"] = rules + wanted["resources"]["devices"]
        if "rootfsPropagation" in wanted:
            linux["rootfsPropagation"] = _stronger(str(linux.get("rootfsPropagation", "")), wanted["rootfsPropagation"])
    if container.supplemental_groups:
        user = _mapping(_mapping(merged, "process", "$.process"), "user", "$.process.user")
        groups = _list(user, "additionalGids", "$.process.user.additionalGids", of=int)
        user["additionalGids"] = list(dict.fromkeys((*groups, *container.supplemental_groups)))
    return merged


def _runtime() -> Runtime:
    """Recursively read-only is the option "rro": crun from 1.4, runc from 1.1, where the kernel can do it."""
    return Runtime("an OCI runtime on this kernel", recursive_read_only=changes_whole_trees(), root=False)


def _mount(mount: ContainerMount, propagation: str, access: str) -> dict[str, Any]:
    return {
        "destination": mount.container_path,
        "type": "bind",
        "source": mount.host_path,
        "options": ["rbind", propagation, access],
    }


def _device(device: ContainerDevice) -> dict[str, Any]:
    """The node that the runtime makes in the container: number, mode and owner of the host's."""
    found = block_device(device)
    return {
        "path": device.container_path,
        "type": "b",
        "major": os.major(found.st_rdev),
        "minor": os.minor(found.st_rdev),
        "fileMode": found.st_mode & 0o777,
        "uid": found.st_uid,
        "gid": found.st_gid,
    }


def _rule(device: Mapping[str, Any], *, read_only: bool) -> dict[str, Any]:
    access = "r" if read_only else "rwm"
    return {"allow": True, "type": "b", "major": device["major"], "minor": device["minor"], "access": access}


def _stronger(one: str, other: str) -> str:
    return max(one, other, key=lambda name: _ROOT_PROPAGATIONS.index(name) if name in _ROOT_PROPAGATIONS else -1)


def _clean(path: object) -> str:
    return os.path.normpath(str(path))


def _depth(path: object) -> int:
    clean = _clean(path)
    return 0 if clean == "/" else clean.count("/")


# --- a configuration that somebody else wrote -----------------------------------------------------------------------


def _mapping(parent: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    if parent.get(key) is None:
        parent[key] = {}
    value = parent[key]
    if not isinstance(value, dict):
        raise _no_config(path, "an object")
    return value


def _list(parent: Mapping[str, Any], key: str, path: str, *, of: type = dict) -> list[Any]:
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, of) for each in value):
        raise _no_config(path, "a list of " + ("objects" if of is dict else "numbers"))
    return value


def _no_config(path: str, expected: str) -> ManifestError:
    return ManifestError("it is no OCI runtime configuration", problems=[f"{path}: expected {expected}"])
