"""A host for trying plugins: they are initialised as on a node, in an empty directory, with neither API nor mounts.

``volumehost plugins check`` uses it.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from volumehost.errors import VolumeHostError
from volumehost.hosts.config import HostConfig
from volumehost.hosts.node_host import NodeHost
from volumehost.mount.removal import remove_all_one_filesystem

logger = logging.getLogger(__name__)


@contextmanager
def trial_host(config: HostConfig, node_name: str | None = None) -> Iterator[NodeHost]:
    """A node's host with the node's configuration, below a temporary directory that is removed afterwards.

    :param config: what plugins are told, as on the node that they will run on.
    """
    directory = tempfile.mkdtemp(prefix="volumehost-trial-")
    try:
        yield NodeHost(directory, node_name=node_name, config=config)
    finally:
        try:
            remove_all_one_filesystem(directory)
        except VolumeHostError as error:  # what a plugin mounted in its init is the plugin's fault, and worth a word
            logger.error("%s is left behind: %s", directory, error)  # noqa: TRY400
