"""What a server fills in: what ``volumehost.api.defaults`` knows, and what a pod and a node get besides."""

from __future__ import annotations

from typing import Any

import msgspec

from volumehost.api.convert import to_wire
from volumehost.api.defaults import set_create_defaults, set_defaults
from volumehost.api.merging import merge_known
from volumehost.api.objects import KubeObject, ObjectMeta
from volumehost.api.schema import shape_of
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.storage import Document


def typed(resource: Resource, document: Document) -> Any:
    """The document as a light type, of what is left of one where the kind has none."""
    struct = resource.known.struct
    if struct is KubeObject:
        return KubeObject(
            api_version=document["apiVersion"],
            kind=document["kind"],
            metadata=msgspec.convert(document["metadata"], type=ObjectMeta),
        )
    return msgspec.convert(document, type=struct)


def with_defaults(resource: Resource, document: Document, *, new: bool) -> Document:
    """The document with its defaults; nothing of it is lost.

    :param new: whether it gets what only new objects get: protection finalizers and a first phase.
    """
    struct = resource.known.struct
    if struct is not KubeObject:
        obj = set_defaults(typed(resource, document))
        if new:
            set_create_defaults(obj)
        document = merge_known(document, to_wire(obj), shape_of(struct))
        document = {key: document[key] for key in _order(document)}
    fill = _FILLERS.get(resource.plural)
    if fill is not None:
        fill(document)
    if new and resource.plural == "namespaces":
        document["spec"] = {"finalizers": ["kubernetes"]}
        document["status"] = {"phase": "Active"}
        metadata = document["metadata"]
        metadata["labels"] = {"kubernetes.io/metadata.name": metadata["name"], **metadata.get("labels", {})}
    return document


def _order(document: Document) -> list[str]:
    first = [key for key in ("apiVersion", "kind", "metadata", "spec", "data") if key in document]
    return first + [key for key in document if key not in first]


def _pod(pod: Document) -> None:
    spec = pod.setdefault("spec", {})
    for key, value in (
        ("dnsPolicy", "ClusterFirst"),
        ("enableServiceLinks", True),
        ("preemptionPolicy", "PreemptLowerPriority"),
        ("priority", 0),
        ("restartPolicy", "Always"),
        ("schedulerName", "default-scheduler"),
        ("securityContext", {}),
        ("terminationGracePeriodSeconds", 30),
    ):
        spec.setdefault(key, value)
    for key in ("initContainers", "containers", "ephemeralContainers"):
        if key in spec:
            spec[key] = [_container(container) for container in spec[key]]
    for volume in spec.get("volumes", ()):
        if "hostPath" in volume:
            volume["hostPath"].setdefault("type", "")
    status = pod.setdefault("status", {})
    status.setdefault("phase", "Pending")
    status.setdefault("qosClass", _quality(spec))


def _container(container: Document) -> Document:
    image = container.get("image", "")
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    return {
        "imagePullPolicy": "Always" if latest and "@" not in image else "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    } | container


def _quality(spec: Document) -> str:
    resources = [container.get("resources") or {} for container in spec.get("containers", ())]
    if not any(found.get("requests") or found.get("limits") for found in resources):
        return "BestEffort"
    sure = all(
        found.get("limits", {}).keys() >= {"cpu", "memory"}
        and found.get("requests", found["limits"]) == found["limits"]
        for found in resources
    )
    return "Guaranteed" if sure else "Burstable"


def _persistent_volume(volume: Document) -> None:
    if "hostPath" in volume.get("spec", {}):
        volume["spec"]["hostPath"].setdefault("type", "")


def _node(node: Document) -> None:
    status = node.setdefault("status", {})
    # These are always written.
    status["nodeInfo"] = dict.fromkeys(_NODE_INFO, "") | (status.get("nodeInfo") or {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})


_NODE_INFO = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"),
    *("kubeProxyVersion", "operatingSystem", "architecture"),
)
_FILLERS = {"nodes": _node, "pods": _pod, "persistentvolumes": _persistent_volume}
