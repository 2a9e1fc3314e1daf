"""Whether the store is still the one that told of the pods which are mounted.

A pod that *it* lacks was taken out of it, which is a word. A store that was lost, with another one in its place, says
nothing of them: they stay mounted until a command names them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from volumehost.errors import ApiError
from volumehost.sdk.file_replacement import replace_file

if TYPE_CHECKING:
    from collections.abc import Collection

    from volumehost.api.client import ApiClient
    from volumehost.node.assembly import NodeParts

logger = logging.getLogger(__name__)


class StoreWitness:
    """Knows the store that was used last by a file in the root directory; a cluster by the uid of the Node there."""

    def __init__(self, parts: NodeParts, api: ApiClient) -> None:
        self._parts = parts
        self._api = api
        self._path = parts.host.layout.store_identity_file()

    def pods_to_keep(self, told: Collection[str]) -> list[str]:
        """UIDs of pods that are mounted and were not told, and of which that means nothing, since the store is another.

        :param told: the UIDs of all pods that there are, by the store and whoever else tells of pods.
        """
        identity, former = self._identity(), self._recorded()
        kept: list[str] = []
        if identity and former and identity != former:
            ended = self._parts.populator.has_ended
            kept = [uid for uid in self._parts.services.actual.pods() if uid not in told and not ended(uid)]
        if kept:
            what = "Node object, or the cluster," if self._parts.in_cluster else "store"
            note = (
                f"the {what} is another one than before: the pods that it does not know ({len(kept)}) stay mounted "
                "until 'volumehost unmount' names them by their uid"
            )
            logger.error("%s: %s", note, ", ".join(sorted(kept)))
            self._parts.status.warning = note
        elif identity and identity != former:
            self._remember(identity)
        return kept

    def _identity(self) -> str:
        attachments = self._parts.services.attachments
        if attachments is not None:
            return f"node {attachments.node_uid}" if attachments.node_uid else ""
        try:
            return str(getattr(self._api, "identity", ""))
        except ApiError as error:
            logger.debug("which store this is cannot be told: %s", error)
            return ""

    def _recorded(self) -> str:
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                return file.read(100).strip()
        except FileNotFoundError:
            return ""
        except OSError as error:
            logger.warning("which store was used last cannot be read: %s: %s", self._path, error.strerror)
            return "unknown"

    def _remember(self, identity: str) -> None:
        try:
            replace_file(self._path, f"{identity}\n".encode())
        except OSError as error:
            logger.warning("which store is used cannot be recorded: %s: %s", self._path, error.strerror)
