"""Objects that installed drivers bring with them: their CSIDriver, a StorageClass to begin with.

They are made where they are missing. A newer version of the distribution brings them up to date, unless somebody has
changed them meanwhile: then they are the user's.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.control.machinery.controller import Affects, ControlContext, Key
from volumehost.control.writes import get_or_none
from volumehost.errors import AlreadyExistsError, ConflictError, InvalidObjectError, ManifestError, VolumeHostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from volumehost.api.client import ApiClient
    from volumehost.api.manifests import Manifest
    from volumehost.api.objects import KubeObject
    from volumehost.storage_driver import DriverStatus

logger = logging.getLogger(__name__)

#: On a provided object: the distribution and version that brought it, and what it was then, in brief.
PROVIDED_BY = "volumehost.io/provided-by"
PROVIDED_DIGEST = "volumehost.io/provided-digest"

#: What a driver may bring: nothing that could lead anybody to somebody else's data.
ALLOWED_KINDS = ("CSIDriver", "StorageClass", "VolumeAttributesClass", "VolumeSnapshotClass")

_ASSIGNED = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


class ProvidedObjects:
    """The controller whose keys are drivers: sees to their objects when they are installed or updated."""

    name = "driver objects"

    def __init__(self, context: ControlContext, statuses: Callable[[], Sequence[DriverStatus]]) -> None:
        from volumehost.api.objects import CSIDriver

        self.kind: type[KubeObject] = CSIDriver
        self._api = context.api
        self._statuses = statuses

    def watches(self) -> Mapping[type[KubeObject], Affects]:
        """Nothing: what is deleted comes back when the driver changes or the plane starts, not at once."""
        return {}

    def reconcile(self, key: Key) -> float | None:
        """Make or update the objects of one driver.

        :raises VolumeHostError: its manifest is wrong.
        """
        for status in self._statuses():
            if status.name == key.name:
                provide(self._api, status)
        return None


def provide_all(api: ApiClient, statuses: Iterable[DriverStatus]) -> None:
    """Make or update the objects of all drivers; one that brings nonsense is logged and keeps none of the others."""
    for status in statuses:
        try:
            provide(api, status)
        except VolumeHostError as error:
            logger.warning("%s", error)


def provide(api: ApiClient, status: DriverStatus) -> None:
    """Make or update the objects that the driver's manifest names.

    :raises ManifestError: it cannot be read, or holds an object that a driver may not bring. Nothing is made then.
    :raises InvalidObjectError: an object of it breaks the API's rules.
    """
    if not status.manifest:
        return
    from volumehost.api.manifests import load_manifests

    try:
        manifests = load_manifests([status.manifest])
    except VolumeHostError as error:
        error.action = f"reading what driver {status.name} of {status.distribution} brings: {error.action}"
        raise
    for manifest in manifests:
        _check(manifest, status)
    version = f"{status.distribution}/{status.version}"
    for manifest in manifests:
        try:
            _provide(api, manifest, version)
        except InvalidObjectError as error:
            raise manifest.explain(error) from error


def _check(manifest: Manifest, status: DriverStatus) -> None:
    kind, name = manifest.kind.kind, manifest.obj.metadata.name
    if kind not in ALLOWED_KINDS:
        reason = f"{manifest.place} holds a {kind}; a driver may bring {', '.join(ALLOWED_KINDS)}"
    elif kind == "CSIDriver" and name != status.name:
        reason = f"{manifest.place} holds the CSIDriver {name} of another driver"
    elif manifest.document.get("metadata", {}).get("finalizers"):
        reason = f"{manifest.place} holds finalizers, which nobody would ever remove"
    else:
        return
    raise ManifestError(
        reason,
        source=status.manifest,
        action=f"making what driver {status.name} of {status.distribution} brings",
        hint="nothing of the file was made; this is the distribution's mistake",
    )


def _provide(api: ApiClient, manifest: Manifest, version: str) -> None:
    struct, name = manifest.kind.struct, manifest.obj.metadata.name
    live = get_or_none(api, struct, name)
    if live is None:
        _create(api, manifest, version)
        return
    annotations = live.metadata.annotations
    if annotations.get(PROVIDED_BY) == version or annotations.get(PROVIDED_DIGEST) != _digest(live):
        return
    metadata = _marked(manifest.document, version)["metadata"]
    condition = {"uid": live.metadata.uid, "resourceVersion": live.metadata.resource_version}
    try:
        changed = api.replace({**manifest.document, "metadata": {**metadata, **condition}})
    except ConflictError:
        return  # somebody changes it just now: then it is theirs
    except InvalidObjectError:
        # Most of a class cannot be changed in place. It is only a recipe: no volume depends on the object.
        api.delete(struct, name, uid=live.metadata.uid, resource_version=live.metadata.resource_version)
        _create(api, manifest, version)
        return
    _seal(api, changed)


def _create(api: ApiClient, manifest: Manifest, version: str) -> None:
    try:
        made = api.create(_marked(manifest.document, version))
    except AlreadyExistsError:
        return
    _seal(api, made)
    logger.info("made %s %s, which %s brings", made.kind, made.metadata.name, version)


def _marked(document: Mapping[str, Any], version: str) -> dict[str, Any]:
    metadata = {key: value for key, value in document.get("metadata", {}).items() if key not in _ASSIGNED}
    annotations = {**(metadata.get("annotations") or {}), PROVIDED_BY: version}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _seal(api: ApiClient, obj: KubeObject) -> None:
    """Note what it is now, defaults filled in. Where this is never reached, the object counts as changed: it stays."""
    patch = {"metadata": {"annotations": {PROVIDED_DIGEST: _digest(obj)}}}
    api.patch(type(obj), obj.metadata.name, patch)


def _digest(obj: KubeObject) -> str:
    """Everything that somebody could have meant by changing the object."""
    from volumehost.api.convert import to_json, to_wire

    document = to_wire(obj)
    metadata = {key: value for key, value in document["metadata"].items() if key not in _ASSIGNED}
    annotations = metadata.get("annotations", {})
    metadata["annotations"] = {key: annotations[key] for key in sorted(annotations) if key not in _MARKS}
    return hashlib.sha256(to_json({**document, "metadata": metadata}).encode()).hexdigest()


_MARKS = (PROVIDED_BY, PROVIDED_DIGEST)
