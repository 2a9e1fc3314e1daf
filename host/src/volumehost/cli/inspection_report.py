"""An inspection as text and as plain data: what ``inspect`` prints, and parts of it ``repair``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from volumehost.cli.tables import format_table, printable

if TYPE_CHECKING:
    from volumehost.inspection.report import (
        DeviceReport,
        Finding,
        Inspection,
        MountFacts,
        PodReport,
        VolumeReport,
        Witnesses,
    )

_OWNERS = {"volumehost": "the root directory of volumehost", "kubelet": "the root directory of a kubelet"}
_POD_WORDS = {"unknown": "not known whose"}


# --- text -----------------------------------------------------------------------------------------------------


def heading(inspection: Inspection) -> str:
    """Whose directory it is, and where pods are known from."""
    sources = ", ".join(inspection.sources) or "nowhere"
    return f"{printable(inspection.root_dir)}: {_OWNERS[inspection.kind]}; pods are known from: {sources}\n"


def tables(inspection: Inspection) -> str:
    """A line for each volume of each pod, then one for each volume of the node."""
    text = ""
    rows = [row for pod in inspection.pods for row in _pod_rows(pod)]
    if rows:
        text += "\n" + format_table(("pod", "volume", "plugin", "state", "mounted", "path"), rows)
    rows = [_device_row(device, inspection) for device in inspection.devices]
    if rows:
        text += "\n" + format_table(("on the node", "state", "mounted", "used by", "path"), rows)
    return text


def _pod_rows(pod: PodReport) -> Iterator[tuple[str, ...]]:
    label = pod.label if pod.state == "known" else f"{pod.label} ({_POD_WORDS.get(pod.state, pod.state)})"
    for volume in pod.volumes:
        yield (
            label,
            volume.name,
            volume.driver or volume.plugin,
            volume.state,
            _mounted(volume.mounts),
            volume.mount_path,
        )
    if not pod.volumes:
        yield label, "", "", "", "", ""


def _device_row(device: DeviceReport, inspection: Inspection) -> tuple[str, ...]:
    pods = [inspection.pod(uid) for uid in device.used_by]
    labels = [pod.label for pod in pods if pod is not None]
    return device.driver or device.plugin, device.state, _mounted(device.mounts), ", ".join(labels), device.path


def _mounted(mounts: Sequence[MountFacts]) -> str:
    """The mount on top, and how many more there are at its place."""
    if not mounts:
        return ""
    top = mounts[-1]
    more = sum(mount.path == top.path for mount in mounts) - 1
    return f"{top.fs_type} from {top.source}" + (f" and {more} below it" if more else "")


def finding_lines(finding: Finding, inspection: Inspection) -> Iterator[str]:
    """What was found, what was seen, what it means, what can be done."""
    from volumehost.inspection.kinds import KINDS

    kind = KINDS[finding.kind]
    pod = inspection.pod(finding.pod_uid) if finding.pod_uid else None
    whose = f" (pod {pod.label})" if pod is not None and pod.name else ""
    yield f"{finding.severity}: {finding.kind} {printable(finding.subject)}{printable(whose)}"
    yield f"  {kind.meaning}"
    yield from (f"  - {printable(line)}" for line in finding.evidence)
    if finding.advice:
        yield f"  to do: {printable(finding.advice)}"
    elif kind.repair:
        yield f"  repair: {kind.repair}"


# --- data -----------------------------------------------------------------------------------------------------


def inspection_data(inspection: Inspection) -> dict[str, Any]:
    """The documented shape."""
    return {
        "rootDir": text(inspection.root_dir),
        "kind": str(inspection.kind),
        "bootID": inspection.boot_id,
        "atWork": text(inspection.at_work),
        "sources": list(inspection.sources),
        "notes": [text(note) for note in inspection.notes],
        "pods": [_pod_data(pod) for pod in inspection.pods],
        "devices": [_device_data(device) for device in inspection.devices],
        "findings": [_finding_data(finding) for finding in inspection.findings],
    }


def _pod_data(pod: PodReport) -> dict[str, Any]:
    return {
        "uid": text(pod.uid),
        "namespace": text(pod.namespace),
        "name": text(pod.name),
        "namedBy": pod.named_by,
        "state": str(pod.state),
        "volumes": [_volume_data(volume) for volume in pod.volumes],
    }


def _volume_data(volume: VolumeReport) -> dict[str, Any]:
    return {
        "volume": text(volume.name),
        "plugin": text(volume.plugin),
        "driver": text(volume.driver),
        "handle": text(volume.handle),
        "mode": volume.mode,
        "state": volume.state,
        "path": text(volume.path),
        "mountPath": text(volume.mount_path),
        "mounts": [_mount_data(mount) for mount in volume.mounts],
        "witnesses": _witnesses_data(volume.witnesses),
    }


def _device_data(device: DeviceReport) -> dict[str, Any]:
    return {
        "plugin": text(device.plugin),
        "driver": text(device.driver),
        "handle": text(device.handle),
        "mode": device.mode,
        "state": device.state,
        "path": text(device.path),
        "usedBy": [text(uid) for uid in device.used_by],
        "mounts": [_mount_data(mount) for mount in device.mounts],
        "witnesses": _witnesses_data(device.witnesses),
    }


def _mount_data(mount: MountFacts) -> dict[str, Any]:
    return {
        "path": text(mount.path),
        "source": text(mount.source),
        "fsType": text(mount.fs_type),
        "options": [text(option) for option in mount.options],
        "root": text(mount.root),
        "device": mount.device,
        "mountID": mount.mount_id,
    }


def _witnesses_data(witnesses: Witnesses) -> dict[str, Any]:
    return {
        "journal": text(witnesses.journal),
        "boot": witnesses.boot,
        "mountTable": witnesses.mount_table,
        "directory": witnesses.directory,
        "record": text(witnesses.record),
        "loopDevice": text(witnesses.loop_device),
        "disagreements": [text(line) for line in witnesses.disagreements],
    }


def _finding_data(finding: Finding) -> dict[str, Any]:
    from volumehost.inspection.kinds import KINDS

    kind = KINDS[finding.kind]
    return {
        "kind": finding.kind,
        "severity": str(finding.severity),
        "subject": text(finding.subject),
        "podUID": text(finding.pod_uid),
        "evidence": [text(line) for line in finding.evidence],
        "meaning": kind.meaning,
        "repair": kind.repair,
        "advice": text(finding.advice),
    }


def text(value: str) -> str:
    r"""A name from disk as text for programs: bytes that are no UTF-8 become ``\xNN``."""
    try:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half of a character, from a record that was no text
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
