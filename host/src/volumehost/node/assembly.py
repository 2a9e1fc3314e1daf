"""Puts the parts of a volume manager together, and takes them apart again."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.errors import VolumeHostError
from volumehost.hosts.lock import RootDirLock
from volumehost.hosts.node_host import NodeHost
from volumehost.hosts.node_name import keep_node_name
from volumehost.hosts.root_dir import prepare_root_dir
from volumehost.hosts.standalone_host import StandaloneHost
from volumehost.loader.manager import VolumePluginManager
from volumehost.node.execution.executor import HURRY_SECONDS, Executor
from volumehost.node.execution.lanes import UPKEEP
from volumehost.node.execution.pending import PendingOperations
from volumehost.node.execution.timers import Timers
from volumehost.node.execution.workers import WorkerPool
from volumehost.node.journal.journal import Journal, read_boot_id
from volumehost.node.local_control import LocalControl
from volumehost.node.operations.common import MAP_VOLUME, MOUNT_VOLUME, Services, StepObserver
from volumehost.node.populating.claim_following import ClaimFollowing
from volumehost.node.populating.content_following import ContentFollowing
from volumehost.node.populating.populator import Populator
from volumehost.node.reconciler import DirtyKeys, Reconciler
from volumehost.node.restart.reconstruct import Reconstruction, reconstruct, resolve_attachability
from volumehost.node.restart.second_look import SecondLook
from volumehost.node.state.actual import ActualState
from volumehost.node.state.desired import DesiredState
from volumehost.node.state.recorded_spec import read_spec
from volumehost.node.status.live import LiveStatus
from volumehost.node.waiting import Waits

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.host_services import MountInterface
    from volumehost.hosts.tokens import Signer
    from volumehost.loader.events import DynamicPluginProber
    from volumehost.mount.selinux import SELinux
    from volumehost.node.cluster.attachments import ControllerAttachments
    from volumehost.node.execution.operation_metrics import OperationMetrics

logger = logging.getLogger(__name__)

#: How long the end waits for events to be written when the time for it is over, in seconds.
_FLUSH_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """What a manager is made with; see :class:`volumehost.node.manager.VolumeManager`."""

    root_dir: str
    node_name: str | None = None
    plugins: Sequence[object] = ()
    prober: DynamicPluginProber | None = None
    plugin_manager: VolumePluginManager | None = None
    api: ApiClient | None = None
    mounter: MountInterface | None = None
    selinux: SELinux | None = None
    adopt: bool = False
    share_root: bool = False
    observer: StepObserver | None = None
    metrics: OperationMetrics | None = None
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    boot_id: str | None = None
    token_signer: Signer | None = None
    controllers: bool | None = None
    cluster: bool = False

    @property
    def standalone(self) -> bool:
        """Whether this manager is the whole cluster: it binds, provisions and attaches by itself."""
        if self.cluster:
            return False
        return self.controllers if self.controllers is not None else self.api is None


@dataclass(frozen=True, slots=True)
class NodeParts:
    """A manager at work."""

    host: NodeHost
    services: Services
    pending: PendingOperations
    pool: WorkerPool
    timers: Timers
    populator: Populator
    reconciler: Reconciler
    waits: Waits
    claims: ClaimFollowing
    contents: ContentFollowing
    status: LiveStatus
    lock: RootDirLock
    found: Reconstruction
    second_look: SecondLook
    owns_api: bool

    @property
    def in_cluster(self) -> bool:
        """Whether pods, claims and attachments are a cluster's: nothing is done to these objects here."""
        return self.services.attachments is not None

    def later(self, seconds: float, function: Callable[[], None], *, lane: str = UPKEEP) -> None:
        """Call the function on a worker in ``seconds``: it may take its time, which a timer's function must not."""
        _later(self.pool, self.timers, seconds, function, lane)

    def close(self, grace: float) -> None:
        """Start nothing more, wait at most ``grace`` seconds for what runs, and let go of the root directory.

        Mounts stay. While an operation still hangs the lock is kept, until the process ends: nobody else may work on
        the same volume meanwhile.
        """
        self.claims.stop()
        self.contents.stop()
        if self.services.attachments is not None:
            self.services.attachments.stop()
        self.reconciler.stop()
        self.timers.stop()
        self.pending.stop_running()
        end_by = self.services.clock() + grace
        drained = self.pool.stop(grace)
        drained = self.services.control.stop(max(0.0, end_by - self.services.clock())) and drained
        if drained:
            drained = self._shut_plugins_down(max(_FLUSH_SECONDS, end_by - self.services.clock()))
        self.host.flush_events(max(_FLUSH_SECONDS, end_by - self.services.clock()) if drained else _FLUSH_SECONDS)
        self.services.journal.close()
        if self.owns_api and drained:
            with contextlib.suppress(VolumeHostError):  # what cannot even be opened is closed
                _close(self.host.get_kube_client())
        if drained:
            self.lock.release()
        else:
            steps = [f"{entry.name} on {entry.key} at step {entry.step}" for entry in self.pending.running()
                     if entry.thread is not None]  # fmt: skip
            logger.warning("the root directory stays locked until this process ends: %s", "; ".join(steps))

    def _shut_plugins_down(self, seconds: float) -> bool:
        """Whether all have ended in time: one whose ``shutdown`` hangs may still be at something."""
        from volumehost.mount.deadline import DeadlineExceededError, DeadlineRunner

        try:
            errors = DeadlineRunner().run(
                self.services.plugins.close, timeout=seconds, what="shutting down the plugins"
            )
        except DeadlineExceededError as error:
            logger.warning("the plugins have not shut down: %s", error)
            return False
        for each in errors:
            logger.warning("%s", each)
        return True


def start(settings: Settings) -> NodeParts:
    """Prepare and lock the root directory, load plugins, read the journal, find out what is there.

    :raises RootDirectoryError: the root directory cannot be used, or another manager works on it.
    """
    root_dir = prepare_root_dir(settings.root_dir)
    lock = RootDirLock(root_dir)
    lock.acquire()
    try:
        return _start_locked(settings, root_dir, lock)
    except BaseException:
        lock.release()
        raise


def _start_locked(settings: Settings, root_dir: str, lock: RootDirLock) -> NodeParts:
    plugins = settings.plugin_manager or VolumePluginManager()
    host = _kind_of_host(settings)(
        root_dir,
        node_name=settings.node_name,
        api=settings.api if settings.api is not None else lambda: _open_store(root_dir),
        plugin_manager=plugins,
        mounter=settings.mounter,
        selinux=settings.selinux,
        token_signer=settings.token_signer,
    )
    if settings.share_root:
        _share(host, root_dir)
    boot_id = settings.boot_id if settings.boot_id is not None else read_boot_id()
    journal = Journal(host.layout.journal_file(), boot_id=boot_id, wall_clock=settings.wall_clock)
    contents = journal.open()
    try:
        keep_node_name(root_dir, host.get_node_name(), lambda: any(record.v for record in contents.for_restart()))
    except BaseException:
        journal.close()
        raise
    for error in plugins.init_plugins(settings.plugins, settings.prober or _default_prober(), host):
        logger.warning("%s", error)
    dirty = DirtyKeys()
    services = Services(
        plugins=plugins,
        host=host,
        desired=DesiredState(dirty.mark),
        actual=ActualState(dirty.mark, lambda name: read_spec(journal, name)),
        journal=journal,
        timers=Timers(settings.clock),
        clock=settings.clock,
        wall_clock=settings.wall_clock,
        control=LocalControl(host, plugins, enabled=settings.standalone, metrics=settings.metrics),
        attachments=_attachments(host) if settings.cluster else None,
        observer=settings.observer,
    )
    found = reconstruct(services, contents)
    resolve_attachability(services, standalone=settings.standalone)
    return _wire(settings, services, dirty, found, lock)


def _wire(
    settings: Settings, services: Services, dirty: DirtyKeys, found: Reconstruction, lock: RootDirLock
) -> NodeParts:
    pending = PendingOperations(settings.clock)
    pool = WorkerPool(settings.clock)
    timers = services.timers
    waits = Waits(settings.clock, impatient=pool.hurry)
    populator = Populator(services, pending, adopt=settings.adopt)
    for pod_uid in found.ended_pods:
        populator.end(pod_uid)
    executor = Executor(services, pending, pool, timers, settings.metrics)
    reconciler = Reconciler(dirty, services, executor, populator, timers, notify=waits.notify)
    control = services.control
    control.volume_in_use = lambda volume: _is_in_use(services, pending, volume)
    if services.attachments is not None:
        services.attachments.complete = lambda: populator.complete
        services.attachments.drains = lambda: populator.drains
        services.attachments.changed = reconciler.attachments_changed
    control.driver_changed = lambda name: _later(pool, timers, 0, lambda: reconciler.driver_changed(name))

    def later(function: Callable[[], None]) -> None:
        _later(pool, timers, 0, function)

    api = services.host.get_kube_client
    claims = ClaimFollowing(api, control, populator, timers, later)
    return NodeParts(
        host=services.host,
        services=services,
        pending=pending,
        pool=pool,
        timers=timers,
        populator=populator,
        reconciler=reconciler,
        waits=waits,
        claims=claims,
        contents=ContentFollowing(api, timers, later, at_once=settings.adopt),
        status=LiveStatus(services, pending, populator, claims),
        lock=lock,
        found=found,
        second_look=SecondLook(services, pending, found, standalone=settings.standalone),
        owns_api=settings.api is None,
    )


def _kind_of_host(settings: Settings) -> type[NodeHost]:
    if settings.cluster:
        from volumehost.hosts.cluster_host import ClusterHost

        return ClusterHost
    return StandaloneHost if settings.standalone else NodeHost


def _attachments(host: NodeHost) -> ControllerAttachments:
    from volumehost.node.cluster.attachments import ControllerAttachments

    return ControllerAttachments(host.get_node_name(), host.get_kube_client)


def _is_in_use(services: Services, pending: PendingOperations, volume: str) -> bool:
    """Whether the volume is, may be, or is just about to be staged or mounted on this node (BR-46).

    Asked in this order, so that what comes about between the two questions is not missed.
    """
    return pending.runs(volume, {MOUNT_VOLUME, MAP_VOLUME}) or services.actual.is_in_use(volume)


def _later(pool: WorkerPool, timers: Timers, seconds: float, function: Callable[[], None], lane: str = UPKEEP) -> None:
    def hurry() -> None:
        if pool.hurry():
            timers.call_later(HURRY_SECONDS, hurry)

    def submit() -> None:
        with contextlib.suppress(RuntimeError):  # the manager ends
            pool.submit(lane, function)
            timers.call_later(HURRY_SECONDS, hurry)  # should what it waits for hang

    timers.call_later(seconds, submit)


def _share(host: NodeHost, root_dir: str) -> None:
    """Put the root directory on a shared mount (LAYOUT-07); without that, mounts do not reach running containers."""
    try:
        host.get_host_util().make_rshared(root_dir)
    except (OSError, VolumeHostError) as error:
        logger.warning("mounts below %s will not reach containers that run already: %s", root_dir, error)


def _default_prober() -> DynamicPluginProber:
    from volumehost.loader.prober import EntryPointProber

    return EntryPointProber()


def _close(api: ApiClient | None) -> None:
    from volumehost.api.store import EmbeddedStore

    if isinstance(api, EmbeddedStore):
        api.close()


def _open_store(root_dir: str) -> ApiClient:
    from volumehost.api.store import EmbeddedStore
    from volumehost.hosts.layout import Layout

    return EmbeddedStore(Layout(root_dir).store_file())
