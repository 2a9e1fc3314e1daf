"""Asks plugins whether they support a spec, and sets aside for a while those that raise, exit, hang or lie."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from volumehost.errors import PluginCallError
from volumehost.loader.backoff import Backoff
from volumehost.loader.guard import Guard, Outcome, describe, shown, still_running

if TYPE_CHECKING:
    from volumehost.loader.loaded import LoadedPlugin
    from volumehost.spec import Spec

logger = logging.getLogger(__name__)


class _SetAside:
    __slots__ = ("backoff", "error")

    def __init__(self, error: PluginCallError) -> None:
        self.error = error
        self.backoff = Backoff()


class Asker:
    """Calls ``can_support``. Safe for threads.

    A plugin is asked about a kind of source for the first time in a thread with a deadline; once it has answered
    as it should, it is asked directly, unless the caller wants the guard.

    :param timeout: seconds that a plugin has for one answer.
    """

    def __init__(self, guard: Guard, timeout: float, clock: Callable[[], float]) -> None:
        self._guard = guard
        self._timeout = timeout
        self._clock = clock
        self._lock = threading.Lock()
        self._aside: dict[LoadedPlugin, _SetAside] = {}

    def matching(
        self, plugins: Sequence[LoadedPlugin], spec: Spec, source: str, *, guarded: bool = False
    ) -> list[LoadedPlugin]:
        """Those of the plugins that support the spec; plugins set aside are not asked."""
        matched = []
        for plugin in plugins:
            if self.is_aside(plugin):
                continue
            proven = source in plugin.proven_sources and not guarded
            outcome = _ask(plugin, spec) if proven else self._ask_guarded(plugin, spec)
            if outcome.error is not None:
                self._set_aside(plugin, outcome.error, source)
            elif not isinstance(outcome.value, bool):
                self._set_aside(plugin, TypeError(f"it returned {shown(outcome.value)}, not a bool"), source)
            else:
                self._answered(plugin, source)
                if outcome.value:
                    matched.append(plugin)
        return matched

    def is_aside(self, plugin: LoadedPlugin) -> bool:
        """Whether the plugin is set aside now, or still has not come back from an earlier call."""
        if plugin not in self._aside:
            return False
        with self._lock:
            record = self._aside.get(plugin)
        return record is not None and (not record.backoff.due(self._clock()) or still_running(record.error))

    def why_aside(self, plugin: LoadedPlugin) -> PluginCallError | None:
        """Why the plugin is set aside, None when it is not."""
        with self._lock:
            record = self._aside.get(plugin)
        return record.error if record is not None and self.is_aside(plugin) else None

    def forget_all_but(self, plugins: Sequence[LoadedPlugin]) -> None:
        """Drop what is known of plugins that are no longer loaded."""
        with self._lock:
            self._aside = {plugin: record for plugin, record in self._aside.items() if plugin in plugins}

    def _ask_guarded(self, plugin: LoadedPlugin, spec: Spec) -> Outcome:
        return self._guard.run(lambda: plugin.can_support(spec), self._timeout, f"ask {plugin.name}")

    def _answered(self, plugin: LoadedPlugin, source: str) -> None:
        plugin.proven_sources.add(source)
        if plugin in self._aside:
            with self._lock:
                self._aside.pop(plugin, None)

    def _set_aside(self, plugin: LoadedPlugin, cause: BaseException, source: str) -> None:
        plugin.proven_sources.discard(source)
        error = PluginCallError(
            f"can_support: {describe(cause)}",
            plugin=plugin.name,
            distribution=plugin.origin.distribution,
            version=plugin.origin.version,
            action=f"asking the volume plugin {plugin.name} of {plugin.origin}",
        )
        error.__cause__ = cause
        with self._lock:
            record = self._aside.get(plugin)
            if record is None:
                record = self._aside[plugin] = _SetAside(error)
            record.error = error
            record.backoff.failed(self._clock())
        logger.warning("set aside a volume plugin: plugin=%s, reason=%s", plugin.name, error.reason)


def _ask(plugin: LoadedPlugin, spec: Spec) -> Outcome:
    try:
        return Outcome(value=plugin.can_support(spec))
    except KeyboardInterrupt:
        raise  # the user's
    except BaseException as error:  # noqa: BLE001 - one plugin must not break the look-up, SystemExit included (BR-03)
        return Outcome(error=error)
