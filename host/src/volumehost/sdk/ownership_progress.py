"""Events about an ownership change that takes long, so that a pod's owner learns what the node is busy with."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.objects import Pod
    from volumehost.host_services import EventRecorder

logger = logging.getLogger(__name__)

FIRST_EVENT_AFTER = 30.0
NEXT_EVENTS_AFTER = 60.0
EVENT_REASON = "VolumePermissionChangeInProgress"
_JOIN_TIMEOUT = 5.0


def wait_for(done: threading.Event, seconds: float) -> bool:
    """Whether the walk ended within that time."""
    return done.wait(seconds)


class OwnershipProgress:
    """Reports while its ``with`` block runs: first after 30 seconds, then every 60 (FSGRP-10).

    It has a thread of its own, so that a walk that hangs in one call of a dead filesystem is reported as well.
    Without a pod or a recorder it does nothing.

    :param wait: how time passes; tests hand in their own.
    """

    def __init__(
        self,
        pod: Pod | None,
        recorder: EventRecorder | None,
        directory: str,
        processed: Callable[[], int],
        *,
        wait: Callable[[threading.Event, float], bool] = wait_for,
    ) -> None:
        self._pod = pod
        self._recorder = recorder
        self._directory = directory
        self._processed = processed
        self._wait = wait
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        """Start to watch."""
        if self._pod is not None and self._recorder is not None:
            self._thread = threading.Thread(target=self._report, name="volume-ownership-progress", daemon=True)
            self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; a recorder that hangs is left behind after a few seconds."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(_JOIN_TIMEOUT)

    def _report(self) -> None:
        place = self._short_path()
        if self._wait(self._done, FIRST_EVENT_AFTER):
            return
        self._emit(
            f"Setting volume ownership for {place} is taking longer than expected, "
            "consider setting fsGroupChangePolicy to OnRootMismatch"
        )
        while not self._wait(self._done, NEXT_EVENTS_AFTER):
            self._emit(f"Setting volume ownership for {place}, processed {self._processed()} files.")

    def _emit(self, message: str) -> None:
        if self._recorder is None:
            return
        try:
            self._recorder.event(self._pod, "Warning", EVENT_REASON, message)
        except Exception as error:  # noqa: BLE001 - an event that cannot be recorded must not stop the walk
            logger.warning("recording the event %r failed: %s", message, error)

    def _short_path(self) -> str:
        """The path from the pod's UID on: the rest is the same for every pod of the node (FSGRP-11)."""
        uid = self._pod.metadata.uid if self._pod is not None else ""
        position = self._directory.find(uid) if uid else -1
        return self._directory[position:] if position >= 0 else self._directory
