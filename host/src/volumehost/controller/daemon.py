"""ControllerDaemon: runs the controllers of a cluster while it is their leader, until told to end.

``volumehost controller`` runs one in its main thread. Several may run for one cluster; one of them works.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from volumehost.controller.health import line, routes
from volumehost.controller.leader_election import LeaderElector
from volumehost.controller.settings import LEASE_NAMESPACE
from volumehost.controller.work import Work
from volumehost.daemon.http import HttpServer
from volumehost.daemon.notify import Notifier
from volumehost.daemon.signals import Signals

if TYPE_CHECKING:
    from volumehost.api.kubernetes import KubernetesClient
    from volumehost.controller.leader_election import Term
    from volumehost.controller.settings import ControllerSettings
    from volumehost.metrics.controllers import ControllerMetrics

logger = logging.getLogger(__name__)

#: How long after the time for its end the process ends come what may, in seconds.
LAST_SECONDS: Final = 5.0
#: How often systemd is told how things are, in seconds.
TELL_SECONDS: Final = 5.0
#: For how long a term that is lost is cleared up before the next may begin, in seconds; nothing is written meanwhile.
CLEARING_SECONDS: Final = 5.0


class ControllerDaemon:
    """Runs once: :meth:`run` in a main thread, or :meth:`start` and :meth:`stop` in any program.

    :param plugins: volume plugins, besides those that are installed.
    :param notifier: is told of the state of the service; systemd, by the environment, when not given.
    :raises ValueError: the address for health and metrics is none.
    :raises HttpAddressError: it cannot be had.
    """

    def __init__(
        self, settings: ControllerSettings, *, plugins: Sequence[object] = (), notifier: Notifier | None = None
    ) -> None:
        self.settings = settings
        #: What is counted; only where it is served.
        self.metrics = _metrics() if settings.http is not None else None
        self.http = HttpServer(settings.http) if settings.http is not None else None
        #: What it is at, for people.
        self.phase = "it is starting"
        self._plugins = plugins
        self._notifier = notifier if notifier is not None else Notifier.from_environment()
        self._signals = Signals()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._end_by = float("inf")
        self._elector: LeaderElector | None = None
        self._term: Term | None = None
        self._work: Work | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    # --- questions --------------------------------------------------------------------------------------------------

    @property
    def leading(self) -> bool:
        """Whether this process is the one that works."""
        work, term = self._work, self._term
        return work is not None and (term is None or term.valid)

    @property
    def work(self) -> Work | None:
        """What is being worked with, None while another process leads."""
        return self._work

    @property
    def leader(self) -> str:
        """Who leads as far as is known, "" for nobody."""
        return self._elector.leader if self._elector is not None else ""

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stopping.is_set()

    @property
    def ended(self) -> bool:
        """Whether it let go of everything."""
        return self._ended.is_set()

    @property
    def alive(self) -> bool:
        """Whether the thread that leads and follows is there."""
        return self._thread is not None and self._thread.is_alive()

    def lease_problem(self) -> str:
        """Why the lease cannot be had or renewed, "" when the API answers."""
        return self._elector.problem if self._elector is not None else ""

    # --- life -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until :meth:`stop`, SIGTERM or SIGINT. To be called in the main thread, which only hears signals.

        A second signal, or the end of the time for the end, makes it return though something still hangs
        (:attr:`ended` tells): then the process has to be ended.

        :raises ClusterConfigError: the kubeconfig cannot be used.
        """
        with self._signals.hearing((signal.SIGTERM, signal.SIGINT)):
            self.start()
            while not self._ended.is_set():
                left = self._end_by - time.monotonic() if self._stopping.is_set() else None
                if left is not None and left <= 0:
                    logger.error("something still hangs when the time for the end is over: it ends without it")
                    break
                pause = self._tell()
                for _ in self._signals.wait(pause if left is None else min(left, pause or left)):
                    if self._stopping.is_set():
                        logger.warning("told to end again: it ends at once")
                        self._end_by = 0.0
                    else:
                        self.stop()
        self._close()

    def start(self) -> None:
        """Begin, in threads of their own."""
        if self.http is not None:
            self.http.start(routes(self))
        self._thread = threading.Thread(target=self._live, name="volumehost-controller", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; returns at once. Safe from any thread."""
        if not self._stopping.is_set():
            self._end_by = time.monotonic() + self.settings.grace + LAST_SECONDS
            self.phase = "it is ending"
            self._stopping.set()
            if self._elector is not None:
                self._elector.stop()
            if (term := self._term) is not None:
                term.poke()
            self._signals.wake()

    def join(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the end of what :meth:`start` began; whether it has ended.

        :raises ClusterConfigError: the kubeconfig cannot be used.
        """
        ended = self._ended.wait(timeout)
        if ended:
            self._close()
        return ended

    def _close(self) -> None:
        if self.http is not None:
            self.http.close()
        if self._error is not None:
            raise self._error

    def _tell(self) -> float | None:
        """Keep systemd informed; the seconds until the next time, None for never."""
        notifier = self._notifier
        if not notifier.listens:
            return None
        notifier.status(line(self))
        if self.alive:
            notifier.alive()
        watchdog = notifier.watchdog_seconds
        return TELL_SECONDS if watchdog is None else min(TELL_SECONDS, watchdog / 3)

    # --- in a thread of its own -------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            from volumehost.api.kubernetes import connect

            settings = self.settings
            client = connect(settings.kubeconfig, settings.context, in_cluster=settings.in_cluster)
            try:
                self._notifier.ready()
                self._take_turns(client)
                self._notifier.stopping()
            finally:
                client.close()
        except BaseException as error:  # noqa: BLE001 - raised by run and join
            self._error = error
        finally:
            self._ended.set()
            self._signals.wake()

    def _take_turns(self, client: KubernetesClient) -> None:
        lease = self.settings.lease
        if lease is None:
            self._serve(client, None)
            return
        if not lease.namespace:
            lease = replace(lease, namespace=client.default_namespace if self.settings.in_cluster else LEASE_NAMESPACE)
        elector = self._elector = LeaderElector(client, lease)
        while not self._stopping.is_set():
            self.phase = "it waits to be the leader"
            term = elector.acquire()
            if term is None:
                return
            keeping = threading.Thread(target=elector.keep, args=(term,), name="volumehost-lease", daemon=True)
            keeping.start()
            drained = False
            try:
                drained = self._serve(client, term)
            finally:
                if term.valid:  # told to end, with the lease in hand
                    term.end("it was told to end")
                    keeping.join(LAST_SECONDS)
                    if not keeping.is_alive() and drained:
                        elector.release()

    def _serve(self, client: KubernetesClient, term: Term | None) -> bool:
        """Work until told to end or the term is over; whether nothing runs any more."""
        operations = self.metrics.operations if self.metrics is not None else None
        work = Work(client, self.settings, term, metrics=operations, plugins=self._plugins)
        drained = False
        try:
            work.start()
            self._term, self._work = term, work
            self.phase = "it leads" if term is not None else "it is at work"
            self._signals.wake()
            logger.info("at work: controllers=%s", ",".join(sorted(self.settings.controllers)))
            self._wait(term)
            if term is not None and not term.valid:
                logger.warning("not the leader any more: %s", term.reason)
        finally:
            self._work, self._term = None, None
            drained = work.stop(self.settings.grace if self._stopping.is_set() else CLEARING_SECONDS)
        return drained

    def _wait(self, term: Term | None) -> None:
        """Until told to end, or the term is over."""
        if term is None:
            self._stopping.wait()
        else:
            term.wait_ended(self._stopping.is_set)


def _metrics() -> ControllerMetrics:
    from volumehost.metrics.controllers import ControllerMetrics

    return ControllerMetrics()
