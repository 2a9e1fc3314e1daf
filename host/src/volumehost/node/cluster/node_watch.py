"""Follows one Node object by a watch, and tells each of its states. Used by the attachments of a node in a cluster."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from volumehost.errors import GoneError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Node

logger = logging.getLogger(__name__)

#: Seconds until what failed is tried again: the first time, and at most.
RETRY_SECONDS: Final = 0.5
RETRY_MAXIMUM_SECONDS: Final = 30.0


class NodeWatch:
    """One thread, from :meth:`start` to :meth:`stop`.

    :param seen: called on that thread with the Node as it is, then after each change; with None where there is none.
    """

    def __init__(
        self, node_name: str, api: Callable[[], ApiClient | None], seen: Callable[[Node | None], None]
    ) -> None:
        #: Why the Node is not known, "" when it is.
        self.problem = ""
        self._node_name = node_name
        self._api = api
        self._seen = seen
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin; returns at once."""
        threading.Thread(target=self._run, name="volumehost-node-watch", daemon=True).start()

    def stop(self) -> None:
        """End soon."""
        self._stop.set()

    def tell_problem(self, problem: str) -> None:
        """It is in the log once, and in :attr:`problem` until there is none any more."""
        if problem:
            log = logger.debug if problem == self.problem else logger.warning
            log("the Node %s: %s", self._node_name, problem)
        self.problem = problem

    def _run(self) -> None:
        delay = RETRY_SECONDS
        while not self._stop.is_set():
            try:
                for state in self._states():
                    delay = RETRY_SECONDS
                    self._seen(state)
            except GoneError:
                logger.debug("the watch of the Node fell behind: it is read anew")
            except VolumeHostError as error:
                if self._stop.is_set():
                    return
                self.tell_problem(str(error))
                self._stop.wait(delay * random.uniform(1.0, 1.2))  # noqa: S311 - spreads retries, guards nothing
                delay = min(2 * delay, RETRY_MAXIMUM_SECONDS)
            except Exception:
                logger.exception("the Node %s cannot be followed, it is read anew", self._node_name)
                self._stop.wait(RETRY_MAXIMUM_SECONDS)

    def _states(self) -> Iterable[Node | None]:
        from volumehost.api.objects import Node

        api = self._api()
        if api is None:
            self._stop.wait()
            return
        listed = api.list(Node)
        yield next((node for node in listed.items if node.metadata.name == self._node_name), None)
        for event in api.watch(Node, resource_version=listed.resource_version, stop=self._stop.is_set):
            if event.type != "BOOKMARK" and event.object.metadata.name == self._node_name:
                yield None if event.type == "DELETED" else event.object
