"""Findings about mounts and devices that belong to nobody: leaked ones, and those that live on in other namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from volumehost.inspection.context import Context
from volumehost.inspection.findings.advice import command_on
from volumehost.inspection.findings.of_pods import shortened
from volumehost.inspection.kinds import LEAKED_DEVICE_MOUNT, LEAKED_LOOP_DEVICE, LEAKED_MOUNT, OTHER_NAMESPACE
from volumehost.inspection.mounts import DELETED
from volumehost.inspection.report import DeviceReport, Finding, PodReport, PodState, Severity
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint


def findings_of_mounts(
    context: Context, pods: Iterable[PodReport], devices: Iterable[DeviceReport]
) -> Iterator[Finding]:
    """All of them."""
    yield from _leaked_mounts(context, list(pods), devices)
    yield from _leaked_devices(context, devices)
    yield from _leaked_loops(context)
    yield from _other_namespaces(context)


# --- mounts ---------------------------------------------------------------------------------------------------


def _leaked_mounts(context: Context, pods: list[PodReport], devices: Iterable[DeviceReport]) -> Iterator[Finding]:
    owned = _owned_places(context, pods, devices)
    trees = [
        place
        for device in context.survey.devices
        if device.mode == BLOCK_MODE
        for place in (device.mount_path, *device.places)
    ]
    for path in context.survey.index.paths():
        if path in owned or any(path.startswith(f"{tree}/") for tree in trees):
            continue
        uid = _pod_of(context, path)
        if uid and (context.state_of(uid).abandoned or context.state_of(uid) is PodState.UNKNOWN):
            continue  # told with the pod
        yield _leaked(context, path, uid)
    yield from _unrecorded(context, pods)


def _owned_places(context: Context, pods: list[PodReport], devices: Iterable[DeviceReport]) -> set[str]:
    """Places where something may be mounted: volumes, subpaths, devices, and the directories of the root itself."""
    root = context.survey.root
    owned = {root, *context.survey.bases}
    owned |= {volume.mount_path for pod in pods for volume in pod.volumes}
    owned |= {subpath.path for entry in context.entries.values() for subpath in entry.subpaths}
    owned |= {device.path for device in devices}
    drivers = f"{root}/drivers/"  # a driver's own business
    return owned | {path for path in context.survey.index.paths() if path.startswith(drivers)}


def _pod_of(context: Context, path: str) -> str:
    base = f"{context.survey.root}/pods/"
    uid = path.removeprefix(base).partition("/")[0] if path.startswith(base) else ""
    return uid if uid in context.entries else ""


def _leaked(context: Context, path: str, uid: str) -> Finding:
    mounts = context.survey.index.at(path)
    evidence = [_told(mount) for mount in mounts]
    advice = ""
    if path.endswith(DELETED):
        evidence.append("its directory was removed by somebody else")
        advice = "no path leads to it any more; it goes when its mount namespace ends"
    elif context.survey.index.is_hidden(mounts[-1]):
        evidence.append("another mount lies over it")
        advice = "unmount what lies over it first"
    around = next((volume for volume in _volumes_around(context, path)), "")
    if around:
        evidence.append(f"it is mounted inside the volume at {around}")
    if uid:
        name = context.survey.known.name_of(uid)
        evidence.append(f"it lies below the directory of pod {f'{name.namespace}/{name.name}' if name else uid}")
    return Finding(LEAKED_MOUNT, Severity.WARNING, path, uid, tuple(evidence), advice=advice)


def _volumes_around(context: Context, path: str) -> Iterator[str]:
    end = path.rfind("/")
    while end > len(context.survey.root):
        above = path[:end]
        if context.survey.index.at(above) and above not in context.survey.bases:
            yield above
        end = path.rfind("/", 0, end)


def _told(mount: MountPoint) -> str:
    part = "" if mount.root == "/" else f"[{mount.root}]"
    return f"{mount.fs_type} from {mount.source}{part}"


def _unrecorded(context: Context, pods: list[PodReport]) -> Iterator[Finding]:
    """Volumes of known pods that are mounted although the journal, which is whole, does not tell of them."""
    if not context.journal_tells_all:
        return
    for pod in pods:
        for volume in pod.volumes:
            if volume.mounts and not volume.witnesses.journal and pod.state is PodState.KNOWN:
                evidence = volume.witnesses.disagreements
                advice = f"{command_on('mount', pod)} takes it over" if pod.name else ""
                yield Finding(LEAKED_MOUNT, Severity.INFO, volume.mount_path, pod.uid, evidence, advice=advice)


# --- devices --------------------------------------------------------------------------------------------------


def _leaked_devices(context: Context, devices: Iterable[DeviceReport]) -> Iterator[Finding]:
    for device in devices:
        if device.state != "unused":
            continue
        evidence = [f"{mount.fs_type} from {mount.source}, and no pod has it" for mount in device.mounts]
        if device.driver:
            evidence.append(f"it is volume {device.handle or '?'} of the driver {device.driver}")
        severity, advice = Severity.WARNING, ""
        if context.may_be_wanted:
            severity, advice = Severity.INFO, f"it is not touched: {context.may_be_wanted}"
        yield Finding(LEAKED_DEVICE_MOUNT, severity, device.path, "", tuple(shortened(evidence)), advice=advice)


def _leaked_loops(context: Context) -> Iterator[Finding]:
    for loop in context.survey.loops:
        if loop.used or (loop.lock_of and context.survey.index.at(loop.lock_of)):
            continue
        file = f"{loop.backing_file}{', which was deleted' if loop.deleted else ''}"
        evidence = [f"it is attached to {file}", "nothing is mounted from it, and no other device uses it"]
        if loop.lock_of:
            evidence.append(f"it was to lock the device that was mapped at {loop.lock_of}")
        yield Finding(LEAKED_LOOP_DEVICE, Severity.WARNING, loop.device, "", tuple(evidence))


# --- other namespaces -----------------------------------------------------------------------------------------


def _other_namespaces(context: Context) -> Iterator[Finding]:
    """Mounts at places below the root that are there in another namespace and not here."""
    lines: dict[str, list[str]] = {}
    for foreign in context.survey.others.mounts:
        path = foreign.mount.path
        if path.startswith(f"{context.survey.root}/") and not context.survey.index.at(path):
            lines.setdefault(path, []).append(f"process {foreign.pid} ({foreign.command}): {_told(foreign.mount)}")
    for path, evidence in lines.items():
        uid = _pod_of(context, path)
        yield Finding(
            OTHER_NAMESPACE,
            Severity.WARNING,
            path,
            uid,
            tuple(shortened(evidence)),
            advice="end the process, or restart its service, to set the volume free",
        )
