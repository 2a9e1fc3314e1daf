"""Annotations, finalizers and phases that controllers read and leave behind (PVC-01, PVC-02)."""

from __future__ import annotations

#: On a claim: its binding is finished.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
#: On a claim or a volume: a controller, not the user, set its reference to the other.
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
#: On a volume: the provisioner that made it.
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
#: On a volume: the CSI driver that took it over from a plugin of Kubernetes' own.
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
#: On a claim: the node that its first consumer will run on.
SELECTED_NODE = "volume.kubernetes.io/selected-node"
#: On a claim: who is to provision for it.
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
#: On a volume: the secret that deleting it needs.
DELETION_SECRET_NAME = "volume.kubernetes.io/provisioner-deletion-secret-name"  # noqa: S105 - a name, no secret
DELETION_SECRET_NAMESPACE = "volume.kubernetes.io/provisioner-deletion-secret-namespace"  # noqa: S105 - a name, no secret
#: On a storage class: it is the one for claims that name none.
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"

#: On a volume whose storage is deleted through a driver.
PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
#: On a volume whose storage is deleted through a volume plugin.
IN_TREE_FINALIZER = "kubernetes.io/pv-controller"
#: On a pod: volumes may still be mounted for it on its node.
HELD_BY_NODE = "volumehost.io/volumes"
#: On a claim from which a clone is being made.
CLONING_FINALIZER = "provisioner.storage.kubernetes.io/cloning-protection"
#: On a claim for which a volume may have been created that no PersistentVolume tells of yet.
PROVISIONING_FINALIZER = "volumehost.io/provisioning"
#: Beside it: what was asked of the driver, so that exactly that can be asked again.
PROVISIONING_INTENT = "volumehost.io/provisioning"

#: A storage class with this provisioner has only volumes that somebody made by hand.
NO_PROVISIONER = "kubernetes.io/no-provisioner"

#: Phases of a pod whose workload is over (BR-51).
FINISHED_PHASES = frozenset({"Succeeded", "Failed"})
