"""The steps that take a volume off the node when no pod has it any more."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from volumehost.inspection.context import Context
from volumehost.inspection.pod_directories import CSI
from volumehost.inspection.repairing.plan import Action, Step, told_step
from volumehost.spec import BLOCK_MODE

if TYPE_CHECKING:
    from volumehost.inspection.device_directories import DeviceEntry
    from volumehost.inspection.report import DeviceReport


def device_repair(context: Context, device: DeviceReport, plugins: Collection[str]) -> Iterator[Step]:
    """Unstage through the plugin, so that the driver hears of it; plainly where that is not there."""
    entry = context.devices_by_mount.get(device.path)
    action = Action.UNMAP_DEVICE if device.mode == BLOCK_MODE else Action.UNSTAGE
    name = entry.name if entry is not None else ""
    yield told_step(
        action, device.path, plugins, plugin=device.plugin, driver=device.driver, name=name, place=device.path
    )
    if entry is not None and device.plugin == CSI:
        yield Step(Action.REMOVE_DEVICE, entry.directory)
    records = _records_of(context, device, entry)
    if records:
        yield Step(Action.END_RECORDS, records[0][0], records=records)


def _records_of(context: Context, device: DeviceReport, entry: DeviceEntry | None) -> tuple[tuple[str, str], ...]:
    """Of the journal's records those of this device; an attachment in one stays for whoever detaches."""
    handle = f"{device.plugin}/{device.driver}^{device.handle}" if device.handle else ""
    place = entry.mount_path if entry is not None else device.path
    return tuple(
        (name, "")
        for name, record in context.device_records.items()
        if name and (name == handle or record.get("dmpath") == place)
    )
