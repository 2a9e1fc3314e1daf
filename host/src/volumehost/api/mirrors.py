"""Mirror pods: objects that only show a pod which comes from elsewhere, a static manifest of the node for example."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject

#: Marks such an object; its value is the uid of the pod itself.
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"

_UID = re.compile(r"[0-9a-f]{32}")


def is_mirror(obj: KubeObject) -> bool:
    """Whether the object only shows a pod."""
    return MIRROR_ANNOTATION in obj.metadata.annotations


def mirrored_uid(obj: KubeObject) -> str | None:
    """The uid of the pod that is shown, which the embedded store gives to the object too; None for any other object.

    So whoever finds the pod's volumes finds its object, and the other way round.
    """
    uid = obj.metadata.annotations.get(MIRROR_ANNOTATION, "")
    return uid if obj.kind == "Pod" and _UID.fullmatch(uid) else None
