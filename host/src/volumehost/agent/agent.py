"""Agent: the daemon of one node. Runs a volume manager on a root directory and tells it of pods, until told to end.

``volumehost agent`` runs one in its main thread.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Final, Protocol

from volumehost.agent.health import routes
from volumehost.agent.heart import Heart
from volumehost.agent.pod_sources import PodSource, PodSources
from volumehost.agent.settings import AgentSettings
from volumehost.agent.static_pods import StaticPods
from volumehost.agent.stored_pods import StoredPods
from volumehost.agent.tending import Tending
from volumehost.api.late_store import LateStore
from volumehost.daemon.http import HttpServer
from volumehost.daemon.notify import Notifier
from volumehost.daemon.signals import Signals
from volumehost.errors import FailedPreconditionError
from volumehost.hosts.layout import Layout
from volumehost.hosts.lock import RootDirLock
from volumehost.hosts.node_name import node_name_of
from volumehost.hosts.reserve import spend_reserve
from volumehost.hosts.root_dir import prepare_root_dir
from volumehost.node.manager import VolumeManager
from volumehost.node.turn import manager_in_turn

if TYPE_CHECKING:
    from volumehost.agent.cluster import ClusterConnection
    from volumehost.api.client import ApiClient
    from volumehost.metrics.exposition import NodeMetrics

logger = logging.getLogger(__name__)

#: How long after the time for its end the process ends come what may, in seconds.
LAST_SECONDS: Final = 5.0

#: How long it then waits for the disk to take what is known, in seconds.
FLUSH_SECONDS: Final = 1.0


class Service(Protocol):
    """Something that is there while the agent's manager is at work, such as the control socket."""

    def start(self, agent: Agent) -> None:
        """Begin; called when the manager is at work, before pods are told.

        :raises VolumeHostError: it cannot; the agent then ends with that error.
        """
        ...

    def stop(self, deadline: float) -> None:
        """End before ``deadline`` (of the monotonic clock); called before the manager lets go of the root directory."""
        ...


class Agent:
    """Runs once.

    :param settings: what it does.
    :param services: started and ended with its manager, in this order and in the reverse one.
    :param notifier: is told of the state of the service; systemd, by the environment, when not given.
    :raises ValueError: the address for health and metrics is none.
    :raises HttpAddressError: it cannot be had.
    """

    def __init__(
        self, settings: AgentSettings, services: Sequence[Service] = (), *, notifier: Notifier | None = None
    ) -> None:
        self.settings = settings
        #: Where they are served; nothing is counted otherwise.
        self.metrics = _metrics() if settings.http is not None else None
        #: What it is at, for people.
        self.phase = "it is starting"
        self.sources: PodSources | None = None
        self.heart: Heart | None = None
        self.http = HttpServer(settings.http) if settings.http is not None else None
        self._services = services
        self._notifier = notifier if notifier is not None else Notifier.from_environment()
        self._manager: VolumeManager | None = None
        self._store: LateStore | None = None
        self._cluster: ClusterConnection | None = None
        self._signals = Signals()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._end_by = float("inf")
        self._waits_for_turn = False
        self._error: BaseException | None = None

    @property
    def manager(self) -> VolumeManager:
        """The manager at work.

        :raises FailedPreconditionError: it is not at work yet, or no longer.
        """
        if self._manager is None:
            raise FailedPreconditionError("it is not at work", action="using the agent's volume manager")
        return self._manager

    @property
    def at_work(self) -> VolumeManager | None:
        """The manager, None while it is not at work."""
        return self._manager

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stopping.is_set()

    @property
    def takes_its_time(self) -> bool:
        """Whether it is at something that may take long, and has its own limit: waiting for its turn, or the end."""
        return self._waits_for_turn or self.stopping

    @property
    def ended(self) -> bool:
        """Whether it let go of everything: no thread of it is at work any more."""
        return self._ended.is_set()

    def store_problem(self) -> str:
        """Why the store, or the cluster's API server, cannot be used; "" when it can."""
        if self._cluster is not None:
            return self._cluster.problem()
        return self._store.problem if self._store is not None else ""

    def run(self) -> None:
        """Work until :meth:`stop`, SIGTERM or SIGINT. To be called in the main thread, which only hears signals.

        A second signal, or the end of the time for the end, makes it return though something still hangs
        (:attr:`ended` tells): then the process has to be ended.

        :raises RootDirectoryError: the root directory cannot be used.
        :raises RootDirectoryLockedError: another agent runs for it.
        :raises WaitTimeoutError: another manager has it; or, told to end, not everything could be unmounted.
        """
        if self.http is not None:
            self.http.start(routes(self))
        tending = Tending(self, self._notifier)
        with self._signals.hearing((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)):
            threading.Thread(target=self._live, name="volumehost-agent", daemon=True).start()
            while not self._ended.is_set():
                left = self._end_by - time.monotonic() if self._stopping.is_set() else None
                if left is not None and left <= 0:
                    logger.error("something still hangs when the time for the end is over: the agent ends without it")
                    self._save_records()
                    break
                pause = tending.tend()
                for number in self._signals.wait(pause if left is None else min(left, pause or left)):
                    if number == signal.SIGHUP:
                        self._look_again()
                    elif self._stopping.is_set():
                        logger.warning("told to end again: the agent ends at once")
                        self._end_by = 0.0
                    else:
                        self.stop()
        if self.http is not None:
            self.http.close()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End; returns at once. Safe from any thread."""
        if not self._stopping.is_set():
            self._end_by = time.monotonic() + self.settings.longest_end + LAST_SECONDS
            self.phase = "it is ending"
            self._stopping.set()
            self._signals.wake()

    def _save_records(self) -> None:
        """Have what is known on disk, when the disk answers."""
        manager = self._manager
        if manager is not None:
            flush = threading.Thread(target=manager.parts.services.journal.flush, daemon=True)
            flush.start()
            flush.join(FLUSH_SECONDS)

    def _look_again(self) -> None:
        """SIGHUP: look at plugins, drivers and pods anew."""
        manager, sources = self._manager, self.sources
        if manager is None or sources is None:
            return
        logger.info("looking at plugins, drivers and pods anew")
        self._notifier.reloading()

        def look() -> None:
            try:
                for error in manager.plugins.errors():
                    logger.warning("%s", error)
                manager.parts.services.control.watch_drivers()
                manager.drivers.start()
                sources.look_again()
            finally:
                self._notifier.ready()

        manager.parts.later(0, look)

    # --- life, in a thread of its own -------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            spend_reserve(self.settings.root_dir)  # an agent on a full disk can take volumes away at least
            self._work_on(prepare_root_dir(self.settings.root_dir))
        except BaseException as error:  # noqa: BLE001 - raised by run
            self._error = error
        finally:
            self._manager = None
            self._ended.set()
            self._signals.wake()

    def _work_on(self, root_dir: str) -> None:
        with ExitStack() as stack:
            lock = RootDirLock(root_dir, of_agent=True)
            lock.acquire()
            stack.callback(lock.release)
            api = self._open_api(root_dir, stack)
            made: list[VolumeManager] = []
            entered = stack.enter_context(self._turn(root_dir, api, made))
            if entered is not None and not self._stopping.is_set():  # it may have been told to end while it waited
                self._work(made[-1])

    def _open_api(self, root_dir: str, stack: ExitStack) -> ApiClient:
        """The objects that it works on, which need not be there yet."""
        if not self.settings.cluster:
            store = self._store = LateStore(Layout(root_dir).store_file())
            stack.callback(store.close)
            return store
        from volumehost.agent.cluster import ClusterConnection

        self.phase = "it connects to the cluster"
        self._cluster = ClusterConnection(self.settings, self.settings.node_name or node_name_of(root_dir))
        return stack.enter_context(self._cluster).api

    def _turn(self, root_dir: str, api: ApiClient, made: list[VolumeManager]) -> AbstractContextManager[object]:
        """A manager, entered when no other has the root directory; None when told to end before."""
        settings = self.settings

        def make() -> VolumeManager:
            manager = VolumeManager(
                root_dir,
                node_name=settings.node_name,
                api=api,
                adopt=True,
                told_pods=True,
                share_root=True,
                controllers=not settings.cluster,
                cluster=settings.cluster,
                metrics=self.metrics.operations if self.metrics is not None else None,
                exit_grace=settings.grace,
            )
            made.append(manager)
            return manager

        def wait_for(pid: int | None) -> None:
            self.phase = f"it waits for {f'process {pid}' if pid else 'another process'}, which works on {root_dir}"
            logger.warning(self.phase)
            self._waits_for_turn = True
            self._signals.wake()

        return manager_in_turn(make, settings.turn, on_wait=wait_for, unless=self._stopping.is_set)

    def _work(self, manager: VolumeManager) -> None:
        self.heart = Heart(manager.parts)
        self.heart.start()
        self._manager = manager
        self._waits_for_turn = False
        logger.info("at work on %s as node %s", manager.root_dir, manager.host.get_node_name())
        with ExitStack() as stack:
            if self.metrics is not None:
                self.metrics.attach(manager)
                stack.callback(self.metrics.detach)
            for service in self._services:
                service.start(self)
                stack.callback(self._end, service)
            self.sources = PodSources(manager, self._make_sources(manager))
            stack.callback(self.sources.stop)
            self.sources.start()
            self.phase = "it is at work"
            self._notifier.ready()
            self._signals.wake()
            self._stopping.wait()
            self._notifier.stopping()
            self.sources.stop()
            if self.settings.drain:
                self.phase = "it unmounts everything"
                logger.info("unmounting everything, for at most %g s", self.settings.drain_timeout)
                manager.drain(timeout=self.settings.drain_timeout)

    def _end(self, service: Service) -> None:
        service.stop(time.monotonic() + self.settings.grace)

    def _make_sources(self, manager: VolumeManager) -> list[PodSource]:
        if self.settings.static_pods is None:
            return [self._api_pods(manager, None)]
        static_pods = StaticPods(manager, self.settings.static_pods, mirrored=self._cluster is None)
        return [static_pods, self._api_pods(manager, static_pods.mirror_touched)]

    def _api_pods(self, manager: VolumeManager, mirror_touched: Callable[[], None] | None) -> PodSource:
        if self._cluster is None:
            return StoredPods(manager, mirror_touched)
        from volumehost.agent.cluster_pods import ClusterPods
        from volumehost.api.objects import Pod

        cluster = self._cluster
        return ClusterPods(manager, mirror_touched, stale=lambda: cluster.problem_of(Pod))


def _metrics() -> NodeMetrics:
    from volumehost.metrics.exposition import NodeMetrics

    return NodeMetrics()
