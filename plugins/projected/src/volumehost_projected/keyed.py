"""Files from the keys of ConfigMaps and Secrets (PAYLOAD-08, PAYLOAD-20 to -22)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from volumehost.errors import ObjectNotFoundError, SpecError
from volumehost.sdk import FileProjection

if TYPE_CHECKING:
    from volumehost.api.objects import ConfigMapProjection, ConfigMapVolumeSource, KeyToPath
    from volumehost.volume_host import VolumeHost

T = TypeVar("T")

Files = dict[str, FileProjection]

_OR_OPTIONAL = "add the key, or mark the volume's source as optional"


class _KeyedSource(Protocol):
    """What volume sources and projections of both kinds say alike."""

    items: list[KeyToPath]
    optional: bool | None


def config_map_files(
    host: VolumeHost, namespace: str, source: ConfigMapVolumeSource | ConfigMapProjection, mode: int
) -> Files:
    """One file for each key, or for each item; ``mode`` is that of files without one of their own.

    :raises ObjectNotFoundError: there is no such ConfigMap, and the source is not optional.
    :raises SpecError: it lacks a key, likewise.
    """
    found = _find(host.get_config_map_func(), "configmap", namespace, source.name, source)
    contents: dict[str, bytes] = {}
    if found is not None:
        contents = {**found.binary_data, **{key: text.encode() for key, text in found.data.items()}}
    missing = f"configmap {namespace}/{source.name}", "configmap references non-existent config key"
    return _files(contents, source, mode, *missing)


def secret_files(host: VolumeHost, namespace: str, name: str, source: _KeyedSource, mode: int) -> Files:
    """The same for a Secret."""
    found = _find(host.get_secret_func(), "secret", namespace, name, source)
    contents = found.data if found is not None else {}
    return _files(contents, source, mode, f"secret {namespace}/{name}", "references non-existent secret key")


def _find(get: Callable[[str, str], T], kind: str, namespace: str, name: str, source: _KeyedSource) -> T | None:
    """The object; None where it may be missing and is. Any other problem counts, optional or not (PAYLOAD-08)."""
    try:
        return get(namespace, name)
    except ObjectNotFoundError as error:
        if source.optional:
            return None
        raise ObjectNotFoundError(
            f'{kind} "{name}" not found',
            subject=f"{namespace}/{name}",
            hint=f"create it in namespace {namespace}, or mark the volume's source as optional",
        ) from error


def _files(contents: Mapping[str, bytes], source: _KeyedSource, mode: int, subject: str, complaint: str) -> Files:
    if not source.items:
        return {key: FileProjection(data, mode) for key, data in contents.items()}
    files: Files = {}
    for item in source.items:
        if item.key in contents:
            files[item.path] = FileProjection(contents[item.key], mode if item.mode is None else item.mode)
        elif not source.optional:
            raise SpecError(f"{complaint}: {item.key}", subject=subject, hint=_OR_OPTIONAL)
    return files
