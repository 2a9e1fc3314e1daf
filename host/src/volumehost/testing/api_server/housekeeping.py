"""What controllers of every cluster do that clients rely on: garbage collection, protection of storage, accounts."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from volumehost.api.defaults import PV_PROTECTION_FINALIZER, PVC_PROTECTION_FINALIZER
from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.deleting import delete_stored
from volumehost.testing.api_server.resources import Resource, find, of_document, resources
from volumehost.testing.api_server.storage import Document, Key
from volumehost.testing.api_server.writing import keep

_PATIENCE = 5.0
_DONE = ("Succeeded", "Failed")


class Housekeeping:
    """Controllers that run in a thread of their own, after each change.

    :param jobs: what they do, once; each returns how much there was to do.
    """

    def __init__(self, cluster: Cluster, jobs: Sequence[Callable[[Cluster], int]]) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self._thread = threading.Thread(target=self._run, name="api-server-controllers", daemon=True)

    def start(self) -> None:
        """Begin, unless there is nothing to do ever."""
        if self._jobs:
            self._thread.start()

    def join(self) -> None:
        """Wait for the end, which the cluster's ``stopping`` brings."""
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        storage, stopping = self._cluster.storage, self._cluster.stopping
        while not stopping.is_set():
            with storage.lock:
                seen = storage.revision
                for job in self._jobs:
                    job(self._cluster)
                while storage.revision == seen and not stopping.is_set():
                    storage.changed.wait()


def collect_garbage(cluster: Cluster) -> int:
    """Delete objects that have owners none of which exists under the uid that they name; returns how many."""
    with cluster.storage.lock:
        return sum(_collect(cluster, *found) for found in list(_owned(cluster)))


def _owned(cluster: Cluster) -> Iterator[tuple[str, Key, Document]]:
    for resource, key, stored in cluster.storage.everything():
        metadata = stored.document["metadata"]
        if metadata.get("ownerReferences") and "deletionTimestamp" not in metadata:
            yield resource, key, stored.document


def _collect(cluster: Cluster, resource: str, key: Key, document: Document) -> bool:
    if any(_exists(cluster, owner, key[0]) for owner in document["metadata"]["ownerReferences"]):
        return False
    delete_stored(cluster, _by_key(resource), key, {})
    return True


def _exists(cluster: Cluster, owner: Document, namespace: str) -> bool:
    try:
        resource = of_document(owner.get("apiVersion", ""), owner.get("kind", ""))
    except LookupError:
        return True  # the collector leaves alone what it cannot look up
    stored = cluster.storage.get(resource, (namespace if resource.namespaced else "", owner.get("name", "")))
    return stored is not None and stored.document["metadata"]["uid"] == owner.get("uid")


def end_namespaces(cluster: Cluster) -> int:
    """Delete what is in namespaces that are to go, and let them go when it has gone."""
    namespaces = find("namespaces")
    count = 0
    for (_none, name), stored in cluster.storage.all(namespaces):
        if "deletionTimestamp" not in stored.document["metadata"]:
            continue
        content = [(resource, key, found) for resource, key, found in cluster.storage.everything() if key[0] == name]
        for resource, key, found in content:
            if "deletionTimestamp" not in found.document["metadata"]:
                delete_stored(cluster, _by_key(resource), key, {})
                count += 1
        if not content and stored.document.get("spec", {}).get("finalizers"):
            keep(cluster, namespaces, ("", name), stored, copy.deepcopy(stored.document) | {"spec": {}})
            count += 1
    return count


def _by_key(key: str) -> Resource:
    return next(found for found in resources().values() if found.key == key)


def protect_storage(cluster: Cluster) -> int:
    """Let go of claims that no pod uses and of volumes that are not bound, where they are to be deleted."""
    pods = [stored.document for _key, stored in cluster.storage.all(find("pods"))]
    return _release(
        cluster,
        "persistentvolumeclaims",
        PVC_PROTECTION_FINALIZER,
        lambda claim: not any(_uses(pod, claim) for pod in pods),
    ) + _release(
        cluster,
        "persistentvolumes",
        PV_PROTECTION_FINALIZER,
        lambda volume: volume.get("status", {}).get("phase") != "Bound",
    )


def _release(cluster: Cluster, plural: str, finalizer: str, is_idle: Callable[[Document], bool]) -> int:
    resource = find(plural)
    count = 0
    for key, stored in cluster.storage.all(resource):
        metadata = stored.document["metadata"]
        if "deletionTimestamp" not in metadata or finalizer not in metadata.get("finalizers", ()):
            continue
        if not is_idle(stored.document):
            continue
        document = copy.deepcopy(stored.document)
        left = [name for name in metadata["finalizers"] if name != finalizer]
        document["metadata"]["finalizers"] = left
        if not left:
            del document["metadata"]["finalizers"]
        keep(cluster, resource, key, stored, document)
        count += 1
    return count


def _uses(pod: Document, claim: Document) -> bool:
    metadata = claim["metadata"]
    if pod["metadata"]["namespace"] != metadata["namespace"] or pod.get("status", {}).get("phase") in _DONE:
        return False
    return metadata["name"] in _claims(pod)


def _claims(pod: Document) -> Iterator[Any]:
    for volume in pod.get("spec", {}).get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"].get("claimName")
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"


def keep_accounts(cluster: Cluster) -> int:
    """Make the service account and the trust anchors that every namespace has."""
    count = 0
    for (_none, namespace), stored in cluster.storage.all(find("namespaces")):
        if "deletionTimestamp" in stored.document["metadata"]:
            continue
        for plural, name, content in (
            ("serviceaccounts", "default", {}),
            ("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": cluster.authority}}),
        ):
            resource = find(plural)
            if cluster.storage.get(resource, (namespace, name)) is not None:
                continue
            metadata = {
                "name": name,
                "namespace": namespace,
                "uid": cluster.uid(),
                "creationTimestamp": cluster.now(),
            }
            document = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            cluster.storage.put(resource, document | content)
            count += 1
    return count
