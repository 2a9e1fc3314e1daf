"""Takes back what a driver has published although nothing asks for it. Attacher and deletion of storage call it.

A ControllerPublishVolume that nobody waits for any more may take effect after the ControllerUnpublishVolume that was to
undo it. From then on the volume can neither be deleted nor published elsewhere, and nobody would ever release it
(BR-46, BR-47).
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from volumehost.control.attaching.attach_resync import published_nodes
from volumehost.control.attaching.attach_source import CALL_TIMEOUT, PUBLISH, attached_volume, csi_source
from volumehost.control.drivers import unique_csi_name
from volumehost.control.messages import without_secrets
from volumehost.control.secrets import read_secret
from volumehost.control.translation import translated
from volumehost.errors import FailedPreconditionError, SpecError

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, VolumeAttachment
    from volumehost.control.machinery.controller import ControlContext
    from volumehost.storage_driver import StorageDriver

logger = logging.getLogger(__name__)

#: Of how many nodes a volume is taken on suspicion, by a driver that cannot list where its volumes are.
MAX_SUSPECTS = 64


def release_strays(context: ControlContext, driver: StorageDriver, volume: PersistentVolume) -> list[str]:
    """Unpublish a volume from the nodes of this API that have no VolumeAttachment for it and do not use it.

    Only nodes that this API knows are looked at: the same volume may be published for somebody else's. Where the
    driver lists the nodes of its volumes, those are taken at its word; where not, each node is a suspect.

    :param volume: with its CSI source; a migrated one translated.
    :returns: the nodes that it was unpublished from.
    :raises StorageDriverError: the driver failed.
    """
    if not driver.capabilities().controls(PUBLISH):
        return []
    source = csi_source(volume, driver.name)
    handle = source.volume_handle
    suspects = _known_nodes(context, driver.name)
    for node in _attached_nodes(context, driver.name, handle) | _using_nodes(context, driver.name, handle):
        suspects.pop(node, None)
    listed = published_nodes(driver, handle) if suspects else None
    if listed is not None:
        suspects = {node: node_id for node, node_id in suspects.items() if node_id in listed}
    elif len(suspects) > MAX_SUSPECTS:
        logger.warning(
            "not looked for where it is still published, as there are %d nodes: driver=%s volume=%s",
            *(len(suspects), driver.name, handle),
        )
        return []
    secrets = read_secret(context.api, source.controller_publish_secret_ref) if suspects else {}
    for node, node_id in suspects.items():
        logger.warning("unpublished, as nothing asks for it: driver=%s volume=%s node=%s", driver.name, handle, node)
        with without_secrets(secrets):
            driver.unpublish_volume(handle, node_id, secrets, timeout=CALL_TIMEOUT)
    return list(suspects)


def _known_nodes(context: ControlContext, driver: str) -> dict[str, str]:
    """The nodes that run the driver, and what it calls them."""
    from volumehost.api.objects import CSINode

    nodes = context.api.list(CSINode).items
    return {
        node.metadata.name: each.node_id
        for node in nodes
        for each in node.spec.drivers
        if each.name == driver and each.node_id
    }


def _attached_nodes(context: ControlContext, driver: str, handle: str) -> set[str]:
    """Where it is attached, or may be: an attachment of which the volume cannot be known counts."""
    from volumehost.api.objects import VolumeAttachment

    def is_of_it(attachment: VolumeAttachment) -> bool:
        try:
            volume = translated(context.plugins, attached_volume(context.api, attachment))
            return csi_source(volume, driver).volume_handle == handle
        except (FailedPreconditionError, SpecError):
            return True

    attachments = context.api.list(VolumeAttachment).items
    return {each.spec.node_name for each in attachments if each.spec.attacher == driver and is_of_it(each)}


def _using_nodes(context: ControlContext, driver: str, handle: str) -> set[str]:
    """Whose status has it staged or mounted."""
    from volumehost.api.objects import Node

    name = unique_csi_name(driver, handle)
    using = {node.metadata.name for node in context.api.list(Node).items if name in node.status.volumes_in_use}
    return using | ({context.node_name} if context.volume_in_use(context.node_name, name) else set())


class PublishTurns:
    """Keeps apart, for each volume of a driver, publishing it and looking where it is published for nobody.

    Without that, what is being published right now could be taken for a stray. Safe for threads. Nobody waits: each
    turn tells whether it was given.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._publishing: Counter[tuple[str, str]] = Counter()
        self._releasing: set[tuple[str, str]] = set()

    @contextmanager
    def publishing(self, driver: str, handle: str) -> Iterator[bool]:
        """While ControllerPublishVolume is called; not while strays of the volume are released."""
        key = (driver, handle)
        with self._lock:
            is_free = key not in self._releasing
            self._publishing[key] += is_free
        try:
            yield is_free
        finally:
            with self._lock:
                self._publishing[key] -= is_free
                if not self._publishing[key]:
                    del self._publishing[key]

    @contextmanager
    def releasing(self, driver: str, handle: str) -> Iterator[bool]:
        """While strays are looked for; not while somebody publishes the volume."""
        key = (driver, handle)
        with self._lock:
            is_free = key not in self._publishing and key not in self._releasing
            if is_free:
                self._releasing.add(key)
        try:
            yield is_free
        finally:
            if is_free:
                with self._lock:
                    self._releasing.discard(key)
