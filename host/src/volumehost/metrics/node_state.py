"""What a volume manager has and wants, looked up at each scrape (METRIC-04, -05, -07, -08)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from volumehost.metrics.families import family, single
from volumehost.node.execution.operation_metrics import full_name_of_mounted, full_plugin_name
from volumehost.node.operations.selinux import ADMITTED
from volumehost.node.state.states import MountState

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.node.assembly import NodeParts
    from volumehost.node.manager import VolumeManager

DESIRED: Final = "desired_state_of_world"
ACTUAL: Final = "actual_state_of_world"

#: What stands for a plugin whose name is not known.
NOT_AVAILABLE: Final = "N/A"

Counts = Counter[tuple[str, ...]]


def node_families(manager: VolumeManager) -> Iterator[Metric]:
    """All of them. Nothing is asked of a plugin, a mount or the API."""
    parts = manager.parts
    volumes, in_use, attachments = _volumes(parts)
    yield family("volume_manager_total_volumes", volumes)
    yield family("storage_count_attachable_volumes_in_use", in_use)
    yield family("attachdetach_controller_total_volumes", attachments)
    found = parts.found
    yield single("reconstruct_volume_operations_total", found.from_journal + found.from_directories)
    yield single("reconstruct_volume_operations_errors_total", found.not_rebuilt)
    orphans = manager.orphan_care.counts
    yield single("orphan_pod_cleaned_volumes", orphans.candidates)
    yield single("orphan_pod_cleaned_volumes_errors", orphans.errors)
    yield single("volumehost_orphaned_pods_removed_total", orphans.removed)
    yield from _selinux(parts.populator.selinux_counts())


def _selinux(counts: Mapping[tuple[str, str, str, str], int]) -> Iterator[Metric]:
    """SEL-06. The metrics of containers and pods have no label for the plugin."""
    for part in ("container", "pod_context_mismatch", "volume_context_mismatch"):
        for kind in ("errors", "warnings"):
            values: Counts = Counter()
            for (counted, of_kind, mode, plugin), number in counts.items():
                if (counted, of_kind) == (part, kind):
                    values[(mode, plugin) if part == "volume_context_mismatch" else (mode,)] += number
            yield family(f"volume_manager_selinux_{part}_{kind}_total", values)
    admitted: dict[tuple[str, ...], float]
    admitted = {(mode, plugin): number for (part, _, mode, plugin), number in counts.items() if part == ADMITTED}
    yield family("volume_manager_selinux_volumes_admitted_total", admitted)


def _volumes(parts: NodeParts) -> tuple[Counts, Counts, Counts]:
    """Volumes of pods by plugin and state; attachable ones that pods use; attachments that are wanted and that are."""
    volumes: Counts = Counter()
    attachable: dict[str, str] = {}
    desired, actual = parts.services.desired, parts.services.actual
    for record in parts.populator.records():
        for use in desired.uses_of_pod(record.uid):
            plugin = full_plugin_name(use.plugin.name, use.spec)
            volumes[plugin, DESIRED] += 1
            if use.attachable:
                attachable[use.volume] = plugin
    for uid in actual.pods():
        for mount in actual.mounts_of_pod(uid):
            if mount.state is MountState.MOUNTED:
                volumes[full_name_of_mounted(mount) or NOT_AVAILABLE, ACTUAL] += 1
    wanted = Counter(attachable.values())
    node = parts.services.host.get_node_name()
    in_use: Counts = Counter({(node, plugin): number for plugin, number in wanted.items()})
    attachments: Counts = Counter({(plugin, DESIRED): number for plugin, number in wanted.items()})
    for name in actual.attached_volumes():
        volume = actual.get_volume(name)
        if volume is not None:
            attachments[full_plugin_name(volume.plugin_name, volume.spec) or NOT_AVAILABLE, ACTUAL] += 1
    return volumes, in_use, attachments
