"""Pods for tests, from short descriptions: ``make_pod("data=emptyDir:Memory,sizeLimit=64Mi", fs_group=2000)``.

The fixture ``volumehost_pod`` hands this out; the conformance kit makes its pods with it.
"""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from volumehost.errors import ManifestError

if TYPE_CHECKING:
    from volumehost.api.objects import Pod

#: For each source that takes a bare first word, the field that the word is for.
_MAIN_FIELD = {
    "configMap": "name",
    "csi": "driver",
    "emptyDir": "medium",
    "flexVolume": "driver",
    "hostPath": "path",
    "nfs": "server",
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
}
#: Sources with a map of a driver's own settings, and their own fields beside it.
_SETTINGS = {"flexVolume": ("options", {"fsType", "readOnly"}), "csi": ("volumeAttributes", {"fsType", "readOnly"})}
_BOOLEANS = {"true": True, "false": False}


def make_pod(
    *volumes: str | Mapping[str, Any],
    name: str = "pod",
    namespace: str = "default",
    uid: str = "",
    fs_group: int | None = None,
    run_as_user: int | None = None,
) -> Pod:
    """A pod with these volumes, each mounted by its one container, so that a volume manager would mount them.

    A volume is ``NAME=SOURCE[:WORD][,KEY=VALUE...]``, with the names of a manifest:

    - ``data=emptyDir``, ``data=emptyDir:Memory,sizeLimit=64Mi``
    - ``host=hostPath:/srv/data,type=Directory``
    - ``work=flexVolume:example.com/scratch,size=16Mi``: what is no field of the source is an option of the driver
    - ``db=persistentVolumeClaim:db``

    or a mapping as in a manifest: ``{"name": "data", "emptyDir": {}}``.

    :param uid: a fresh one for each pod when not given.
    :raises ManifestError: a description cannot be read, or says something that a pod does not have.
    :raises InvalidObjectError: a value has the wrong type; names the field.
    """
    described = [_volume(volume) for volume in volumes]
    context = {"fsGroup": fs_group, "runAsUser": run_as_user}
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in described]
    manifest = {
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "spec": {
            "securityContext": {key: value for key, value in context.items() if value is not None},
            "volumes": described,
            "containers": [{"name": "main", "image": "none", "volumeMounts": mounts}],
        },
    }
    return pod_from(manifest)


def pod_from(manifest: Mapping[str, Any] | str | os.PathLike[str]) -> Pod:
    """The pod of a manifest: a mapping, YAML or JSON text, or a path. It gets a uid when it has none, and what
    else an API server would fill in.

    :raises ManifestError: it cannot be read, or is not exactly one pod.
    :raises InvalidObjectError: something in a mapping has the wrong type; names the field.
    """
    from volumehost.api.objects import Pod

    if isinstance(manifest, Mapping):
        return _as_stored(_decode(manifest))
    from volumehost.api.manifests import load_manifests, parse_manifests

    is_path = isinstance(manifest, os.PathLike) or "\n" not in manifest
    found = load_manifests([os.fspath(manifest)]) if is_path else parse_manifests(str(manifest))
    pods = [each.obj for each in found if isinstance(each.obj, Pod)]
    if len(pods) != 1:
        raise ManifestError(
            f"has {len(pods)} pods; one is wanted", source=str(manifest) if is_path else "", action="making a pod"
        )
    return _as_stored(pods[0])


def another_pod(pod: Pod, name: str = "") -> Pod:
    """A copy of the pod that is another pod: with a uid of its own, and another name."""
    twin = copy.deepcopy(pod)
    twin.metadata.uid = str(uuid.uuid4())
    twin.metadata.name = name or f"{pod.metadata.name}-{twin.metadata.uid[:8]}"
    return twin


def _decode(manifest: Mapping[str, Any]) -> Pod:
    from volumehost.api.convert import decode_wire, to_object
    from volumehost.api.objects import Pod

    unknown = decode_wire(Pod, manifest).unknown
    if unknown:
        texts = [f"{path}: unknown field" + (f", {hint}" if hint else "") for path, hint in unknown]
        raise ManifestError("; ".join(texts), action="making a pod")
    return to_object(Pod, manifest)


def _as_stored(pod: Pod) -> Pod:
    """With what the API fills in before a plugin sees a pod: identity, modes of files and the like."""
    from volumehost.api.defaults import set_defaults

    set_defaults(pod)
    if not pod.metadata.uid:
        pod.metadata.uid = str(uuid.uuid4())
    if not pod.metadata.namespace:
        pod.metadata.namespace = "default"
    return pod


def _volume(description: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(description, Mapping):
        if not isinstance(description.get("name"), str):
            raise _unreadable(description, "it has no name")
        return dict(description)
    name, equals, rest = description.partition("=")
    head, *settings = rest.split(",")
    source, colon, word = head.partition(":")
    if not equals or not name or not source:
        raise _unreadable(description, "NAME=SOURCE[:WORD][,KEY=VALUE...] is wanted")
    if colon and source not in _MAIN_FIELD:
        raise _unreadable(description, f"{source} takes no bare word; use KEY=VALUE")
    fields: dict[str, Any] = {_MAIN_FIELD[source]: word} if colon else {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise _unreadable(description, f"{setting!r} is not KEY=VALUE")
        options, own = _SETTINGS.get(source, ("", set()))
        if options and key not in own:
            fields.setdefault(options, {})[key] = value
        else:
            fields[key] = _BOOLEANS.get(value, value)
    return {"name": name, source: fields}


def _unreadable(description: object, reason: str) -> ManifestError:
    return ManifestError(reason, source=str(description), action=f"reading the volume {description!r}")
