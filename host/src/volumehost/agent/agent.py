"""Agent: the daemon of one node. Runs a volume manager on a root directory and tells it of pods, until told to end.

``volumehost agent`` runs one in its main thread.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Final, Protocol

from volumehost.agent.notify import Notifier
from volumehost.agent.pod_sources import PodSource, PodSources
from volumehost.agent.signals import Signals
from volumehost.agent.stored_pods import StoredPods
from volumehost.errors import FailedPreconditionError
from volumehost.hosts.lock import RootDirLock
from volumehost.hosts.root_dir import prepare_root_dir
from volumehost.node.manager import VolumeManager
from volumehost.node.turn import manager_in_turn

logger = logging.getLogger(__name__)

#: How long the agent waits for operations that run when it is told to end, in seconds.
GRACE_SECONDS: Final = 30.0

#: How long a one-shot command that has the root directory is waited for, in seconds.
TURN_SECONDS: Final = 130.0

#: How long after the grace the process ends come what may, in seconds.
LAST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an agent is made with.

    :param root_dir: where state and mounts are; an absolute path.
    :param node_name: name of the node, the machine's by default.
    :param static_pods: directory with manifests of static pods, None for none.
    :param grace: seconds that ending waits for operations that run.
    :param drain: unmount everything when told to end.
    :param turn: seconds to wait for another manager that works on the root directory.
    """

    root_dir: str
    node_name: str | None = None
    static_pods: str | None = None
    grace: float = GRACE_SECONDS
    drain: bool = False
    turn: float = TURN_SECONDS


class Service(Protocol):
    """Something that is there while the agent's manager is at work: the control socket, the HTTP server."""

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
    """

    def __init__(
        self, settings: AgentSettings, services: Sequence[Service] = (), *, notifier: Notifier | None = None
    ) -> None:
        self.settings = settings
        self.sources: PodSources | None = None
        self._services = services
        self._notifier = notifier if notifier is not None else Notifier.from_environment()
        self._made: VolumeManager | None = None
        self._manager: VolumeManager | None = None
        self._signals = Signals()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._deadline = float("inf")
        self._error: BaseException | None = None

    @property
    def manager(self) -> VolumeManager:
        """The manager at work.

        :raises FailedPreconditionError: it is not at work yet, or no longer.
        """
        if self._manager is None:
            raise FailedPreconditionError("it is not at work", action="using the agent's volume manager")
        return self._manager

    def run(self) -> None:
        """Work until :meth:`stop`, SIGTERM or SIGINT. To be called in the main thread, which only hears signals.

        :raises RootDirectoryError: the root directory cannot be used.
        :raises WaitTimeoutError: another manager has it.
        """
        with self._signals.hearing((signal.SIGTERM, signal.SIGINT)):
            life = threading.Thread(target=self._live, name="volumehost-agent", daemon=True)
            life.start()
            while not self._ended.is_set():
                left = self._deadline + LAST_SECONDS - time.monotonic() if self._stopping.is_set() else None
                if left is not None and left <= 0:
                    logger.error("the agent did not end within its grace time; it ends now")
                    return
                if self._signals.wait(left):
                    self.stop()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End; returns at once. Safe from any thread."""
        if not self._stopping.is_set():
            self._deadline = time.monotonic() + self.settings.grace
            self._stopping.set()
            self._signals.wake()

    # --- life -------------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        lock: RootDirLock | None = None
        try:
            lock = RootDirLock(prepare_root_dir(self.settings.root_dir), of_agent=True)
            lock.acquire()
            with self._turn() as entered:
                if entered is not None and self._made is not None:
                    self._manager = self._made
                    self._work(self._manager)
        except BaseException as error:  # noqa: BLE001 - raised by run
            self._error = error
        finally:
            if lock is not None:
                lock.release()
            self._ended.set()
            self._signals.wake()

    def _turn(self) -> AbstractContextManager[object]:
        """A manager of this agent, entered when no other has the root directory; None when told to end before."""
        settings = self.settings

        def make() -> VolumeManager:
            self._made = VolumeManager(
                settings.root_dir,
                node_name=settings.node_name,
                adopt=True,
                told_pods=True,
                share_root=True,
                controllers=True,
                exit_grace=settings.grace,
            )
            return self._made

        return manager_in_turn(make, settings.turn, on_wait=_tell_wait, unless=self._stopping.is_set)

    def _work(self, manager: VolumeManager) -> None:
        with ExitStack() as stack:
            stack.callback(self._notifier.stopping)
            for service in self._services:
                service.start(self)
                stack.callback(service.stop, self._deadline)
            self.sources = PodSources(manager, self._make_sources(manager))
            self.sources.start()
            stack.callback(self.sources.stop)
            self._notifier.ready()
            self._stopping.wait()

    def _make_sources(self, manager: VolumeManager) -> list[PodSource]:
        return [StoredPods(manager)]


def _tell_wait(pid: int | None) -> None:
    logger.warning("waiting: %s works on the root directory", f"process {pid}" if pid else "another process")
