"""What can be asked of a pod besides its own changes: binding it to a node, evicting it."""

from __future__ import annotations

import copy

from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.deleting import delete_stored
from volumehost.testing.api_server.failures import bad_request, conflict
from volumehost.testing.api_server.messages import Answer, answer
from volumehost.testing.api_server.resources import find
from volumehost.testing.api_server.routing import Route
from volumehost.testing.api_server.storage import Document

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(cluster: Cluster, where: Route, binding: Document, *, dry: bool) -> Answer:
    """Give a pod its node.

    :raises StatusError: there is no such pod, or it has one.
    """
    pods = find("pods")
    node = (binding.get("target") or {}).get("name", "")
    if not node:
        raise bad_request("target.name: Required value")
    with cluster.storage.lock:
        stored = cluster.existing(pods, (where.namespace, where.name))
        pod = copy.deepcopy(stored.document)
        if "deletionTimestamp" in pod["metadata"]:
            raise conflict(pods, where.name, f"pod {where.name} is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            raise conflict(
                pods, where.name, f'pod {where.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            )
        pod["spec"]["nodeName"] = node
        pod["metadata"]["annotations"] = {
            **pod["metadata"].get("annotations", {}),
            **(binding.get("metadata") or {}).get("annotations", {}),
        }
        if not pod["metadata"]["annotations"]:
            del pod["metadata"]["annotations"]
        conditions = [item for item in pod["status"].get("conditions", ()) if item.get("type") != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": cluster.now()}
        pod["status"]["conditions"] = [*conditions, scheduled]
        if not dry:
            cluster.storage.put(pods, pod)
    return answer(_SUCCESS, 201)


def evict(cluster: Cluster, where: Route, eviction: Document) -> Answer:
    """Delete a pod as an eviction does. Disruption budgets are not looked at.

    :raises StatusError: there is no such pod.
    """
    with cluster.storage.lock:
        delete_stored(cluster, find("pods"), (where.namespace, where.name), eviction.get("deleteOptions") or {})
    return answer(_SUCCESS, 201)
