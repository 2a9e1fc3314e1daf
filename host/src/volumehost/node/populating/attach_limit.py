"""Whether a node can take one more volume of a kind (VM-07, CSI-PLUG-25), for those that wait to be attached."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from volumehost.hookspecs import AttachableVolumePlugin

if TYPE_CHECKING:
    from volumehost.node.state.desired import VolumeUse

logger = logging.getLogger(__name__)

#: Reason of the event that the node has no attachment left for a volume (VM-07).
LIMIT_EXCEEDED = "VolumeAttachmentLimitExceeded"


def is_exhausted(use: VolumeUse) -> bool:
    """Whether its plugin says that no further volume of its kind can be attached; False where it cannot tell."""
    if not use.plugin.supports(AttachableVolumePlugin):
        return False
    try:
        return bool(use.plugin.verify_exhausted_resource(use.spec))
    except Exception:
        logger.debug("whether the node is at its limit for %s is not known", use.volume, exc_info=True)
        return False


def limit_message(use: VolumeUse) -> str:
    """What is said of it."""
    return f"this node cannot take another volume like {use.inner_name} of {use.plugin.name}"
