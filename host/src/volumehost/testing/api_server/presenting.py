"""How objects are written: some fields always are, empty or null, since that is how a server's own types are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Document = dict[str, Any]


def presented(document: Document) -> Document:
    """The document with the fields that are always written; what is given is not changed."""
    present = _PRESENTERS.get((document["apiVersion"].partition("/")[0], document["kind"]))
    return document if present is None else present(document)


def _with(document: Document, field: str, defaults: Document) -> Document:
    return document | {field: defaults | (document.get(field) or {})}


def _event(event: Document) -> Document:
    empty: Document = {
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
    return event | {field: event.get(field, value) for field, value in empty.items()}


def _new_event(event: Document) -> Document:
    empty: Document = {
        "eventTime": None,
        "regarding": {},
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    return event | {field: event.get(field, value) for field, value in empty.items()}


def _attachment(attachment: Document) -> Document:
    attachment = _with(attachment, "spec", {"attacher": "", "source": {}, "nodeName": ""})
    attachment = _with(attachment, "status", {"attached": False})
    status = attachment["status"]
    for field in ("attachError", "detachError"):
        if field in status:
            status[field] = {"time": None} | status[field]
    return attachment


def _csi_node(node: Document) -> Document:
    return _with(node, "spec", {"drivers": None})


def _conditions(*times: str) -> Callable[[Document], Document]:
    """A presenter for kinds with conditions, which have these times."""
    empty = dict.fromkeys(times)

    def present(document: Document) -> Document:
        status = document.get("status") or {}
        if "conditions" not in status:
            return document
        return _with(document, "status", {}) | {
            "status": status | {"conditions": [empty | condition for condition in status["conditions"]]}
        }

    return present


def _role(role: Document) -> Document:
    return role if "rules" in role else role | {"rules": None}


_PRESENTERS: dict[tuple[str, str], Callable[[Document], Document]] = {
    ("v1", "Event"): _event,
    ("events.k8s.io", "Event"): _new_event,
    ("storage.k8s.io", "VolumeAttachment"): _attachment,
    ("storage.k8s.io", "CSINode"): _csi_node,
    ("v1", "Pod"): _conditions("lastProbeTime", "lastTransitionTime"),
    ("v1", "PersistentVolumeClaim"): _conditions("lastProbeTime", "lastTransitionTime"),
    ("v1", "Node"): _conditions("lastHeartbeatTime", "lastTransitionTime"),
    ("rbac.authorization.k8s.io", "Role"): _role,
    ("rbac.authorization.k8s.io", "ClusterRole"): _role,
}

_EMPTY: dict[str, Document] = {
    "Pod": {"spec": {"containers": None}, "status": {}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "PersistentVolume": {"spec": {}, "status": {}},
    "Node": {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": {}}},
    "StorageClass": {"provisioner": ""},
    "CSIDriver": {"spec": {}},
    "Lease": {"spec": {}},
}


def empty_object(api_version: str, kind: str, metadata: Document) -> Document:
    """An object without content, as a bookmark carries it."""
    return presented({"kind": kind, "apiVersion": api_version, "metadata": metadata} | _EMPTY.get(kind, {}))
