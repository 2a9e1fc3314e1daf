"""What a host that runs for long does from time to time, in one thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)


class Rounds:
    """Calls each task, every ``period`` seconds, until it is closed. What one raises is logged and costs no other."""

    def __init__(self, tasks: Sequence[Callable[[], object]], *, period: float) -> None:
        self._tasks = tasks
        self._period = period
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin with the first round; may be called again."""
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="rounds of csi drivers", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """No further round; waits a moment for the one that is on."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.is_set():
            for task in self._tasks:
                try:
                    task()
                except Exception:
                    logger.exception("a task for CSI drivers failed")
            self._stop.wait(self._period)
