"""Volumes and claims in the API, counted at each scrape as the PV controller does (METRIC-09)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from volumehost.metrics.families import family
from volumehost.metrics.node_state import NOT_AVAILABLE, Counts
from volumehost.node.execution.operation_metrics import full_plugin_name
from volumehost.spec import FILESYSTEM_MODE, Spec

if TYPE_CHECKING:
    from prometheus_client import Metric

    from volumehost.api.client import ApiClient
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim
    from volumehost.loader.manager import VolumePluginManager


def claim_families(api: ApiClient, plugins: VolumePluginManager) -> list[Metric]:
    """All of them.

    :raises ApiError: the API does not tell.
    """
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

    volumes, claims = api.list(PersistentVolume).items, api.list(PersistentVolumeClaim).items
    return [*_of_volumes(volumes, plugins), *_of_claims(claims)]


def _of_volumes(volumes: Iterable[PersistentVolume], plugins: VolumePluginManager) -> Iterator[Metric]:
    total: Counts = Counter()
    bound: Counts = Counter()
    unbound: Counts = Counter()
    names = _PluginNames(plugins)
    for volume in volumes:
        total[names.of(volume), volume.spec.volume_mode or FILESYSTEM_MODE] += 1
        (bound if volume.status.phase == "Bound" else unbound)[volume.spec.storage_class_name or "",] += 1
    yield family("pv_collector_total_pv_count", total)
    yield family("pv_collector_bound_pv_count", bound)
    yield family("pv_collector_unbound_pv_count", unbound)


def _of_claims(claims: Iterable[PersistentVolumeClaim]) -> Iterator[Metric]:
    bound: Counts = Counter()
    unbound: Counts = Counter()
    for claim in claims:
        spec = claim.spec
        labels = (claim.metadata.namespace, spec.storage_class_name or "", spec.volume_attributes_class_name or "")
        (bound if claim.status.phase == "Bound" else unbound)[labels] += 1
    yield family("pv_collector_bound_pvc_count", bound)
    yield family("pv_collector_unbound_pvc_count", unbound)


class _PluginNames:
    """The plugin of each kind of source, asked once per scrape."""

    def __init__(self, plugins: VolumePluginManager) -> None:
        self._plugins = plugins
        self._known: dict[str, str] = {}

    def of(self, volume: PersistentVolume) -> str:
        spec = Spec.from_persistent_volume(volume, read_only=False)
        source = spec.source()
        if source not in self._known:
            self._known[source] = self._find(spec)
        name = self._known[source]
        return full_plugin_name(name, spec) if name != NOT_AVAILABLE else name

    def _find(self, spec: Spec) -> str:
        try:
            return self._plugins.find_plugin_by_spec(spec).name
        except Exception:  # noqa: BLE001 - a volume without a plugin, or one whose plugin misbehaves, counts too
            return NOT_AVAILABLE
