"""The pod in the API: made or updated before its volumes are mounted, gone after they are unmounted.

A finalizer of ours keeps the object until the last volume is gone, so that a deleted pod is never forgotten.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from volumehost.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InvalidObjectError,
    ObjectNotFoundError,
)
from volumehost.node.populating.pods import ENDED_ANNOTATION

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Pod

#: Keeps a pod in the API while volumes may be mounted for it.
FINALIZER = "volumehost.io/volumes"
DEFAULT_NAMESPACE = "default"

_ATTEMPTS = 8
_ASSIGNED = frozenset(
    {"uid", "resourceVersion", "deletionTimestamp", "creationTimestamp", "generation", "managedFields", "selfLink"}
)


def apply_pod(api: ApiClient, thing: object) -> Pod:
    """Create the pod, or bring the one that is there to the same manifest; returns it with uid and finalizer.

    :param thing: a Pod, a mapping in wire form, JSON text, or a model of the ``kubernetes`` client.
    :raises InvalidObjectError: the manifest is wrong, or changes what must not change.
    :raises FailedPreconditionError: the pod is being deleted.
    """
    from volumehost.api.apply import apply_object
    from volumehost.api.convert import wire_mapping
    from volumehost.api.objects import Pod

    document = _with_finalizer(_as_manifest(wire_mapping(Pod, thing)))
    try:
        return _as_pod(api.create(document))
    except AlreadyExistsError:
        metadata = document["metadata"]
        found = api.get(Pod, metadata.get("name", ""), metadata.get("namespace", ""))
        _refuse_deleted(found)
        merged = _with_finalizer(document, found.metadata.finalizers)
        return _as_pod(apply_object(api, Pod, merged).object)


def bound_pod(api: ApiClient, thing: object, node_name: str) -> Pod:
    """The pod as a cluster has it, which says itself where it runs; nothing is written.

    :param thing: as for :func:`apply_pod`; its name and namespace count.
    :raises ObjectNotFoundError: the cluster has no such pod.
    :raises FailedPreconditionError: it is not bound to this node.
    """
    from volumehost.api.convert import to_object, wire_mapping
    from volumehost.api.objects import Pod

    given = to_object(Pod, _as_manifest(wire_mapping(Pod, thing))).metadata
    pod = api.get(Pod, given.name, given.namespace or DEFAULT_NAMESPACE)
    if pod.spec.node_name != node_name:
        label = f"{pod.metadata.namespace}/{pod.metadata.name}"
        where = f"it is bound to {pod.spec.node_name}" if pod.spec.node_name else "it is bound to no node"
        raise FailedPreconditionError(
            f"{where}, and this is {node_name}", action=f"mounting pod {label}", subject=label
        )
    return pod


def keep_pod(api: ApiClient, name: str, namespace: str) -> Pod:
    """Put our finalizer on a pod that is in the API already, before its volumes are mounted; returns the pod.

    :raises ObjectNotFoundError: there is none.
    :raises FailedPreconditionError: it is being deleted.
    """
    from volumehost.api.objects import Pod

    for attempt in range(_ATTEMPTS):
        pod = api.get(Pod, name, namespace)
        _refuse_deleted(pod)
        if FINALIZER in pod.metadata.finalizers:
            return pod
        wanted = [*pod.metadata.finalizers, FINALIZER]
        condition = {"finalizers": wanted, "resourceVersion": pod.metadata.resource_version}
        try:
            return api.patch(Pod, name, {"metadata": condition}, namespace)
        except ConflictError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def find_pod(api: ApiClient, name: str, namespace: str) -> Pod | None:
    """The pod, None when there is none."""
    from volumehost.api.objects import Pod

    try:
        return api.get(Pod, name, namespace)
    except ObjectNotFoundError:
        return None


def delete_pod(api: ApiClient, pod: Pod) -> Pod | None:
    """Mark the pod for deletion; returns it as it is now, None when it is gone already."""
    if pod.metadata.deletion_timestamp is not None:
        return pod
    try:
        return api.delete(type(pod), pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
    except (ObjectNotFoundError, ConflictError):  # gone, or another pod under the same name
        return None


def mark_workload_ended(api: ApiClient, pod: Pod) -> None:
    """Record on the pod the word that its workload has ended, so that it outlives whoever acts on it (BR-51).

    A pod that is gone, or that another one of the same name has replaced, needs no word.
    """
    annotations = {ENDED_ANNOTATION: "true"}
    condition = {"annotations": annotations, "uid": pod.metadata.uid}
    with contextlib.suppress(ObjectNotFoundError, ConflictError):
        api.patch(type(pod), pod.metadata.name, {"metadata": condition}, pod.metadata.namespace)


def release_pod(api: ApiClient, name: str, namespace: str, uid: str, *, known: Pod | None = None) -> None:
    """Take our finalizer away: nothing of the pod is mounted any more. A deleted pod ends with that.

    :param known: the pod as it was a moment ago, which saves reading it.
    """
    from volumehost.api.objects import Pod

    for attempt in range(_ATTEMPTS):
        pod = known if known is not None and attempt == 0 else find_pod(api, name, namespace)
        if pod is None or pod.metadata.uid != uid or FINALIZER not in pod.metadata.finalizers:
            return
        rest = [finalizer for finalizer in pod.metadata.finalizers if finalizer != FINALIZER]
        condition = {"finalizers": rest or None, "resourceVersion": pod.metadata.resource_version, "uid": uid}
        try:
            api.patch(Pod, name, {"metadata": condition}, namespace)
        except ObjectNotFoundError:
            return
        except ConflictError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _refuse_deleted(pod: Pod) -> None:
    if pod.metadata.deletion_timestamp is not None:
        raise FailedPreconditionError(
            "it is being deleted",
            action=f"mounting pod {pod.metadata.namespace}/{pod.metadata.name}",
            subject=pod.metadata.name,
            hint="unmount it first, then mount it again",
        ) from None


def _as_pod(found: object) -> Pod:
    from volumehost.api.objects import Pod

    if not isinstance(found, Pod):
        raise TypeError(f"the API returned a {type(found).__name__} for a Pod")
    return found


def _as_manifest(document: Mapping[str, Any]) -> dict[str, Any]:
    """With kind and version, which a caller that has only pods may leave out."""
    for name, expected in (("kind", "Pod"), ("apiVersion", "v1")):
        if document.get(name, expected) != expected:
            problem = f"expected {expected}, got {document[name]}"
            raise InvalidObjectError(subject="pod", problems=[(f"$.{name}", problem)])
    return {"apiVersion": "v1", "kind": "Pod", **document}


def _with_finalizer(document: Mapping[str, Any], others: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest as it is to be stored. What has the wrong type is left for the API to name."""
    given = document.get("metadata")
    if given is not None and not isinstance(given, Mapping):
        return dict(document)
    # What the API assigns is not the manifest's to say.
    metadata = {key: value for key, value in (given or {}).items() if key not in _ASSIGNED}
    metadata["namespace"] = metadata.get("namespace") or DEFAULT_NAMESPACE
    finalizers = metadata.get("finalizers") or []
    if isinstance(finalizers, list):
        metadata["finalizers"] = [*finalizers, *(name for name in (*others, FINALIZER) if name not in finalizers)]
    return {**document, "metadata": metadata}
