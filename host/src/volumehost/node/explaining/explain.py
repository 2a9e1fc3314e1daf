"""Why the volumes of a pod are not mounted, or not gone: from the manager at work, or from its records.

For ``VolumeManager.explain``, ``volumehost explain``, the agent's service, and the errors of waits. Touches no mount.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from volumehost.errors import ObjectNotFoundError
from volumehost.node.explaining.explanation import PodExplanation

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod
    from volumehost.node.assembly import NodeParts
    from volumehost.node.status import PodStatus


def explain_live(parts: NodeParts, pod: Pod | PodStatus) -> PodExplanation:
    """What the manager at work knows of the pod.

    :param pod: the pod as the API has it, or, of a pod that is in no API any more, its status.
    """
    from volumehost.node.status import PodStatus

    status = parts.status.of_leftover(pod.uid) if isinstance(pod, PodStatus) else parts.status.of_pod(pod)
    return PodExplanation(
        status.namespace, status.name, status.uid, status.state, status.ready, "not explained yet", live=True
    )


def explain_recorded(
    root_dir: str | os.PathLike[str], store: ApiClient | None, namespace: str, name: str
) -> PodExplanation:
    """What journal, store and mount table tell of the pod; takes no lock and changes nothing.

    :param store: the API; by default the embedded store in the root directory, if there is one.
    :param name: the pod's name, or its uid when only the disk knows it.
    :raises ObjectNotFoundError: neither the API nor the disk knows the pod.
    :raises RootDirectoryError: the journal cannot be read.
    """
    from volumehost.node.recorded_status import read_status

    found = read_status(root_dir, api=store)
    for status in found.pods:
        if (status.namespace, status.name) == (namespace, name) or status.uid == name:
            return PodExplanation(
                status.namespace, status.name, status.uid, status.state, status.ready, "not explained yet", live=False
            )
    raise ObjectNotFoundError(
        f"there is no pod {namespace}/{name}",
        subject=name,
        hint="'volumehost status' lists what there is; -n names another namespace",
    )
