"""One call at a time for each volume: the others wait in line, in the order in which they came (BR-39, CSI-WIRE-14).

Answering ABORTED at once makes callers back off exponentially, so fifty pods that end together take minutes. Waiting a
bounded time makes them take as long as their calls together.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Iterator

import grpc

from volumehost_csi_kit.server.errors import AbortedError

# Kept from the caller's deadline, so that the answer still reaches it.
_MARGIN_SECONDS = 0.2


class _Turn:
    """One call that holds a key or waits for it."""

    def __init__(self, call: str) -> None:
        self.call = call
        self.since = time.monotonic()
        self.awake = threading.Event()
        self.gone = False


class VolumeLocks:
    """Locks by key, made when they are needed and forgotten when nobody waits. Not reentrant."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, collections.deque[_Turn]] = {}

    @contextlib.contextmanager
    def hold(
        self, key: str, call: str = "", *, timeout: float = 60.0, context: grpc.ServicerContext | None = None
    ) -> Iterator[None]:
        """Wait until no other call holds ``key``, at most ``timeout`` seconds and not past the deadline of ``context``.

        With ``timeout=0`` it does not wait. A caller that hangs up leaves the line.

        :raises AbortedError: the time is over, or the caller is gone; says which call holds the key.
        """
        turn = _Turn(call)
        with self._lock:
            line = self._lines.setdefault(key, collections.deque())
            line.append(turn)
            first = line[0] is turn
        if not first:
            self._wait(key, line, turn, timeout, context)
        try:
            yield
        finally:
            self._leave(key, line, turn)

    def _wait(
        self,
        key: str,
        line: collections.deque[_Turn],
        turn: _Turn,
        timeout: float,
        context: grpc.ServicerContext | None,
    ) -> None:
        if context is not None:
            remaining = context.time_remaining()
            if remaining is not None:
                timeout = min(timeout, remaining - _MARGIN_SECONDS)

            def hang_up() -> None:
                turn.gone = True
                turn.awake.set()

            if not context.add_callback(hang_up):
                turn.gone = True
        if timeout > 0 and not turn.gone:
            turn.awake.wait(timeout)
        with self._lock:
            holder = line[0]
        if holder is turn and not turn.gone:
            return
        self._leave(key, line, turn)
        running = time.monotonic() - holder.since
        raise AbortedError(
            f"{holder.call or 'another call'} for {key} has been pending for {running:.1f} s: try again later"
        )

    def _leave(self, key: str, line: collections.deque[_Turn], turn: _Turn) -> None:
        with self._lock:
            line.remove(turn)
            if line:
                line[0].awake.set()
            elif self._lines.get(key) is line:
                del self._lines[key]


def key_of(method: str) -> tuple[str, str] | None:
    """The kind of key and the request's field that name what a call changes; None for a call that only reads."""
    return _KEYS.get(method)


_KEYS = {
    "CreateVolume": ("volume name", "name"),
    "DeleteVolume": ("volume", "volume_id"),
    "ControllerPublishVolume": ("volume", "volume_id"),
    "ControllerUnpublishVolume": ("volume", "volume_id"),
    "ControllerExpandVolume": ("volume", "volume_id"),
    "ControllerModifyVolume": ("volume", "volume_id"),
    "CreateSnapshot": ("volume", "source_volume_id"),
    "DeleteSnapshot": ("snapshot", "snapshot_id"),
    "CreateVolumeGroupSnapshot": ("group snapshot name", "name"),
    "DeleteVolumeGroupSnapshot": ("group snapshot", "group_snapshot_id"),
    "NodeStageVolume": ("volume", "volume_id"),
    "NodeUnstageVolume": ("volume", "volume_id"),
    "NodePublishVolume": ("volume", "volume_id"),
    "NodeUnpublishVolume": ("volume", "volume_id"),
    "NodeExpandVolume": ("volume", "volume_id"),
}
