"""From the file of a static pod to the pods in it, as the kubelet would name and number them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from volumehost.errors import ManifestError

if TYPE_CHECKING:
    from volumehost.api.manifests import Manifest
    from volumehost.api.objects import Pod

#: Names of files that hold manifests; anything else is somebody's half-written or put-aside file.
SUFFIXES: Final = (".yaml", ".yml", ".json")

#: More than any pod's manifest has, in bytes.
LONGEST_FILE: Final = 4 << 20

HASH_ANNOTATION: Final = "kubernetes.io/config.hash"
SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"
FILE_ANNOTATION: Final = "volumehost.io/static-manifest"
FILE_SOURCE: Final = "file"

_DEFAULT_NAMESPACE = "default"
_ASSIGNED = ("uid", "resourceVersion", "deletionTimestamp", "creationTimestamp", "generation", "selfLink", "finalizers")


class Stamp(NamedTuple):
    """Tells one content of a file from another without reading it."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        """That of a file."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def is_manifest_name(name: str) -> bool:
    """Whether a file of that name is looked at: not hidden, and with an ending of manifests."""
    return not name.startswith(".") and name.endswith(SUFFIXES)


def read_static_pods(path: str, node_name: str) -> tuple[dict[str, Pod], Stamp]:
    """UID to pod of each pod in the file, and which content of it that was.

    :raises OSError: it cannot be read, or changed meanwhile.
    :raises ManifestError: it is no manifest of pods, the whole of it is not taken then.
    :raises InvalidObjectError: a pod breaks the API's rules.
    """
    from volumehost.api.manifests import parse_manifests

    text, stamp = _read(path)
    pods: dict[str, Pod] = {}
    for manifest in parse_manifests(text, path):
        pod = _static_pod(manifest, path, node_name)
        pods[pod.metadata.uid] = pod
    return pods, stamp


def _read(path: str) -> tuple[str, Stamp]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not hold up the others
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ManifestError("is not a file", source=path, action=f"read {path}")
        data = file.read(LONGEST_FILE + 1)
        stamp = Stamp.of(os.fstat(descriptor))
    if len(data) > LONGEST_FILE:
        raise ManifestError(f"is larger than {LONGEST_FILE} bytes", source=path, action=f"read {path}")
    if stamp != Stamp.of(found) or len(data) != stamp.size:
        raise BlockingIOError(f"{path} is being written")
    try:
        return data.decode("utf-8-sig"), stamp
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ManifestError(f"line {line}: is not UTF-8 text", source=path, action=f"read {path}") from None


def _static_pod(manifest: Manifest, path: str, node_name: str) -> Pod:
    """The pod as the API would store it (IDENT-01)."""
    from volumehost.api.embedded.incoming import incoming, typed_from_document
    from volumehost.api.embedded.transitions import new_document
    from volumehost.api.objects import Pod
    from volumehost.errors import InvalidObjectError

    if manifest.kind.kind != "Pod":
        raise ManifestError(
            f"is a {manifest.kind.kind}, not a Pod", source=path, action=f"read {manifest.place}",
            hint="'volumehost apply' takes other objects",
        )  # fmt: skip
    uid = _config_hash(manifest.document, path, node_name)
    document = _completed(manifest.document, uid, path, node_name)
    try:
        item = incoming(document)
        stored = new_document(item, uid=uid, now=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    except InvalidObjectError as error:
        raise manifest.explain(error) from None
    found = typed_from_document(item.kind, stored)
    if not isinstance(found, Pod):
        raise TypeError(f"a Pod became a {type(found).__name__}")
    return found


def _completed(document: Mapping[str, Any], uid: str, path: str, node_name: str) -> dict[str, Any]:
    metadata = {key: value for key, value in _mapping(document.get("metadata")).items() if key not in _ASSIGNED}
    metadata["name"] = f"{metadata.get('name') or ''}-{node_name.lower()}"
    metadata["namespace"] = metadata.get("namespace") or _DEFAULT_NAMESPACE
    marks = {HASH_ANNOTATION: uid, SOURCE_ANNOTATION: FILE_SOURCE, FILE_ANNOTATION: path}
    metadata["annotations"] = {**_mapping(metadata.get("annotations")), **marks}
    spec = {**_mapping(document.get("spec")), "nodeName": node_name}
    return {**document, "metadata": metadata, "spec": spec}


def _config_hash(document: Mapping[str, Any], path: str, node_name: str) -> str:
    """The same for the same manifest in the same file of the same node, whatever its layout."""
    content = json.dumps([document, node_name, path], sort_keys=True, default=str)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
