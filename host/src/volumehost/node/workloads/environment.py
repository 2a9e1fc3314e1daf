"""Expands ``$(NAME)`` in ``subPathExpr`` from the container's environment, as the kubelet does.

Values are only worked out as far as an expression needs them: a secret that is missing for another variable is no
trouble of this one's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from volumehost.errors import ObjectNotFoundError, SpecError, VolumeHostError

if TYPE_CHECKING:
    from volumehost.api.objects import Container, EnvVar, Pod
    from volumehost.hosts.node_host import NodeHost

#: ``$$`` stands for ``$``; a reference takes all up to the first bracket; any other ``$`` is itself.
_REFERENCE: Final = re.compile(r"\$\$|\$\(([^)]*)\)")
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

#: A value, or why there is none.
Value = str | VolumeHostError


def expand_subpath(text: str, container: Container, pod: Pod, host: NodeHost) -> str:
    """The text with every reference replaced by its value, and ``$$`` by ``$``.

    :raises SpecError: a variable is not set, is empty, or its value cannot be had.
    """
    environment = _environment(container, pod, host) if "$(" in text else {}
    missing: dict[str, str] = {}

    def value(name: str, _reference: str) -> str:
        found = environment.get(name, "")
        if isinstance(found, str) and found:
            return found
        missing[name] = f"{name} ({found.reason})" if isinstance(found, VolumeHostError) else name
        return ""

    expanded = _expand(text, value)
    if missing:
        raise SpecError(
            f"missing value for {', '.join(missing[name] for name in sorted(missing))}",
            action=f"expanding subPathExpr {text!r} of container {container.name}",
            subject=min(missing),
        )
    return expanded


def _expand(text: str, value: Callable[[str, str], str]) -> str:
    """:param value: of a variable, by its name and the reference to it as it is written."""
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else value(match[1], match[0]), text)


def _environment(container: Container, pod: Pod, host: NodeHost) -> dict[str, Value]:
    """``envFrom`` first, then ``env`` in its order, each of which may refer to what stands before it."""
    found: dict[str, Value] = {}
    for source in container.env_from:
        try:
            found.update(_all_of(source, pod, host))
        except VolumeHostError as error:
            raise SpecError(str(error), action=f"reading the environment of container {container.name}") from error
    for variable in container.env:
        try:
            found[variable.name] = _value(variable, found, pod, host)
        except VolumeHostError as error:
            found[variable.name] = error
        except _NotSetError:
            continue
    return found


class _NotSetError(Exception):
    """The value is optional, and is not there."""


def _value(variable: EnvVar, before: Mapping[str, Value], pod: Pod, host: NodeHost) -> str:
    if variable.value:
        return _expand(variable.value, lambda name, reference: _known(before, name, reference))
    source = variable.value_from or {}
    for kind, read in (("configMapKeyRef", _read_config_map), ("secretKeyRef", _read_secret)):
        reference = source.get(kind)
        if isinstance(reference, Mapping):
            return _key(kind, read, reference, pod, host)
    reference = source.get("fieldRef")
    if isinstance(reference, Mapping):
        return _field(str(reference.get("fieldPath")), pod, host)
    if source:
        raise SpecError(f"this host has no values of {', '.join(source)}", subject=variable.name)
    return ""


def _known(before: Mapping[str, Value], name: str, reference: str) -> str:
    """What is not set stays as it is written; what cannot be had takes with it who needs it."""
    found = before.get(name, reference)
    if isinstance(found, VolumeHostError):
        raise SpecError(f"{name}: {found.reason}", subject=name)
    return found


# --- config maps and secrets ----------------------------------------------------------------------------------------


def _read_config_map(host: NodeHost, namespace: str, name: str) -> dict[str, str]:
    return dict(host.get_config_map_func()(namespace, name).data)


def _read_secret(host: NodeHost, namespace: str, name: str) -> dict[str, str]:
    secret = host.get_secret_func()(namespace, name)
    return {key: value.decode("utf-8", "replace") for key, value in secret.data.items()}


Read = Callable[["NodeHost", str, str], dict[str, str]]


def _key(kind: str, read: Read, reference: Mapping[str, Any], pod: Pod, host: NodeHost) -> str:
    name, key = str(reference.get("name", "")), str(reference.get("key", ""))
    try:
        data = read(host, pod.metadata.namespace, name)
    except ObjectNotFoundError:
        if reference.get("optional"):
            raise _NotSetError from None
        raise
    if key in data:
        return data[key]
    if reference.get("optional"):
        raise _NotSetError
    what = "ConfigMap" if kind == "configMapKeyRef" else "Secret"
    raise SpecError(f"couldn't find key {key} in {what} {pod.metadata.namespace}/{name}", subject=name)


def _all_of(source: Mapping[str, Any], pod: Pod, host: NodeHost) -> dict[str, Value]:
    """All keys of a config map or secret, which then may not be missing, since nobody knows what it would hold."""
    prefix = str(source.get("prefix") or "")
    for kind, read in (("configMapRef", _read_config_map), ("secretRef", _read_secret)):
        reference = source.get(kind)
        if not isinstance(reference, Mapping):
            continue
        try:
            data = read(host, pod.metadata.namespace, str(reference.get("name", "")))
        except ObjectNotFoundError:
            if reference.get("optional"):
                return {}
            raise
        return {prefix + key: value for key, value in data.items()}
    return {}


# --- fields of the pod ----------------------------------------------------------------------------------------------


def _field(path: str, pod: Pod, host: NodeHost) -> str:
    """The value of a ``fieldRef``; the paths that Kubernetes has for environment variables.

    :raises SpecError: it has no such path.
    """
    metadata, status = pod.metadata, pod.status
    simple = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.node_name or host.get_node_name(),
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": status.host_ip,
        "status.hostIPs": ",".join(each.ip for each in status.host_ips),
        "status.podIP": status.pod_ip,
        "status.podIPs": ",".join(each.ip for each in status.pod_ips),
    }
    if path in simple:
        return simple[path]
    match = _SUBSCRIPT.fullmatch(path)
    if match is None:
        raise SpecError(f"unsupported fieldPath: {path}", subject=path)
    values = metadata.labels if match[1] == "labels" else metadata.annotations
    return values.get(match[2], "")
