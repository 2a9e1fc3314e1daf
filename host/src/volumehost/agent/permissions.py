"""What the agent of a node does with a cluster's objects; ``volumehost rbac --role node`` prints it.

Whoever adds a call to the agent adds it here: a test compares the two.
"""

from __future__ import annotations

from typing import Final

from volumehost.daemon.rbac import WATCH, WATCH_AND_GET, Permission

#: RBAC cannot say "of this node"; the agent itself asks for no other node's pods and writes no other node's objects.
NODE_PERMISSIONS: Final = (
    Permission("", "pods", WATCH_AND_GET, "the pods of this node, whose volumes are mounted"),
    Permission("", "nodes", (*WATCH, "patch"), "annotations and labels that storage drivers ask for"),
    Permission("", "nodes/status", ("patch",), "volumesInUse, so that no volume is detached that is mounted"),
    Permission(
        "", "persistentvolumeclaims", WATCH_AND_GET, "which volume a claim is bound to, and how large it should be"
    ),
    Permission("", "persistentvolumeclaims/status", ("update",), "the size that the filesystem has grown to"),
    Permission("", "persistentvolumes", WATCH, "where the volumes are"),
    Permission("", "secrets", ("get",), "volumes made of secrets, and the secrets that drivers are given"),
    Permission("", "configmaps", ("get",), "volumes made of configMaps"),
    Permission("", "serviceaccounts/token", ("create",), "tokens in projected volumes, and for drivers that want them"),
    Permission("", "serviceaccounts", ("get",), "whose certificate it is, of pod certificates in projected volumes"),
    Permission("certificates.k8s.io", "podcertificaterequests", ("create", "get"), "these certificates"),
    Permission("certificates.k8s.io", "clustertrustbundles", ("get", "list"), "trust anchors in projected volumes"),
    Permission("", "events", ("create", "patch"), "what happened to a pod's volumes, told on the pod"),
    Permission(
        "storage.k8s.io", "csinodes", (*WATCH_AND_GET, "create", "update", "delete"), "the drivers of this node"
    ),
    Permission("storage.k8s.io", "csidrivers", WATCH, "what the drivers want"),
    Permission("storage.k8s.io", "volumeattachments", WATCH_AND_GET, "what the attachment tells of the device"),
)
