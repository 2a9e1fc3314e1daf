"""What the agent of a node does with a cluster's objects; ``volumehost rbac --role node`` prints it.

Whoever adds a call to the agent adds it here: a test compares the two.
"""

from __future__ import annotations

from typing import Final

from volumehost.daemon.rbac import Permission

_READ: Final = ("list", "watch")

#: RBAC cannot say "of this node"; the agent itself asks for no other node's pods and writes no other node's objects.
NODE_PERMISSIONS: Final = (
    Permission("", "pods", ("get", *_READ), "the pods of this node, whose volumes are mounted"),
    Permission("", "nodes", (*_READ, "patch"), "annotations and labels that storage drivers ask for"),
    Permission("", "nodes/status", ("patch",), "volumesInUse, so that no volume is detached that is mounted"),
    Permission("", "persistentvolumeclaims", _READ, "which volume a claim is bound to, and how large it should be"),
    Permission("", "persistentvolumeclaims/status", ("update",), "the size that the filesystem has grown to"),
    Permission("", "persistentvolumes", _READ, "where the volumes are"),
    Permission("", "secrets", ("get",), "volumes made of secrets, and the secrets that drivers are given"),
    Permission("", "configmaps", ("get",), "volumes made of configMaps"),
    Permission("", "serviceaccounts/token", ("create",), "tokens in projected volumes, and for drivers that want them"),
    Permission("", "events", ("create", "patch"), "what happened to a pod's volumes, told on the pod"),
    Permission("storage.k8s.io", "csinodes", (*_READ, "create", "update", "delete"), "the drivers of this node"),
    Permission("storage.k8s.io", "csidrivers", _READ, "what the drivers want"),
    Permission("storage.k8s.io", "volumeattachments", ("get", *_READ), "what the attachment tells of the device"),
)
