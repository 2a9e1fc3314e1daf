"""What a manager does from time to time while it is at work: learns which pods there are, heals, refreshes."""

from __future__ import annotations

import logging
import math
import random
from typing import TYPE_CHECKING

from volumehost.errors import ApiError, VolumeHostError
from volumehost.hosts.reserve import hold_reserve
from volumehost.node.restart.second_look import SECOND_LOOK_SECONDS

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.node.assembly import NodeParts
    from volumehost.node.mounting import PodMounting
    from volumehost.node.restart.orphan_care import OrphanCare
    from volumehost.node.restart.store_witness import StoreWitness

logger = logging.getLogger(__name__)

#: How long until an API that did not list its pods is asked again, in seconds.
LEARN_SECONDS = 1.0

#: How often pod directories that nobody owns are looked for, in seconds: pods that end take theirs with them, so that
#: there are none as a rule.
HOUSEKEEPING_SECONDS = 10.0

#: How often everything is looked at, to heal what no event told of, in seconds.
RESYNC_SECONDS = 600.0

#: How often content that plugins refresh is refreshed, and what claims and drivers say is followed up, in seconds, and
#: the part of that which chance adds.
SYNC_SECONDS = 60.0
SYNC_JITTER = 0.5
#: Of many pods at least so many are looked at together, then others after that pause, all within that time, in seconds.
SYNC_TOGETHER = 16
SYNC_PAUSE = 0.5
SYNC_SPREAD = 40.0

#: How often events that are too old are deleted from the store of this host, in seconds (BR-53).
EXPIRE_SECONDS = 300.0


class Upkeep:
    """Runs on the parts of a manager, until they are closed."""

    def __init__(self, parts: NodeParts, api: ApiClient, mounting: PodMounting, witness: StoreWitness) -> None:
        self._parts = parts
        self._api = api
        self._mounting = mounting
        self._witness = witness

    def begin(self) -> None:
        """Arrange what comes again and again."""
        self._parts.timers.call_later(RESYNC_SECONDS, self._resync)
        self._parts.later(_sync_delay(), self._sync)
        self._parts.later(SECOND_LOOK_SECONDS, self._look_again)
        self._parts.later(EXPIRE_SECONDS, self._expire_events)

    def learn_pods(self) -> None:
        """Ask the API which pods there are; until it answers nothing is unmounted (BR-15)."""
        from volumehost.api.objects import Pod

        try:
            pods = self._api.list(Pod).items
            self._parts.populator.set_known(pods, self._witness.pods_to_keep({pod.metadata.uid for pod in pods}))
        except ApiError as error:
            logger.warning("pods are not known yet, nothing is unmounted: %s", error)
            self._parts.later(LEARN_SECONDS, self._learn_again)

    def begin_control(self) -> None:
        """Look after drivers and claims from now on, or as soon as the API answers."""
        try:
            self._parts.services.control.watch_drivers()
            self._parts.claims.begin()
        except ApiError as error:
            logger.warning("claims are not looked after yet: %s", error)
            self._parts.later(LEARN_SECONDS, self.begin_control)

    def begin_housekeeping(self, orphans: OrphanCare) -> None:
        """Look from time to time at what happens behind the manager's back: mounts of pods that went, which are set
        up again, and directories of pods that nobody knows, which are taken away (CONST-06). Space is held back for
        that, as soon as there is some.
        """
        hold_reserve(self._parts.host.layout.root_dir)

        def housekeep() -> None:
            try:
                orphans.housekeep()
            except OSError as error:
                logger.warning("pod directories cannot be looked at: %s", error)
            finally:
                self._parts.later(HOUSEKEEPING_SECONDS, housekeep)

        self._parts.later(HOUSEKEEPING_SECONDS, housekeep)
        self._parts.later(_sync_delay(), self._notice)

    def _notice(self) -> None:
        try:
            hold_reserve(self._parts.host.layout.root_dir)
            self._mounting.notice_what_is_gone()
        except (OSError, VolumeHostError) as error:
            logger.warning("mounts cannot be looked at: %s", error)
        finally:
            self._parts.later(_sync_delay(), self._notice)

    def _learn_again(self) -> None:
        self.learn_pods()
        if self._parts.populator.complete:
            self._parts.reconciler.resync()

    def _look_again(self) -> None:
        if self._parts.second_look.take():
            self._parts.reconciler.resync()

    def _resync(self) -> None:
        self._parts.reconciler.resync()
        self._parts.timers.call_later(RESYNC_SECONDS, self._resync)

    def _sync(self) -> None:
        """Many pods are not looked at all at once: a few each moment, so that nothing else has to wait for that."""
        left = self._mounting.followed()
        part = max(SYNC_TOGETHER, math.ceil(len(left) * SYNC_PAUSE / SYNC_SPREAD))

        def go_on() -> None:
            some = left[:part]
            del left[:part]
            try:
                self._mounting.sync(some)
            finally:
                if left:
                    self._parts.later(SYNC_PAUSE, go_on)

        self._parts.later(_sync_delay(), self._sync)
        go_on()

    def _expire_events(self) -> None:
        """While events come the store does so itself; here when none come any more."""
        from volumehost.api.store import EmbeddedStore

        try:
            if isinstance(self._api, EmbeddedStore):
                self._api.expire_events()
        except ApiError as error:
            logger.warning("old events are kept: %s", error)
        finally:
            self._parts.later(EXPIRE_SECONDS, self._expire_events)


def _sync_delay() -> float:
    return SYNC_SECONDS * (1 + random.uniform(0, SYNC_JITTER))  # noqa: S311 - spreads work, guards nothing
