"""Validation of config maps, secrets, trust bundles and events. Values are never shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from volumehost.api.objects import ClusterTrustBundle, ConfigMap, Event, Secret
from volumehost.api.validation.names import config_key
from volumehost.api.validation.problems import Problems, immutable

#: Secrets and config maps may hold so many bytes: 1 MiB.
MAX_DATA_BYTES = 1024 * 1024
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def validate_config_map(config_map: ConfigMap, problems: Problems) -> None:
    """Keys that can be file names, each once; not too large."""
    _keys(config_map.data, "data", problems)
    _keys(config_map.binary_data, "binaryData", problems)
    for key in sorted(config_map.data.keys() & config_map.binary_data.keys()):
        problems.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    texts = (value.encode() for value in config_map.data.values())
    _total((*texts, *config_map.binary_data.values()), "data", problems)


def validate_secret(secret: Secret, problems: Problems) -> None:
    """Keys that can be file names, those that the type needs; not too large."""
    _keys(secret.data, "data", problems)
    _total(secret.data.values(), "data", problems)
    for key in _REQUIRED_KEYS.get(secret.type, ()):
        if key not in secret.data:
            problems.required(f"data[{key}]", f"a secret of type {secret.type} has it")
    if secret.type == "kubernetes.io/basic-auth" and not secret.data.keys() & {"username", "password"}:
        problems.required("data[username]", "a secret of that type has username, password or both")


def _keys(data: Mapping[str, object], field: str, problems: Problems) -> None:
    for key in data:
        reason = config_key(key)
        if reason:
            problems.invalid(f"{field}[{key[:64]}]", key, reason)


def _total(values: Iterable[bytes], field: str, problems: Problems) -> None:
    if sum(map(len, values)) > MAX_DATA_BYTES:
        problems.too_long(field, MAX_DATA_BYTES)


def validate_config_map_change(config_map: ConfigMap, old: ConfigMap, problems: Problems) -> None:
    """An immutable config map stays as it is."""
    if old.immutable:
        for name, wire in (("immutable", "immutable"), ("data", "data"), ("binary_data", "binaryData")):
            _fixed(config_map, old, name, wire, problems)


def validate_secret_change(secret: Secret, old: Secret, problems: Problems) -> None:
    """The type never changes; an immutable secret stays as it is."""
    immutable(secret, old, "type", "type", problems)
    if old.immutable:
        for name in ("immutable", "data"):
            _fixed(secret, old, name, name, problems)


def _fixed(new: object, old: object, name: str, field: str, problems: Problems) -> None:
    if getattr(new, name) != getattr(old, name):
        problems.forbidden(field, "field is immutable when `immutable` is set")


def validate_trust_bundle(bundle: ClusterTrustBundle, problems: Problems) -> None:
    """Certificates in PEM, and the signer in the name when there is one."""
    signer = bundle.spec.signer_name
    if signer and not bundle.metadata.name.startswith(f"{signer.replace('/', ':')}:"):
        problems.invalid("metadata.name", bundle.metadata.name, f"must start with {signer.replace('/', ':')}:")
    if "-----BEGIN CERTIFICATE-----" not in bundle.spec.trust_bundle:
        problems.invalid("spec.trustBundle", "...", "must hold at least one certificate in PEM")


def validate_event(event: Event, problems: Problems) -> None:
    """An event lies where its object does; those of objects without a namespace lie in ``default``."""
    namespace = event.involved_object.namespace or "default"
    if namespace != event.metadata.namespace:
        problems.invalid("involvedObject.namespace", event.involved_object.namespace, "does not match event.namespace")
