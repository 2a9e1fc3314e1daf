"""Mirror pods: static pods as objects of the store, so that commands and managers without the agent know of them.

Best effort: a static pod is mounted without the store too (BR-54).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from volumehost.api.objects import Pod

#: Marks the object of a static pod in the API; its value is the pod's configuration hash.
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"


def is_mirror(pod: Pod) -> bool:
    """Whether the object only shows a static pod."""
    return MIRROR_ANNOTATION in pod.metadata.annotations
