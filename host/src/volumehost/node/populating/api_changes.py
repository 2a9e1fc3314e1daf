"""Hears from the API of changed objects, so that volumes that depend on them are looked at again at once."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from volumehost.errors import ApiError, GoneError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient, WatchEvent
    from volumehost.api.objects import KubeObject

logger = logging.getLogger(__name__)

#: Seconds until a watch that failed is begun again.
RETRY_SECONDS = 1.0
RETRY_MAXIMUM_SECONDS = 30.0


class ApiChanges:
    """Watches in a thread of its own from the first :meth:`begin` on. Safe for threads.

    :param changed: called on that thread with each object that is there, was added, changed or deleted.
    :param kinds: gives the kinds that are watched.
    """

    def __init__(
        self,
        api: Callable[[], ApiClient | None],
        changed: Callable[[KubeObject], None],
        kinds: Callable[[], Sequence[type[KubeObject]]],
    ) -> None:
        self._api = api
        self._changed = changed
        self._kinds = kinds
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def begin(self) -> None:
        """Watch from now on; costs nothing when that is done already."""
        if self._threads or self._stop.is_set():
            return
        api = self._api()
        with self._lock:
            if self._threads or api is None:
                return
            from volumehost.api.client import MultiKindWatcher

            kinds = self._kinds()
            groups = [kinds] if isinstance(api, MultiKindWatcher) else [(kind,) for kind in kinds]
            self._threads = [
                threading.Thread(target=self._run, args=(api, group), name="volumehost-changes", daemon=True)
                for group in groups
            ]
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """End soon; nothing is told any more."""
        self._stop.set()

    def _run(self, api: ApiClient, kinds: Sequence[type[KubeObject]]) -> None:
        delay = RETRY_SECONDS
        while not self._stop.is_set():
            try:
                for event in self._events(api, kinds):
                    delay = RETRY_SECONDS
                    if self._stop.is_set():
                        return
                    if event.type != "BOOKMARK":
                        self._changed(event.object)
            except GoneError:
                logger.debug("the watch fell behind: all objects are looked at anew")
            except ApiError as error:
                if not self._stop.is_set():
                    logger.warning("watching objects failed, it is tried again: %s", error)
                    self._stop.wait(delay * random.uniform(1, 1.5))  # noqa: S311 - spreads retries, guards nothing
                    delay = min(2 * delay, RETRY_MAXIMUM_SECONDS)
            except Exception:
                logger.exception("a changed object could not be handed on: all are looked at anew")
                self._stop.wait(RETRY_SECONDS)

    def _events(self, api: ApiClient, kinds: Sequence[type[KubeObject]]) -> Iterator[WatchEvent[Any]]:
        from volumehost.api.client import MultiKindWatcher

        if isinstance(api, MultiKindWatcher):
            return api.watch_kinds(kinds, stop=self._stop.is_set)
        return api.watch(kinds[0], stop=self._stop.is_set)
