"""Tells each volume that is mounted or mapped for the whole node, and which pods have it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from volumehost.inspection.context import Context
from volumehost.inspection.device_directories import DeviceEntry
from volumehost.inspection.mounts import mount_facts
from volumehost.inspection.report import DeviceReport, PodReport, Witnesses
from volumehost.inspection.tree import EntryKind
from volumehost.node.journal.format import text_of
from volumehost.spec import BLOCK_MODE, FILESYSTEM_MODE

if TYPE_CHECKING:
    from volumehost.host_services import MountPoint

#: States of volumes in which a pod has, or may have, what its record says.
_HAVING: Final = frozenset({"mounted", "hung", "corrupted", "bare", "changing", "recorded"})


def device_reports(context: Context, pods: Iterable[PodReport]) -> list[DeviceReport]:
    """Those at known places, then whatever else is mounted below ``plugins``."""
    uses = _Uses(context, pods)
    found = [_known(context, uses, device) for device in context.survey.devices]
    places = {place for device in context.survey.devices for place in (device.mount_path, *device.places)}
    return found + [_other(context, uses, mounts) for mounts in _elsewhere(context, places)]


class _Uses:
    """Which pods have which device: by records, by what is mounted for them, by the journal."""

    def __init__(self, context: Context, pods: Iterable[PodReport]) -> None:
        self._by_handle: dict[tuple[str, str], set[str]] = {}
        self._by_part: dict[tuple[str, str], set[str]] = {}
        self._by_name: dict[tuple[str, str], set[str]] = {}
        for pod in pods:
            for volume in pod.volumes:
                if volume.state not in _HAVING:
                    continue
                if volume.driver:
                    self._by_handle.setdefault((volume.driver, _digest(volume.handle)), set()).add(pod.uid)
                self._by_name.setdefault((volume.plugin, volume.name), set()).add(pod.uid)
                for mount in volume.mounts:
                    for part in _upwards(mount.root):
                        self._by_part.setdefault((mount.device, part), set()).add(pod.uid)
        self._by_record: dict[str, list[str]] = {}
        for uid, records in context.records_by_pod.items():
            for record in records:
                self._by_record.setdefault(text_of(record, "v"), []).append(uid)

    def of_mount(self, mount: MountPoint) -> set[str]:
        """Pods for which what is mounted there, or a part of it, is mounted."""
        return self._by_part.get((f"{mount.major}:{mount.minor}", mount.root), set())

    def of_volume(self, device: DeviceEntry) -> Iterator[str]:
        """Pods whose records name the volume."""
        if device.record is not None and device.record.handle:
            yield from self._by_handle.get((device.driver, _digest(device.record.handle)), ())
        else:
            yield from self._by_handle.get((device.driver, device.name), ())
        if device.mode == BLOCK_MODE:
            yield from self._by_name.get((device.plugin, device.name), ())
        if device.record is not None and device.record.handle:
            yield from self._by_record.get(f"{device.plugin}/{device.driver}^{device.record.handle}", ())


def _known(context: Context, uses: _Uses, device: DeviceEntry) -> DeviceReport:
    mounts = _mounts_of(context, device)
    used_by = {*uses.of_volume(device), *(uid for mount in mounts for uid in uses.of_mount(mount))}
    if device.mode == BLOCK_MODE:
        used_by |= {uid for uid in device.pods if uid in context.entries}
    return DeviceReport(
        plugin=device.plugin,
        path=device.mount_path,
        mode=device.mode,
        state=_state(context, mounts, used_by),
        mounts=tuple(mount_facts(mount) for mount in mounts),
        driver=device.driver,
        handle=device.record.handle if device.record is not None else "",
        used_by=tuple(sorted(used_by)),
        witnesses=Witnesses(
            journal=_journal_word(context, device),
            boot="this" if context.same_boot else "earlier",
            mount_table=_mount_table(mounts),
            directory=device.entry.kind.value,
            record=device.record.word if device.record is not None else "",
        ),
    )


def _mounts_of(context: Context, device: DeviceEntry) -> list[MountPoint]:
    index = context.survey.index
    if device.mode != BLOCK_MODE:
        return index.at(device.mount_path)
    return [mount for place in (device.mount_path, *device.places) for mount in index.below(place)]


def _state(context: Context, mounts: list[MountPoint], used_by: set[str]) -> str:
    if not mounts:
        # A driver may stage without a mount, or not at all: only what nobody uses is left over.
        return "directory" if used_by else "leftover"
    if not used_by:
        return "unused"
    answer = context.survey.answers.get(mounts[-1].path)
    if answer is None or not (answer.dead or answer.hung):
        return "mounted"
    return "hung" if answer.hung else "corrupted"


def _mount_table(mounts: list[MountPoint]) -> str:
    if len({mount.path for mount in mounts}) < len(mounts):
        return "stacked"
    return "mounted" if mounts else "not mounted"


def _journal_word(context: Context, device: DeviceEntry) -> str:
    if device.record is None or not device.record.handle:
        return ""
    record = context.device_records.get(f"{device.plugin}/{device.driver}^{device.record.handle}")
    return text_of(record, "dev") if record is not None else ""


def _elsewhere(context: Context, places: set[str]) -> Iterator[list[MountPoint]]:
    """Mounts below ``plugins`` at no known place, the lowest of a place first."""
    index, base = context.survey.index, f"{context.survey.root}/plugins"
    for path in index.paths():
        if path.startswith(f"{base}/") and not _is_in_one(path, places):
            yield index.at(path)


def _is_in_one(path: str, places: set[str]) -> bool:
    while path:
        if path in places:
            return True
        path = path.rpartition("/")[0]
    return False


def _other(context: Context, uses: _Uses, mounts: list[MountPoint]) -> DeviceReport:
    """A plugin of others keeps what it mounts for the node below its own name."""
    path = mounts[-1].path
    parts = path.removeprefix(f"{context.survey.root}/plugins/").split("/")
    plugin = "/".join(parts[:2]) if len(parts) > 2 else parts[0]
    used_by = {uid for mount in mounts for uid in uses.of_mount(mount)}
    recorded = [text_of(record, "dev") for record in context.device_records.values() if record.get("dmpath") == path]
    return DeviceReport(
        plugin=plugin,
        path=path,
        mode=FILESYSTEM_MODE,
        state=_state(context, mounts, used_by),
        mounts=tuple(mount_facts(mount) for mount in mounts),
        used_by=tuple(sorted(used_by)),
        witnesses=Witnesses(
            journal=recorded[0] if recorded else "",
            boot="this" if context.same_boot else "earlier",
            mount_table=_mount_table(mounts),
            directory=EntryKind.MOUNT.value,
        ),
    )


def _upwards(path: str) -> Iterator[str]:
    """The path and everything above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def _digest(handle: str) -> str:
    return hashlib.sha256(handle.encode("utf-8", "surrogatepass")).hexdigest()
