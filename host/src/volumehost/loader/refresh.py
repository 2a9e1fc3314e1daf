"""Keeps the snapshot that look-ups work on up to date: asks the prober, brings the plugins in line, publishes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from volumehost.loader.events import DynamicPluginProber, NoProber
from volumehost.loader.snapshot import Snapshot

if TYPE_CHECKING:
    from volumehost.loader.asking import Asker
    from volumehost.loader.guard import Guard
    from volumehost.loader.lifecycle import Lifecycle
    from volumehost.loader.roster import Roster

logger = logging.getLogger(__name__)

#: Seconds for which a look-up that finds its plugin trusts the last probe. One that finds none always probes.
PROBE_INTERVAL = 0.01


class Refresher:
    """Probes for plugins, and holds the present ``snapshot``. All changes happen under its ``lock``.

    ``due`` is when a look-up should probe before it looks, on the clock given. ``error`` is why the last probe
    failed, None when it worked.
    """

    def __init__(
        self, lifecycle: Lifecycle, roster: Roster, asker: Asker, guard: Guard, clock: Callable[[], float]
    ) -> None:
        self.lock = threading.Lock()
        self.snapshot = Snapshot()
        self.due = 0.0
        self.error: BaseException | None = None
        self._lifecycle = lifecycle
        self._roster = roster
        self._asker = asker
        self._guard = guard
        self._clock = clock
        self._prober: DynamicPluginProber = NoProber()
        self._started = 0.0

    def use(self, prober: DynamicPluginProber | None) -> None:
        """Ask this prober from now on; none when it is None or cannot start (MGR-INIT-02, -03). The lock is held."""
        self._prober = NoProber()
        if prober is None:
            return
        try:
            prober.init()
        except Exception:  # a prober of whomever; what is given does not need it
            logger.exception("the plugin prober cannot be used, going on without")
        else:
            self._prober = prober

    @property
    def waiting(self) -> dict[str, str]:
        """Distributions whose installation was not finished at the last probe, and what was missing."""
        return dict(getattr(self._prober, "waiting", None) or {})

    @property
    def complete(self) -> bool:
        """Whether the last probe worked and met no installation in progress."""
        return self.error is None and not self.waiting

    def unless_busy(self) -> None:
        """Probe, unless another thread does so at this moment."""
        if not self._guard.inside and self.lock.acquire(blocking=False):
            try:
                self.probe()
            finally:
                self.lock.release()

    def for_miss(self) -> None:
        """Probe, or wait for a probe that began after this call (MGR-PROBE-08)."""
        if self._guard.inside:
            return  # a plugin that is being loaded looks something up: the lock is held for its sake
        asked = self._clock()
        with self.lock:
            if self._started <= asked:
                self.probe()

    def soon(self) -> None:
        """A plugin's last user has gone: what waited for that can happen now, or at the next look-up."""
        if not self._lifecycle.awaits_idle:
            return
        self._lifecycle.next_due = 0.0
        self.due = 0.0
        self.unless_busy()

    def probe(self) -> None:
        """Ask the prober what changed, and bring the plugins in line. The lock is held."""
        self._started = self._clock()
        changed = False
        try:
            result = self._prober.probe()
        except Exception as error:  # a prober of whomever; what is loaded goes on
            if self.error is None:
                logger.exception("looking for plugins failed")
            self.error = error
        else:
            self.error = None
            for problem in result.errors:
                logger.warning("looking for plugins: %s", problem)
            for event in result.events:
                self._lifecycle.apply(event)
            changed = bool(result.events) or result.changed
        if changed or self._clock() >= self._lifecycle.next_due:
            self._lifecycle.reconcile(retry_failed=changed)
        if self._roster.changed:
            self.publish()
        self.due = self._clock() + PROBE_INTERVAL

    def publish(self) -> None:
        """Let look-ups see the plugins as they are now. The lock is held."""
        self._roster.changed = False
        plugins = list(self._roster.plugins.values())
        self._asker.forget_all_but(plugins)
        self.snapshot = Snapshot(plugins)
