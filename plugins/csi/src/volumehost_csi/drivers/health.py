"""Asks registered drivers from time to time whether they are well; slowness is shown, never acted on (BR-30)."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from volumehost.errors import StorageDriverUnavailableError
from volumehost.storage_driver import DriverState
from volumehost_csi.failures import rpc_failure, status_code

if TYPE_CHECKING:
    from volumehost_csi.registration.store import DriverInstance

logger = logging.getLogger(__name__)

#: Seconds after which an answer counts as slow, and until a call is given up.
SLOW = 1.0
GIVE_UP = 60.0


class Health:
    """The health of drivers by registration. Safe for threads.

    :param instances: the registered drivers.
    :param changed: called with a name when its health changed; must not block.
    """

    def __init__(
        self,
        instances: Callable[[], Iterable[DriverInstance]],
        changed: Callable[[str], None],
        *,
        slow: float = SLOW,
    ) -> None:
        self._instances = instances
        self._changed = changed
        self._slow = slow
        self._lock = threading.Lock()
        self._known: dict[DriverInstance, tuple[DriverState, str]] = {}
        self._pending: dict[DriverInstance, Any] = {}
        self._stop = threading.Event()

    def of(self, instance: DriverInstance | None) -> tuple[DriverState, str]:
        """READY, SLOW or FAILED, with the reason; READY for one that was not asked yet."""
        well = DriverState.READY, ""
        return self._known.get(instance, well) if instance is not None else well

    def close(self) -> None:
        """Ask no more."""
        self._stop.set()
        with self._lock:
            pending = list(self._pending.values())
        for call in pending:
            call.cancel()

    def check(self) -> None:
        """One round: ask every driver that is not still being asked; returns when the slow ones are known."""
        instances = list(self._instances())
        with self._lock:
            for gone in self._known.keys() - set(instances):
                del self._known[gone]
        asked = [instance for instance in instances if self._ask(instance)]
        if asked and not self._stop.wait(self._slow):
            for instance in asked:
                if instance in self._pending:
                    self._note(instance, DriverState.SLOW, f"its Probe takes longer than {self._slow:g} s")

    def _ask(self, instance: DriverInstance) -> bool:
        if instance in self._pending or self._stop.is_set():
            return False
        from volumehost_csi_kit import csi, stubs

        try:
            stub = stubs.IdentityStub(instance.channel())
            call = stub.Probe.future(csi.ProbeRequest(), timeout=GIVE_UP)
        except (StorageDriverUnavailableError, ValueError):  # it left a moment ago; its channel is closed
            return False
        with self._lock:
            self._pending[instance] = call
        call.add_done_callback(functools.partial(self._answered, instance))
        return True

    def _answered(self, instance: DriverInstance, call: Any) -> None:
        with self._lock:
            self._pending.pop(instance, None)
        if self._stop.is_set() or call.cancelled():
            return
        error = call.exception()
        if error is None:
            reply = call.result()
            starting = reply.HasField("ready") and not reply.ready.value
            state = DriverState.SLOW if starting else DriverState.READY
            self._note(instance, state, "it says that it is not ready yet" if starting else "")
        elif (code := status_code(error)) == "UNIMPLEMENTED":
            self._note(instance, DriverState.READY, "")
        else:
            reason = rpc_failure(error, driver=instance.name, call="Probe", action="").reason
            self._note(instance, DriverState.SLOW if code == "DEADLINE_EXCEEDED" else DriverState.FAILED, reason)

    def _note(self, instance: DriverInstance, state: DriverState, reason: str) -> None:
        with self._lock:
            before = self._known.get(instance, (DriverState.READY, ""))
            self._known[instance] = state, reason
        if before[0] is not state:
            logger.info(
                "the health of a CSI driver changed: driver=%s state=%s reason=%s", instance.name, state, reason
            )
            self._changed(instance.name)
