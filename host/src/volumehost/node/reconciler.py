"""Compares what is wanted with what is there, and starts operations (RECON-L rules).

Event-driven: it looks at the (volume, pod) keys that changed, never at everything while nothing happens. Whoever made
a change calls :meth:`Reconciler.run`; one caller at a time does the work, and it never waits.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from volumehost.errors import AlreadyRunningError, BackoffError, VolumeHostError
from volumehost.node.execution.backoff import absent_driver, is_about_driver
from volumehost.node.operations.choosing import (
    detaching_operation,
    device_releasing_operation,
    mounting_operation,
    unmounting_operation,
)
from volumehost.node.state.states import Attachability, Need

if TYPE_CHECKING:
    from volumehost.node.execution.executor import Executor
    from volumehost.node.execution.timers import Timers
    from volumehost.node.operations.common import Operation, Services

logger = logging.getLogger(__name__)

#: Retries are spread by up to this part of their delay, so that what failed together is not retried together (BR-53).
JITTER = 0.1

#: How often a change of a driver ends the backoff of what its calls failed for, in seconds.
DRIVER_CHANGE_SECONDS = 60.0

Key = tuple[str, str]


class Wishes(Protocol):
    """What the reconciler asks of the populator: "not wanted" must be certain before anything is unmounted."""

    def may_mount(self, pod_uid: str) -> bool:
        """Whether this manager is to mount the pod's volumes now."""
        ...

    def is_unwanted(self, volume: str, pod_uid: str) -> bool:
        """Whether it is certain that the pod does not want the volume (BR-15, BR-51)."""
        ...

    def is_device_unwanted(self, volume: str) -> bool:
        """Whether it is certain that no pod will want the volume's device."""
        ...


class DirtyKeys:
    """The (volume, pod) keys that changed; the pod is "" for the volume's device. Safe for threads, takes no lock."""

    def __init__(self) -> None:
        self._keys: dict[Key, None] = {}

    def mark(self, volume: str, pod_uid: str) -> None:
        """Look at this one in the next run."""
        self._keys[volume, pod_uid] = None

    def unmark(self, volume: str, pod_uid: str) -> None:
        """Whoever calls this looks at it at once."""
        self._keys.pop((volume, pod_uid), None)

    def take(self) -> list[Key]:
        """The marked keys, which are unmarked with that."""
        keys = list(self._keys)
        for key in keys:
            self._keys.pop(key, None)
        return keys

    def __bool__(self) -> bool:
        return bool(self._keys)


class Reconciler:
    """Brings the actual state to the desired state, key by key. Safe for threads."""

    def __init__(
        self,
        dirty: DirtyKeys,
        services: Services,
        executor: Executor,
        wishes: Wishes,
        timers: Timers,
        *,
        notify: Callable[[str], None],
    ) -> None:
        executor.on_finished = self.finished
        self._dirty = dirty
        self._services = services
        self._executor = executor
        self._wishes = wishes
        self._timers = timers
        self._notify = notify
        self._lock = threading.Lock()
        self._blocked: dict[str, dict[Key, None]] = {}
        #: When each driver last changed so that all its failures were forgotten.
        self._drivers_changed: dict[str, float] = {}
        self._working = False
        self._since = 0.0
        self._stopped = False

    def resync(self) -> None:
        """Look at everything: when a restart has found what is there, and rarely, to heal what no event told of.

        What is wanted and lacks nothing needs no more than that look.
        """
        desired, actual = self._services.desired, self._services.actual
        for volume, pod_uid in desired.wanting(actual):
            self._dirty.mark(volume, pod_uid)
            self._dirty.mark(volume, "")
        for volume, pod_uid in actual.keys():  # noqa: SIM118 - no mapping
            if not (desired.wants(volume, pod_uid) if pod_uid else desired.has_volume(volume)):
                self._dirty.mark(volume, pod_uid)
        self.run()

    def look_at_pod(self, pod_uid: str) -> None:
        """What is wanted of the pod changed: look at all that is there of it in the next run."""
        for mount in self._services.actual.mounts_of_pod(pod_uid):
            self._dirty.mark(mount.volume, pod_uid)

    def look_at_uses(self, pod_uid: str) -> None:
        """The pod may be mounted from now on: what changed before that may have been passed over."""
        for volume in self._services.desired.volumes_of_pod(pod_uid):
            self._dirty.mark(volume, pod_uid)

    def look_at_volume(self, volume: str) -> None:
        """Nobody may want the volume any more: look at it in the next run."""
        self._dirty.mark(volume, "")

    def finished(self, volume: str, pod_uid: str, retry_in: float) -> None:
        """An operation has ended: what waited for it may start, and what failed is retried after its backoff."""
        if retry_in:
            delay = retry_in * (1 + random.uniform(0.001, JITTER))  # noqa: S311 - spreads retries, guards nothing
            self._timers.call_later(delay, lambda: self._retry(volume))
        for key in list(self._blocked.pop(volume, ())):
            self._dirty.mark(*key)
        if pod_uid:
            if not retry_in:
                self._wake_refused(volume, pod_uid)
            # Nearly always there is nothing left to do, and no run is needed to see that.
            self._dirty.unmark(volume, pod_uid)
            if not self._is_settled(volume, pod_uid):
                self._dirty.mark(volume, pod_uid)
        self.run()
        if pod_uid:
            self._notify(pod_uid)
        self._notify(volume)

    def _wake_refused(self, volume: str, pod_uid: str) -> None:
        """A pod that was kept out because this one had the volume may have it now."""
        if not self._services.desired.has_several_pods(volume):
            return
        others = [uid for uid in self._services.desired.pods_of_volume(volume) if uid != pod_uid]
        from volumehost.node.operations.set_up_operation import is_in_use_by_another

        if self._executor.forget_failures(is_in_use_by_another, volume):
            for uid in others:
                self._dirty.mark(volume, uid)

    def driver_changed(self, name: str) -> None:
        """A storage driver came, left or changed: what waited for it is tried at once (BR-27).

        What its calls failed for counts no more either (BR-53); once a minute at most, since its health may go to and
        fro.
        """
        now = self._services.clock()
        often = now - self._drivers_changed.get(name, float("-inf")) <= DRIVER_CHANGE_SECONDS
        if not often:
            self._drivers_changed[name] = now
        for volume in self._executor.forget_failures(partial(_waits_for if often else is_about_driver, name=name)):
            self._retry(volume)

    def attachments_changed(self, volumes: Iterable[str]) -> None:
        """Node status says something else of these volumes: what waits for that goes on (VERIFY-04)."""
        for volume in volumes:
            for pod_uid in (*self._services.desired.pods_of_volume(volume), ""):
                self._dirty.mark(volume, pod_uid)
        self.run()

    @property
    def at_work_since(self) -> float | None:
        """Since when, on the manager's clock, it has been at what changed; None while there is nothing to do."""
        return self._since if self._working else None

    def stop(self) -> None:
        """Start nothing any more."""
        self._stopped = True

    def _retry(self, volume: str) -> None:
        services = self._services
        for pod_uid in (*services.actual.pods_of_volume(volume), *services.desired.pods_of_volume(volume), ""):
            self._dirty.mark(volume, pod_uid)
        self.run()

    # --- one run ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Work off what changed. Returns at once when another thread is at it: that one takes these changes too."""
        while self._dirty:
            with self._lock:
                if self._working or self._stopped or not self._dirty:
                    return
                self._working, self._since = True, self._services.clock()
            try:
                while self._dirty and not self._stopped:
                    self._pass(self._dirty.take())
            finally:
                with self._lock:
                    self._working = False

    def _pass(self, keys: list[Key]) -> None:
        """Unmount first: a volume that moves between pods is released before it is taken (RECON-L-11)."""
        of_pods = [key for key in keys if key[1]]
        mounted = [key for key in of_pods if self._services.actual.has_mounts(key[1])]
        of_devices = [key for key in keys if not key[1]]
        for step, affected in ((self._unmount, mounted), (self._mount, of_pods), (self._release, of_devices)):
            for key in affected:
                try:
                    step(*key)
                except Exception:
                    logger.exception("volume %s of pod %s could not be reconciled", *key)
        self._executor.go()

    def _is_settled(self, volume: str, pod_uid: str) -> bool:
        """Whether it is wanted and lacks nothing, as nearly always when it has just been mounted."""
        need = self._services.desired.need(volume, pod_uid, self._services.actual)
        return need is Need.NOTHING and self._wishes.may_mount(pod_uid)

    def _unmount(self, volume: str, pod_uid: str) -> None:
        """RECON-L-10."""
        mount = self._services.actual.get_mount(volume, pod_uid)
        if mount is None or not self._wishes.is_unwanted(volume, pod_uid):
            return
        # Of a volume that pods share one call at a time is on its way, unmounts too (BR-39, CSI-WIRE-14).
        if self._is_blocked(volume, pod_uid if mount.is_named_by_pod else "", pod_uid):
            return
        self._start(unmounting_operation(self._services, mount), volume)

    def _mount(self, volume: str, pod_uid: str) -> None:
        """RECON-L-20 to -25."""
        use = self._services.desired.get(volume, pod_uid)
        if use is None or not self._wishes.may_mount(pod_uid):
            return
        services = self._services
        label = use.selinux.mount if use.selinux is not None else None
        need = services.actual.check(volume, pod_uid, attachable=use.attachable, size=use.wanted_size, label=label)
        if need is Need.NOTHING or self._is_blocked(volume, "", pod_uid):
            return
        if need is Need.RELABEL:
            self._blocked.setdefault(volume, {})[volume, pod_uid] = None
            self._dirty.mark(volume, "")  # it is released first (RECON-L-30), which brings this one back
            return
        if need is Need.ATTACH and not use.attachable and not services.actual.has_volume(volume):
            # It is entered at once (ASW-05).
            spec = use.spec if use.is_shared or use.is_block else None
            services.actual.enter_wanted(use.volume, use.plugin.name, spec, use.spec.volume_mode())
            need = Need.MOUNT
        if need is Need.ATTACH and use.attachable and self._waits_for_controller(volume):
            return
        self._start(mounting_operation(services, use, need), volume)

    def _release(self, volume: str, pod_uid: str) -> None:
        """RECON-L-30, -31: a volume without pods is unmounted globally, then detached, then forgotten."""
        if not self._wishes.is_device_unwanted(volume) or self._is_blocked(volume, "", pod_uid):
            return
        found = self._services.actual.forget_unless_held(volume)
        if found is None:
            if self._services.journal.has(volume):
                self._services.note({"v": volume, "gone": True})
            self._forgotten(volume)
        elif found.pods:
            return
        elif found.device_state.may_be_mounted:
            self._start(device_releasing_operation(self._services, found), volume)
        elif found.attachability is Attachability.TRUE:
            if self._services.attachments is None:
                self._start(detaching_operation(self._services, found), volume)
            else:
                self._services.attachments.forget(found)
                self._forgotten(volume)

    def _waits_for_controller(self, volume: str) -> bool:
        """Whether a controller has to attach it first (RECON-L-22); :meth:`attachments_changed` then brings it back."""
        attachments = self._services.attachments
        return attachments is not None and not attachments.may_be_used(volume)

    def _forgotten(self, volume: str) -> None:
        for key in list(self._blocked.pop(volume, ())):
            self._dirty.mark(*key)
        if self._services.attachments is not None:
            self._services.attachments.wake()
        self._notify(volume)

    def _is_blocked(self, volume: str, operations_of: str, pod_uid: str) -> bool:
        """Whether an operation runs that must end first; the key is then looked at when it has.

        :param operations_of: the pod whose operations count, "" for those of all pods.
        """
        if not self._executor.is_busy(volume, operations_of):
            return False
        blocked = self._blocked.setdefault(volume, {})
        blocked[volume, pod_uid] = None
        if self._executor.is_busy(volume, operations_of) and self._blocked.get(volume) is blocked:
            return True
        self._dirty.mark(volume, pod_uid)  # one has ended just now, and may not have seen this key
        return True

    def _start(self, operation: Operation, volume: str) -> None:
        """Refusals are normal: the end of what runs, or a timer, brings the key back (RECON-L-24)."""
        try:
            self._executor.start(operation)
        except AlreadyRunningError:
            return
        except BackoffError as error:
            self._timers.call_later(error.retry_in + 0.001, lambda: self._retry(volume))
        except VolumeHostError:
            logger.exception("operation %s could not be started", operation.name)


def _waits_for(error: BaseException, name: str) -> bool:
    """Whether the driver was not there."""
    return absent_driver(error) in (name, "")
