"""What the controllers do with a cluster's objects; ``volumehost rbac --role controller`` prints it.

Whoever adds a call to a controller adds it here: a test compares the two.
"""

from __future__ import annotations

from typing import Final

from volumehost.daemon.rbac import Permission

_READ: Final = ("get", "list", "watch")

CONTROLLER_PERMISSIONS: Final = (
    Permission("", "pods", _READ, "which volumes are wanted on which node"),
    Permission("", "nodes", _READ, "which volumes are still in use, and what is out of service"),
    Permission("", "nodes/status", ("patch",), "volumesAttached, which the node waits for"),
    Permission("", "persistentvolumes", (*_READ, "create", "update", "patch", "delete"), "binding and reclaiming"),
    Permission("", "persistentvolumes/status", ("patch", "update"), "phases"),
    Permission("", "persistentvolumeclaims", (*_READ, "create", "update", "patch", "delete"), "binding"),
    Permission("", "persistentvolumeclaims/status", ("patch", "update"), "phases, and how far an expansion is"),
    Permission("", "events", ("create", "patch"), "what happened, told on the object"),
    Permission("storage.k8s.io", "storageclasses", _READ, "who provisions, and when"),
    Permission("storage.k8s.io", "csidrivers", _READ, "what is attached at all"),
    Permission("storage.k8s.io", "csinodes", _READ, "how many volumes a node takes"),
    Permission(
        "storage.k8s.io", "volumeattachments", (*_READ, "create", "update", "patch", "delete"), "attach and detach"
    ),
    Permission("coordination.k8s.io", "leases", ("create",), "the first term of a leader", own_namespace=True),
    Permission("coordination.k8s.io", "leases", ("get", "update"), "who leads", own_namespace=True),
)
