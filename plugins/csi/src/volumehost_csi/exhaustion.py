"""Whether a volume cannot be attached because the node is at the driver's limit (CSI-PLUG-24)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from volumehost.errors import VolumeHostError
from volumehost_csi.names import attachment_name
from volumehost_csi.source import persistent_source

if TYPE_CHECKING:
    from volumehost.spec import Spec
    from volumehost_csi.services import Services

logger = logging.getLogger(__name__)

_RESOURCE_EXHAUSTED: Final = 8


def attach_limit_exceeded(services: Services, spec: Spec) -> bool:
    """Whether attaching failed with RESOURCE_EXHAUSTED; then the node's limit is asked for anew at once.

    False where the CSIDriver object sets no ``nodeAllocatableUpdatePeriodSeconds``, and where nothing is known.
    """
    from volumehost.api.objects import VolumeAttachment

    try:
        source = persistent_source(spec)
        if services.driver_objects.treatment(source.driver).allocatable_period is None:
            return False
        name = attachment_name(source.volume_handle, source.driver, services.node_name)
        error = services.require_api("looking at a VolumeAttachment").get(VolumeAttachment, name).status.attach_error
    except VolumeHostError as problem:
        logger.debug("whether %s is at its limit is not known: %s", spec.name(), problem)
        return False
    if error is None or error.error_code != _RESOURCE_EXHAUSTED:
        return False
    try:
        services.refresh_node_info(source.driver)
    except VolumeHostError as problem:
        logger.warning("the limit of the CSI driver %s on this node cannot be refreshed: %s", source.driver, problem)
    return True
