"""What the controllers do with a cluster's objects; ``volumehost rbac --role controller`` prints it.

Whoever adds a call to a controller adds it here: a test compares the two.
"""

from __future__ import annotations

from typing import Final

from volumehost.daemon.rbac import WATCH, WATCH_AND_GET, Permission

CONTROLLER_PERMISSIONS: Final = (
    Permission("", "pods", WATCH, "which volumes are wanted on which node"),
    Permission("", "pods", ("create", "get", "delete"), "the pods that recycle volumes"),
    Permission("", "pods/finalizers", ("update",), "claims that block the end of their pod, where that is checked"),
    Permission("", "nodes", WATCH_AND_GET, "which volumes are still in use, and what is out of service"),
    Permission("", "nodes", ("update",), "a note of what a plugin without VolumeAttachments may have attached"),
    Permission("", "nodes/status", ("update",), "volumesAttached, which the node waits for"),
    Permission(
        "", "persistentvolumes", (*WATCH_AND_GET, "create", "update", "patch", "delete"), "binding and reclaiming"
    ),
    Permission("", "persistentvolumes/status", ("update",), "phases"),
    Permission(
        "",
        "persistentvolumeclaims",
        (*WATCH_AND_GET, "create", "update", "patch", "delete"),
        "binding, ephemeral volumes",
    ),
    Permission("", "persistentvolumeclaims/status", ("update",), "phases, and how far an expansion is"),
    Permission("", "events", ("list", "create", "patch"), "what happened; of recycler pods, told on their volumes"),
    Permission("storage.k8s.io", "storageclasses", WATCH, "who provisions, and when"),
    Permission("storage.k8s.io", "csidrivers", WATCH, "what is attached at all"),
    Permission("storage.k8s.io", "csinodes", WATCH, "how many volumes a node takes"),
    Permission("storage.k8s.io", "csistoragecapacities", WATCH, "where there is room"),
    Permission("storage.k8s.io", "volumeattributesclasses", WATCH, "what a claim asks of its volume"),
    Permission("storage.k8s.io", "volumeattachments", (*WATCH_AND_GET, "create", "delete"), "attach and detach"),
    Permission("snapshot.storage.k8s.io", "volumesnapshots", WATCH, "what a claim's volume begins as"),
    Permission("coordination.k8s.io", "leases", ("create", "get", "update"), "who leads", own_namespace=True),
)

#: What is done besides for the drivers of ``--csi-driver``; the sidecars that this replaces have such roles too.
SIDECAR_PERMISSIONS: Final = (
    Permission("", "secrets", ("get",), "secrets that storage classes and the like name"),
    Permission("storage.k8s.io", "volumeattachments", ("update", "patch"), "finalizers of what is attached"),
    Permission("storage.k8s.io", "volumeattachments/status", ("update",), "whether it is attached"),
    Permission("snapshot.storage.k8s.io", "volumesnapshots", ("get", "update", "patch"), "their finalizers"),
    Permission("snapshot.storage.k8s.io", "volumesnapshots/status", ("update",), "how far a snapshot is"),
    Permission(
        "snapshot.storage.k8s.io",
        "volumesnapshotcontents",
        (*WATCH_AND_GET, "create", "update", "patch", "delete"),
        "the snapshots that drivers have",
    ),
    Permission("snapshot.storage.k8s.io", "volumesnapshotcontents/status", ("update",), "how far a snapshot is"),
    Permission("snapshot.storage.k8s.io", "volumesnapshotclasses", WATCH, "how snapshots are taken"),
)
