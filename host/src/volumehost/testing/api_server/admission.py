"""Admission: what the plugins that a real server has on by default change or refuse, as far as volumes meet it."""

from __future__ import annotations

from typing import Any

from volumehost.errors import QuantityError
from volumehost.sdk.quantity import parse_quantity
from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.failures import forbidden
from volumehost.testing.api_server.resources import Resource, find
from volumehost.testing.api_server.storage import Document

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_MIRROR = "kubernetes.io/config.mirror"
_TOLERATIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_new(cluster: Cluster, resource: Resource, document: Document) -> None:
    """Change a new object, which has its name, or refuse it.

    :raises StatusError: it is refused (403).
    """
    if resource.plural == "persistentvolumeclaims":
        _default_class(cluster, document)
    elif resource.plural == "pods":
        _tolerations(document)
        if cluster.service_accounts and _MIRROR not in document["metadata"].get("annotations", {}):
            _service_account(cluster, resource, document)
    elif resource.plural == "nodes":
        taints = document.setdefault("spec", {}).setdefault("taints", [])
        if not any(taint.get("key") == _TOLERATIONS[0] for taint in taints):
            taints.append({"key": _TOLERATIONS[0], "effect": "NoSchedule"})


def admit_change(cluster: Cluster, resource: Resource, document: Document, old: Document) -> None:
    """Refuse a change.

    :raises StatusError: it is refused (403).
    """
    if resource.plural == "persistentvolumeclaims":
        _resize(cluster, resource, document, old)


def _default_class(cluster: Cluster, claim: Document) -> None:
    """DefaultStorageClass: a claim that names none gets the newest of the default classes."""
    if "storageClassName" in claim.get("spec", {}) or _BETA_CLASS in claim["metadata"].get("annotations", {}):
        return
    classes = [
        stored.document["metadata"]
        for _key, stored in cluster.storage.all(find("storageclasses"))
        if stored.document["metadata"].get("annotations", {}).get(_DEFAULT_CLASS) == "true"
    ]
    if classes:
        newest = max(classes, key=lambda metadata: str(metadata["creationTimestamp"]))
        claim["spec"]["storageClassName"] = newest["name"]


def _resize(cluster: Cluster, resource: Resource, claim: Document, old: Document) -> None:
    """PersistentVolumeClaimResize: only what is bound and of a class that allows it grows."""
    if _asked(claim) <= _asked(old):
        return
    name = claim["metadata"]["name"]
    if old.get("status", {}).get("phase") != "Bound":
        raise forbidden(resource, name, "Only bound persistent volume claims can be expanded")
    class_name = old["spec"].get("storageClassName") or old["metadata"].get("annotations", {}).get(_BETA_CLASS, "")
    stored = cluster.storage.get(find("storageclasses"), ("", class_name))
    if stored is None or not stored.document.get("allowVolumeExpansion"):
        raise forbidden(
            resource,
            name,
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
            "resize",
        )


def _asked(claim: Document) -> Any:
    text = claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage", "0")
    try:
        return parse_quantity(text)
    except QuantityError:
        return parse_quantity("0")


def _tolerations(pod: Document) -> None:
    """DefaultTolerationSeconds."""
    tolerations = list(pod["spec"].get("tolerations", ()))
    for key in _TOLERATIONS:
        covered = any(
            found.get("key", key) == key and found.get("effect", "NoExecute") == "NoExecute" for found in tolerations
        )
        if not covered:
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            )
    pod["spec"]["tolerations"] = tolerations


def _service_account(cluster: Cluster, resource: Resource, pod: Document) -> None:
    """ServiceAccount: the account must be there, and the pod gets a volume with a token of it."""
    metadata, spec = pod["metadata"], pod["spec"]
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    stored = cluster.storage.get(find("serviceaccounts"), (metadata["namespace"], name))
    if stored is None:
        raise forbidden(
            resource,
            metadata["name"],
            f'error looking up service account {metadata["namespace"]}/{name}: serviceaccount "{name}" not found',
        )
    wanted = spec.get("automountServiceAccountToken", stored.document.get("automountServiceAccountToken", True))
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    lacking = [
        container
        for container in containers
        if not any(mount.get("mountPath") == _TOKEN_PATH for mount in container.get("volumeMounts", ()))
    ]
    if not wanted or not lacking:
        return
    volume = f"kube-api-access-{cluster.suffix()}"
    spec["volumes"] = [*spec.get("volumes", ()), _access_volume(volume)]
    for container in lacking:
        mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH}
        container["volumeMounts"] = [*container.get("volumeMounts", ()), mount]


def _access_volume(name: str) -> Document:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
            ],
        },
    }
