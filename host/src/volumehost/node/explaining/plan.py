"""Finds out what would be done to mount or unmount a pod, without doing it: for ``volumehost plan``.

It works on a copy of the store, in which objects can be tried, and asks plugins only what has no effect: whether they
support a volume, its name, whether it is attached. It takes no lock and writes nothing below the root directory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from volumehost.hookspecs import AttachableVolumePlugin
from volumehost.node.explaining import sequence
from volumehost.node.explaining.facts import driver_of
from volumehost.node.explaining.plan_checks import Checks
from volumehost.node.explaining.plan_claims import ClaimTrial
from volumehost.node.explaining.plan_places import Places
from volumehost.node.explaining.plan_provisioning import Trial
from volumehost.node.explaining.planned import PlannedStep, PodPlan, VolumePlan
from volumehost.node.explaining.sequence import Phase, VolumeKind, mount_sequence
from volumehost.node.operations.common import MOUNT_VOLUME
from volumehost.node.populating.pods import containers_of, used_volumes, workload_has_ended
from volumehost.node.populating.resolver import Resolver

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod, Volume
    from volumehost.api.store import EmbeddedStore
    from volumehost.hosts.node_host import NodeHost
    from volumehost.loader.events import DynamicPluginProber
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.node.state.desired import VolumeUse
    from volumehost.storage_driver import DriverStatus

#: Phases that the claim's trial tells of, or that nothing is done in.
_TOLD_APART = frozenset({sequence.CLAIM, sequence.PROVISION, sequence.BIND, sequence.PLUGIN})


class Planner:
    """Makes plans for pods that are in its ``api``, the copy of the store: what is applied there counts as applied."""

    def __init__(
        self, api: EmbeddedStore, host: NodeHost, plugins: VolumePluginManager, statuses: Sequence[DriverStatus]
    ) -> None:
        self.api = api
        self._host = host
        self._plugins = plugins
        self._places = Places(host.layout)
        self._claims = ClaimTrial(api, plugins, statuses, host.get_node_name())
        self._checks = Checks(api, host, self._places, statuses)
        self._resolver = Resolver(plugins, host, time.monotonic)
        self._known = _uids(api)

    def mount(self, pod: Pod) -> PodPlan:
        """The plan to mount a pod that is in :attr:`api`."""
        used = used_volumes(pod)
        trials = {
            volume.name: self._claims.of_volume(volume, pod) for volume in pod.spec.volumes if volume.name in used
        }
        uses = self._resolver.resolve(pod, used)
        volumes = []
        for volume in pod.spec.volumes:
            use = uses.get(volume.name)
            if use is None:
                volumes.append(VolumePlan(volume.name, "unused"))
            elif isinstance(use, Exception):
                volumes.append(self._unresolved(volume, trials[volume.name], use))
            else:
                volumes.append(self._resolved(volume, pod, trials[volume.name], use))
        problems = list(self._of_pod(pod))
        plan = PodPlan(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            action="mount",
            works=not problems and not any(volume.problems for volume in volumes),
            volumes=tuple(volumes),
            problems=tuple(problems),
            notes=tuple(self._notes()),
        )
        return self._without_made_up_names(plan)

    def unmount(self, name: str, namespace: str) -> PodPlan:
        """The plan to unmount a pod.

        :param name: its name, or its uid when only the disk knows it.
        :raises ObjectNotFoundError: neither the store nor the disk knows the pod.
        """
        from volumehost.node.explaining.plan_unmount import plan_unmount

        return plan_unmount(self.api, self._host, name, namespace)

    # --- one volume -------------------------------------------------------------------------------------------------

    def _unresolved(self, volume: Volume, trial: Trial, error: Exception) -> VolumePlan:
        plugin, problems, steps = trial.plugin, list(trial.problems), list(trial.steps)
        if plugin is not None:
            kind = VolumeKind(claim=trial.claim, plugin=plugin.name, node=self._host.get_node_name())
            steps += _steps(mount_sequence(kind), _TOLD_APART)
        elif not problems:
            problems.append(str(error))
        return VolumePlan(
            volume=volume.name,
            state="blocked" if problems else "to-do",
            plugin=plugin.name if plugin is not None else "",
            distribution=plugin.origin.distribution if plugin is not None else "",
            version=plugin.origin.version if plugin is not None else "",
            source=f"claim {trial.claim}" if trial.claim else "",
            steps=tuple(steps),
            problems=tuple(problems),
            notes=("what follows depends on the volume that the plugin makes",) if plugin is not None else (),
        )

    def _resolved(self, volume: Volume, pod: Pod, trial: Trial, use: VolumeUse) -> VolumePlan:
        known = self._places.status(use)
        problems = [*trial.problems, *self._checks.problems(use, pod)]
        notes = self._checks.notes(use)
        notes += [f"the last attempt failed: {known.error}"] if known is not None and known.error else []
        steps: list[PlannedStep] = []
        done = known is not None and known.ready
        if not done:
            staged = self._places.staged_at(use)
            phases = mount_sequence(self._kind(use, pod, trial, staged))
            skipped = {*_TOLD_APART}
            skipped |= {sequence.ATTACH} if self._places.is_attached(use) else set()
            skipped |= {sequence.MOUNT_DEVICE} if staged else set()
            steps = [*trial.steps, *_steps(phases, skipped)]
            words = self._places.ownership_words(use, staged)
            notes += [words] if words else []
        elif use.has_grown and not use.spec.read_only:
            steps = [PlannedStep(sequence.EXPAND, f"grow it to {use.size} bytes while it is used", "volume_fs_resize")]
        elif use.remounts:
            steps = [PlannedStep(sequence.SET_UP, "refresh its content", MOUNT_VOLUME)]
        steps += [PlannedStep("subpath", text) for text in _subpaths(pod, volume.name)] if not done else []
        problems = problems if not done else []
        origin = use.plugin.origin
        return VolumePlan(
            volume=volume.name,
            state="blocked" if problems else "to-do" if steps else "done",
            plugin=use.plugin.name,
            distribution=origin.distribution,
            version=origin.version,
            source=self._source(use, trial),
            steps=tuple(steps),
            problems=tuple(problems),
            notes=tuple([f"mounted at {known.path}", *notes] if done and known is not None else notes),
        )

    def _kind(self, use: VolumeUse, pod: Pod, trial: Trial, staged: str) -> VolumeKind:
        context, volume = pod.spec.security_context, use.spec.volume
        inline = volume.csi.driver if volume is not None and volume.csi is not None else ""
        persistent = use.spec.persistent_volume
        return VolumeKind(
            claim=trial.claim,
            persistent_volume=persistent.metadata.name if persistent is not None else "",
            plugin=use.plugin.name,
            by=driver_of(persistent, inline),
            node=self._host.get_node_name(),
            block=use.is_block,
            attaches=use.attachable and use.plugin.supports(AttachableVolumePlugin),
            mounts_device=use.device_mountable,
            stage_path=staged or self._places.stage_path(use) if use.device_mountable or use.is_block else "",
            path=self._places.path(use),
            group=use.fs_group,
            group_policy=(context.fs_group_change_policy or "") if context is not None else "",
            grow_to=f"{use.size} bytes (from {use.claim_size})" if use.has_grown else "",
        )

    def _source(self, use: VolumeUse, trial: Trial) -> str:
        persistent = use.spec.persistent_volume
        volume = use.spec.volume
        inline = volume.csi.driver if volume is not None and volume.csi is not None else ""
        name = f"persistent volume {persistent.metadata.name}" if persistent is not None and not trial.made_up else ""
        parts = (f"claim {trial.claim}" if trial.claim else "", name, driver_of(persistent, inline))
        return ", ".join(part for part in parts if part)

    # --- the pod ----------------------------------------------------------------------------------------------------

    def _of_pod(self, pod: Pod) -> Iterator[str]:
        node = self._host.get_node_name()
        if self._places.has_ended(pod.metadata.uid):
            yield "it is being unmounted: wait until it is gone"
        elif pod.metadata.deletion_timestamp is not None:
            yield "it is being deleted: unmount it first"
        elif workload_has_ended(pod):
            yield f"its workload has ended ({pod.status.phase or 'by annotation'})"
        if pod.spec.node_name not in {"", node}:
            yield f"it is for node {pod.spec.node_name}, and this is {node}"

    def _notes(self) -> Iterator[str]:
        yield from self._places.notes
        yield from (f"a plugin could not be loaded: {error}" for error in self._plugins.errors())

    def _without_made_up_names(self, plan: PodPlan) -> PodPlan:
        """UIDs that this copy of the store has made up would mislead."""
        text = msgspec.json.encode(plan).decode()
        for uid, words in _uids(self.api).items():
            if uid not in self._known:
                text = text.replace(uid, words)
        return msgspec.json.decode(text, type=PodPlan)


@contextmanager
def planner(
    root_dir: str | os.PathLike[str],
    *,
    node_name: str | None = None,
    source: ApiClient | None = None,
    plugins: Sequence[object] = (),
    prober: DynamicPluginProber | None = None,
) -> Iterator[Planner]:
    """A planner for the root directory, which need not exist.

    Plugins are loaded and shut down again. What drivers of this host bring with them (their CSIDriver, a storage class)
    counts as applied, as it would be; not so in a cluster, where it is for the cluster's administrator to apply it.

    :param source: the API objects of a cluster; by default those of the embedded store in the root directory.
    :raises RootDirectoryError: the path cannot be a root directory, or its journal cannot be read.
    :raises StoreError: the store cannot be read.
    """
    from volumehost.api.copied_store import copied_store
    from volumehost.api.scratch_store import scratch_store
    from volumehost.control.provisioning.provided import provide_all
    from volumehost.hosts.layout import Layout
    from volumehost.hosts.root_dir import check_readable, resolve_root_dir
    from volumehost.hosts.standalone_host import StandaloneHost
    from volumehost.loader.manager import VolumePluginManager
    from volumehost.loader.prober import EntryPointProber
    from volumehost.loader.storage_drivers import CombinedStorageDrivers, storage_drivers_of

    root = resolve_root_dir(os.fspath(root_dir))
    check_readable(root)
    with scratch_store(Layout(root).store_file()) if source is None else copied_store(source) as api:
        manager = VolumePluginManager()
        host = StandaloneHost(root, node_name=node_name, api=api, plugin_manager=manager)
        try:
            manager.init_plugins(plugins, prober or EntryPointProber(), host)
            statuses = CombinedStorageDrivers(storage_drivers_of(manager.loaded_plugins())).statuses()
            made = Planner(api, host, manager, statuses)
            if source is None:
                provide_all(api, statuses)
            yield made
        finally:
            manager.close()


def _steps(phases: Sequence[Phase], skipped: Sequence[str] | set[str] | frozenset[str]) -> list[PlannedStep]:
    return [
        PlannedStep(phase.name, phase.text, next(iter(sorted({name for name, _ in phase.steps})), ""))
        for phase in phases
        if phase.name not in skipped
    ]


def _subpaths(pod: Pod, volume: str) -> Iterator[str]:
    for container in containers_of(pod):
        for mount in container.volume_mounts:
            path = mount.sub_path or mount.sub_path_expr
            if mount.name == volume and path:
                yield f"for container {container.name}: bind its subPath {path}, made if it is not there"


def _uids(api: EmbeddedStore) -> dict[str, str]:
    """The uid of each pod and claim, and what stands for it where it is not known."""
    from volumehost.api.objects import PersistentVolumeClaim, Pod

    pods = {pod.metadata.uid: "<uid of the pod>" for pod in api.list(Pod).items}
    return pods | {claim.metadata.uid: "<uid of the claim>" for claim in api.list(PersistentVolumeClaim).items}
