"""PluginManager: makes what is registered the same as what lies in the registration directory (CSI-PM-01 to -14).

One thread waits for the directory and for what is due; an operation has a thread of its own while it runs. Nothing is
looked at in between: an event, the end of an operation or the moment of a retry starts the next pass.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from volumehost_csi.registration.attempts import Attempt, RegistrationState, SocketStatus
from volumehost_csi.registration.caches import DesiredSocket, PathCache, RegisteredPlugin
from volumehost_csi.registration.inotify import Inotify
from volumehost_csi.registration.operations import Operations, PluginHandler
from volumehost_csi.registration.protocol import PluginInfo
from volumehost_csi.registration.watcher import POLL_SECONDS, RegistrationDirectory

logger = logging.getLogger(__name__)

#: Operations at once; one that waits for a driver that hangs holds up no other until so many hang.
MAX_OPERATIONS = 16
#: Plugins whose socket is gone that are remembered, to tell why they are not registered.
_MAX_DEPARTED = 64

_Outcome = Callable[[], None]


class PluginManager:
    """Registers what lies in one directory, until it is stopped. Safe for threads.

    :param directory: the registration directory; made at the start when it is not there.
    :param handlers: plugin type to its handler; more may be added later (CSI-PM-13).
    :param clock: monotonic seconds, for retries.
    """

    def __init__(
        self,
        directory: str,
        handlers: Mapping[str, PluginHandler] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        inotify: Callable[[], Inotify] = Inotify,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._desired: PathCache[DesiredSocket] = PathCache()
        self._registered: PathCache[RegisteredPlugin] = PathCache()
        self._directory = RegistrationDirectory(directory, self._desired, inotify=inotify, poll_seconds=poll_seconds)
        self._handlers = dict(handlers or {})
        self._operations = Operations(self._registered, self._handlers.get)
        self._clock = clock
        self._condition = threading.Condition()
        self._attempts: dict[str, Attempt] = {}
        self._running: set[str] = set()
        self._departed: dict[str, tuple[str, float]] = {}
        self._name_changes = 0
        self._listeners: list[Callable[[str], None]] = []
        self._thread: threading.Thread | None = None
        self._stopping = False

    def add_handler(self, plugin_type: str, handler: PluginHandler) -> None:
        """Register plugins of that type with this handler from now on."""
        self._handlers[plugin_type] = handler
        self._directory.wake()

    def start(self) -> None:
        """Take in what lies in the directory, then watch it in the background; may be called again.

        :raises RootDirectoryError: the directory cannot be made or read (CSI-WATCH-01).
        """
        with self._condition:
            if self._thread is not None or self._stopping:
                return
            self._directory.open()
            self._thread = threading.Thread(target=self._run, name="volumehost-registration", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Watch no longer; what is under way is ended, within ``timeout`` seconds. Plugins stay registered."""
        with self._condition:
            self._stopping = True
            thread = self._thread
            self._condition.notify_all()
        deadline = time.monotonic() + timeout
        self._directory.wake()
        self._operations.close()
        for handler in list(self._handlers.values()):
            handler.close()
        if thread is not None:
            thread.join(timeout)
        with self._condition:
            if not self._condition.wait_for(lambda: not self._running, max(0.0, deadline - time.monotonic())):
                logger.warning("registrations did not end within %g s: %s", timeout, ", ".join(sorted(self._running)))
        if thread is None or not thread.is_alive():
            self._directory.close()

    # --- what there is to tell ------------------------------------------------------------------------------

    @property
    def problem(self) -> str:
        """What the watcher leaves out or does slower than it should, "" when nothing is wrong."""
        return self._directory.problem

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call ``listener(path)`` whenever the status of a socket has changed; it must not block."""
        self._listeners.append(listener)

    def statuses(self) -> list[SocketStatus]:
        """Every socket that lies in the directory, by path."""
        now = self._clock()
        with self._condition:
            registered, found = self._registered.snapshot(), []
            for path, socket in sorted(self._desired.snapshot().items()):
                attempt, plugin = self._attempts.get(path), registered.get(path)
                if attempt is None or attempt.socket != socket:
                    attempt = Attempt(socket)
                running = path in self._running
                done = plugin is not None and plugin.socket == socket and not running
                found.append(attempt.status(registered=done, running=running, now=now))
        return found

    def explain(self, name: str) -> str:
        """Why no driver of that name came through the directory: one line, "" when one did (BR-25, BR-27)."""
        statuses = [status for status in self.statuses() if status.name == name]
        if any(status.state is RegistrationState.REGISTERED for status in statuses):
            return ""
        if statuses:
            status = next((each for each in statuses if each.error), statuses[0])
            if not status.error:
                return f"it is being registered through {status.path}"
            retry = f"; next attempt in {max(0.0, status.retry_at - time.time()):.0f} s" if status.retry_at else ""
            return f"its registration through {status.path} failed {status.attempts} times: {status.error}{retry}"
        departed = self._departed.get(name)
        if departed is not None:
            path, left_at = departed
            return (
                f"its registration socket {path} was removed {time.time() - left_at:.0f} s ago; if the driver still "
                "runs, restart it or its registrar"
            )
        return f"no registration socket of it lies in {self._directory.path}"

    def total_plugins(self) -> Iterator[tuple[str, str]]:
        """(socket path, state) for each value 1 of the gauge ``plugin_manager_total_plugins`` (CSI-PM-14)."""
        for plugin in self._registered:
            yield plugin.path, "actual_state_of_world"
        for socket in self._desired:
            yield socket.path, "desired_state_of_world"

    def retry_refused(self, name: str) -> None:
        """Try again now what was refused because the name was taken: it may be free."""
        with self._condition:
            self._name_changes += 1
            waiting = [each for each in self._attempts.values() if each.name == name and each.name_taken]
            for attempt in waiting:
                attempt.retry_now()
        if waiting:
            self._directory.wake()

    # --- one pass after the other ---------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                with self._condition:
                    if self._stopping:
                        return
                    next_retry = self._pass()
                self._directory.wait(next_retry)
            except Exception:
                # Nothing that one look meets may end the watching.
                logger.exception("watching the registration directory failed, it goes on")
                with self._condition:
                    self._condition.wait_for(lambda: self._stopping, POLL_SECONDS)

    def _pass(self) -> float | None:
        """Start what is to be done; returns the seconds until more may be done by itself."""
        desired, registered = self._desired.snapshot(), self._registered.snapshot()
        for path in self._attempts.keys() - desired.keys() - self._running:
            del self._attempts[path]
        for path, plugin in registered.items():
            if path not in desired and path not in self._running:
                self._depart(plugin)
                self._begin(path, partial(self._operations.deregister, plugin))
        waits = []
        for path, socket in desired.items():
            present = registered.get(path)
            if path in self._running or (present is not None and present.socket == socket):
                continue
            attempt = self._attempts.get(path)
            if attempt is None or attempt.socket != socket:
                attempt = self._attempts[path] = Attempt(socket)
            if attempt.given_up:
                continue
            wait = attempt.retry_in(self._clock())
            if wait > 0:
                waits.append(wait)
            elif len(self._running) < MAX_OPERATIONS:
                self._begin(path, partial(self._register, attempt, present))
        return min(waits, default=None)

    def _begin(self, path: str, operation: Callable[[], _Outcome | None]) -> None:
        """Run the operation; its outcome takes effect in the same moment as it ends for others."""

        def run() -> None:
            outcome = None
            try:
                outcome = operation()
            except Exception:
                logger.exception("an operation on the registration socket %s failed", path)
            finally:
                with self._condition:
                    if outcome is not None:
                        outcome()
                    self._running.discard(path)
                    self._condition.notify_all()
                self._directory.wake()
                self._tell(path)

        thread = threading.Thread(target=run, name="volumehost-register", daemon=True)
        self._running.add(path)
        try:
            thread.start()
        except RuntimeError:  # no more threads to be had: a later pass tries again
            self._running.discard(path)
            raise

    def _register(self, attempt: Attempt, previous: RegisteredPlugin | None) -> _Outcome:
        def told(info: PluginInfo) -> None:
            attempt.type, attempt.name, attempt.endpoint = info.type, info.name, info.endpoint or attempt.socket.path

        changes = self._name_changes
        try:
            self._operations.register(attempt.socket, previous, told)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again (CSI-PM-10)
            # The same thing over and over is of no interest (BR-24).
            level = logging.DEBUG if str(error) == str(attempt.error or "") else logging.WARNING
            logger.log(level, "%s: %s", attempt.socket.path, error)
            return partial(self._failed, attempt, error, changes)

        def succeeded() -> None:
            attempt.succeeded()
            self._departed.pop(attempt.name, None)

        return succeeded

    def _failed(self, attempt: Attempt, error: Exception, changes: int) -> None:
        attempt.failed(error, self._clock())
        if attempt.name_taken and self._name_changes != changes:
            attempt.retry_now()  # The one that had the name may have left while this one was being refused.

    def _depart(self, plugin: RegisteredPlugin) -> None:
        self._departed.pop(plugin.name, None)
        self._departed[plugin.name] = (plugin.path, time.time())
        while len(self._departed) > _MAX_DEPARTED:
            del self._departed[next(iter(self._departed))]

    def _tell(self, path: str) -> None:
        for listener in self._listeners:
            try:
                listener(path)
            except Exception:
                logger.exception("a listener failed on the change of %s", path)
