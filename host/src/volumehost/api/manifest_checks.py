"""Checks all objects of all manifests before anything is done with the first: a wrong one stops them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from volumehost.api.convert import decode_wire
from volumehost.api.defaults import DEFAULT_NAMESPACE, set_create_defaults, set_defaults
from volumehost.api.embedded.incoming import check_stored
from volumehost.api.manifests import Manifest
from volumehost.api.validation import validate_create
from volumehost.errors import InvalidObjectError, ManifestError, VolumeHostError


def check_manifests(
    manifests: Sequence[Manifest], namespace: str = "", default: str = DEFAULT_NAMESPACE
) -> list[Manifest]:
    """The manifests with their namespaces filled in, all of them valid and named.

    :param namespace: for objects that name none; one that names another is an error then. "" means that
        they may name any.
    :param default: for objects that name none when ``namespace`` is "".
    :raises ExceptionGroup: one error for each object that is wrong; ManifestErrors name file, document and line.
    """
    checked: list[Manifest] = []
    errors: list[Exception] = []
    for manifest in manifests:
        try:
            placed = _with_namespace(manifest, namespace, default)
            _validate(placed)
        except VolumeHostError as error:
            errors.append(error)
        else:
            checked.append(placed)
    if errors:
        raise ExceptionGroup("manifests are invalid", errors)
    return checked


def _with_namespace(manifest: Manifest, namespace: str, default: str) -> Manifest:
    if not manifest.kind.namespaced:
        return manifest
    found = manifest.obj.metadata.namespace
    if found and namespace and found != namespace:
        line = manifest.line_of("metadata.namespace")
        raise ManifestError(
            f"metadata.namespace: the object is in {found}, the command in {namespace}"
            + (f" (line {line})" if line else ""),
            source=manifest.source,
            action=f"{manifest.kind.describe(manifest.obj.metadata.name)} in {manifest.place}",
            hint="leave one of them out",
        )
    if found:
        return manifest
    metadata = {**(manifest.document.get("metadata") or {}), "namespace": namespace or default}
    document = {**manifest.document, "metadata": metadata}
    return replace(manifest, document=document, obj=msgspec.convert(document, type=manifest.kind.struct))


def _validate(manifest: Manifest) -> None:
    """What the store will check when it creates the object, on a copy of it."""
    check_stored(manifest.kind)
    copy = msgspec.convert(decode_wire(manifest.kind.struct, manifest.document).value, type=manifest.kind.struct)
    if not copy.metadata.name:
        generated = "; a generated name cannot be applied" if copy.metadata.generate_name else ""
        error = InvalidObjectError(
            subject=manifest.kind.singular, problems=[("metadata.name", f"Required value{generated}")]
        )
        raise manifest.explain(error)
    set_create_defaults(set_defaults(copy))
    try:
        validate_create(copy, manifest.kind)
    except InvalidObjectError as error:
        raise manifest.explain(error) from None
