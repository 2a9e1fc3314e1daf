"""Reads the sources of pods: the store, a list as kubectl prints it, static manifests, the directories of pod logs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from volumehost.errors import ManifestError, VolumeHostError
from volumehost.inspection.pods import (
    GIVEN,
    LOGS,
    STATIC,
    STORE,
    KnownAttachment,
    KnownPod,
    KnownPods,
    PodName,
    has_static_uid,
)

if TYPE_CHECKING:
    from volumehost.api.objects import Pod, VolumeAttachment
    from volumehost.hosts.layout import Layout

#: Where a kubelet keeps the logs of pods, in directories called ``<namespace>_<name>_<uid>``.
KUBELET_POD_LOGS: Final = "/var/log/pods"

#: Annotations by which the API's image of a static pod tells the uid of the pod itself.
_MIRROR_ANNOTATIONS: Final = ("kubernetes.io/config.hash", "kubernetes.io/config.mirror")

_PHASES_ENDED: Final = ("Succeeded", "Failed")


# --- the store ------------------------------------------------------------------------------------------------


def read_store(known: KnownPods, layout: Layout) -> None:
    """The pods of the embedded store; one that is not there, or cannot be read, is no source."""
    path = layout.store_file()
    if not os.path.lexists(path):
        known.notes.append("there is no store, so pods are known from records only")
        return
    from volumehost.api.objects import Pod, VolumeAttachment
    from volumehost.api.read_only_store import ReadOnlyStore

    try:
        with ReadOnlyStore(path, untouched=True) as store:
            pods = store.list(Pod).items
            attachments = store.list(VolumeAttachment).items
    except VolumeHostError as error:
        known.notes.append(f"the pods in the store are not known: {error}")
        return
    known.add(_of_store(pod) for pod in pods)
    known.attachments += [_attachment(each) for each in attachments]
    known.sources.append(f"{STORE} ({counted(len(pods))})")
    known.complete = True


def counted(pods: int) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{pods} pod{'' if pods == 1 else 's'}"


def _of_store(pod: Pod) -> KnownPod:
    from volumehost.node.populating.pods import workload_has_ended

    metadata = pod.metadata
    claims = sum(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in pod.spec.volumes
    )
    ended = workload_has_ended(pod)
    return KnownPod(metadata.namespace, metadata.name, STORE, (metadata.uid,), ended, claims)


def _attachment(found: VolumeAttachment) -> KnownAttachment:
    spec = found.spec
    return KnownAttachment(found.metadata.name, spec.source.persistent_volume_name or "", spec.attacher, spec.node_name)


# --- a list of pods -------------------------------------------------------------------------------------------


def read_pod_list(known: KnownPods, source: str) -> None:
    """The pods in a file, ``-`` for standard input, as ``kubectl get pods --all-namespaces -o json`` prints them.

    :raises ManifestError: it cannot be read, holds something else, or is a part of a list.
    """
    from volumehost.api.manifest_documents import read_documents
    from volumehost.api.manifest_sources import STDIN, read_sources
    from volumehost.api.yaml_document import YamlError

    told_at = time.time() if source == STDIN else _modified_at(source)
    count = 0
    for text in read_sources([source], stdin=sys.stdin.buffer):
        try:
            documents = [document.value for document in read_documents(text.text)]
        except YamlError as error:
            raise _not_pods(text.name, f"line {error.line}: {error.reason}") from error
        for document in documents:
            pods = [_of_list(pod, text.name) for pod in _items(document, text.name)]
            known.add(pods)
            known.listed_namespaces |= {pod.namespace for pod in pods}
            count += len(pods)
    known.sources.append(f"{GIVEN} ({counted(count)})")
    known.told_at = min(known.told_at, told_at)
    known.complete = True


def _items(document: Any, source: str) -> list[Any]:
    if not isinstance(document, dict):
        raise _not_pods(source, "it is no list of pods")
    kind = document.get("kind")
    if kind == "Pod":
        return [document]
    items = document.get("items")
    if kind not in ("List", "PodList") or not isinstance(items, list):
        raise _not_pods(source, f"it is a {kind or 'document without a kind'}, not a list of pods")
    if _mapping(document.get("metadata")).get("continue"):
        raise _not_pods(source, "it is only a part of a list: what is missing would be taken for gone")
    return items


def _of_list(item: Any, source: str) -> KnownPod:
    metadata = _mapping(_mapping(item).get("metadata"))
    uid, name = metadata.get("uid"), metadata.get("name")
    if not isinstance(uid, str) or not uid or not isinstance(name, str) or item.get("kind", "Pod") != "Pod":
        raise _not_pods(source, "an item is no pod, or has no uid")
    annotations = _mapping(metadata.get("annotations"))
    mirrored = [str(annotations[each]) for each in _MIRROR_ANNOTATIONS if annotations.get(each)]
    volumes = _mapping(item.get("spec")).get("volumes") or []
    claims = sum(bool({"persistentVolumeClaim", "ephemeral"} & _mapping(volume).keys()) for volume in volumes)
    ended = _mapping(item.get("status")).get("phase") in _PHASES_ENDED
    namespace = str(metadata.get("namespace", ""))
    return KnownPod(namespace, name, GIVEN, tuple(dict.fromkeys([uid, *mirrored])), ended, claims)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _modified_at(path: str) -> float:
    """When the list was made; of what is no regular file, a pipe for example, now."""
    try:
        return os.stat(path).st_mtime if os.path.isfile(path) else time.time()
    except OSError:
        return time.time()


def _not_pods(source: str, reason: str) -> ManifestError:
    return ManifestError(
        reason,
        source=source,
        action=f"reading the pods in {source}",
        hint="give what 'kubectl get pods --all-namespaces --field-selector spec.nodeName=NODE -o json' prints",
    )


# --- static pods ----------------------------------------------------------------------------------------------


def read_static_pods(known: KnownPods, directory: str, *, given: bool) -> None:
    """The pods of a directory of manifests, which have a uid of their own or are found by their names.

    To be called last: the names come from the other sources.

    :param given: somebody named the directory, so it should be there.
    """
    from volumehost.api.manifests import load_manifests
    from volumehost.api.objects import Pod

    try:
        files = [name for name in sorted(os.listdir(directory)) if not name.startswith(".")]
        manifests = load_manifests([f"{directory}/{name}" for name in files]) if files else []
    except (OSError, VolumeHostError) as error:
        if given or not isinstance(error, FileNotFoundError):
            known.notes.append(f"the static pods in {directory} are not known: {error}")
        return
    pods = [manifest.obj for manifest in manifests if isinstance(manifest.obj, Pod)]
    nameless = []
    for pod in pods:
        uids = (pod.metadata.uid,) if pod.metadata.uid else tuple(_uids_by_name(known, pod))
        namespace = pod.metadata.namespace or "default"
        if uids:
            known.add([KnownPod(namespace, pod.metadata.name, STATIC, uids)])
        else:
            nameless.append(f"{namespace}/{pod.metadata.name}")
    known.sources.append(f"{STATIC} ({counted(len(pods))})")
    if nameless:
        known.notes.append(f"no source tells the uid of the static pods {', '.join(nameless)}")
    known.static_complete = not nameless


def _uids_by_name(known: KnownPods, pod: Pod) -> Iterator[str]:
    """A static pod is called ``<name>-<node>``; several may match, and all of them are spared."""
    namespace, start = pod.metadata.namespace or "default", f"{pod.metadata.name}-"
    told = [(uid, found.namespace, found.name) for uid, found in known.by_uid.items()]
    told += [(uid, name.namespace, name.name) for uid, name in known.names.items()]
    for uid, in_namespace, called in told:
        if in_namespace == namespace and called.startswith(start) and has_static_uid(uid):
            yield uid


# --- names ----------------------------------------------------------------------------------------------------


def read_pod_logs(known: KnownPods, directory: str) -> None:
    """Names of pods by the directories of their logs, which a kubelet keeps for a while after the pod."""
    try:
        entries = os.listdir(directory)
    except OSError:
        return
    for entry in entries:
        namespace, _, rest = entry.partition("_")
        name, _, uid = rest.rpartition("_")
        if namespace and name and uid:
            known.names.setdefault(uid, PodName(namespace, name, LOGS))
