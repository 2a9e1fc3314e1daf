"""The registry of kinds: what each is called on the wire, in commands and by its short names.

Manifests, the store and the command line look kinds up here; a lookup that fails says what is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from volumehost.api import objects
from volumehost.api.objects import KubeObject
from volumehost.errors import UnknownKindError

T_co = TypeVar("T_co", bound=KubeObject, covariant=True)


@dataclass(frozen=True)
class Kind(Generic[T_co]):
    """One kind of object.

    ``has_status``: the status is kept apart, so that create and replace leave it alone. ``stored`` is False for
    requests that are answered and forgotten.
    """

    struct: type[T_co]
    api_version: str
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = False
    has_status: bool = False
    stored: bool = True

    @property
    def group(self) -> str:
        """The API group, "" for the core group."""
        group, slash, _version = self.api_version.rpartition("/")
        return group if slash else ""

    @property
    def singular(self) -> str:
        """The singular name in lower case, as commands take it."""
        return self.kind.lower()

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """Every name by which it can be asked for, in lower case."""
        names = (self.singular, self.plural, *self.short_names)
        qualified = (f"{self.singular}.{self.group}", f"{self.plural}.{self.group}") if self.group else ()
        return (*names, *qualified)

    def describe(self, name: str, namespace: str = "") -> str:
        """How the object is called in messages: ``pod default/web``, ``persistentvolume data``."""
        return f"{self.singular} {namespace}/{name}" if self.namespaced and namespace else f"{self.singular} {name}"


_STORAGE = objects.STORAGE_V1
_SNAPSHOT = objects.SNAPSHOT_V1

#: Every kind that this host knows.
KINDS: tuple[Kind[KubeObject], ...] = (
    Kind(objects.Pod, "v1", "Pod", "pods", ("po",), namespaced=True, has_status=True),
    Kind(objects.PersistentVolume, "v1", "PersistentVolume", "persistentvolumes", ("pv",), has_status=True),
    Kind(
        objects.PersistentVolumeClaim,
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        ("pvc",),
        namespaced=True,
        has_status=True,
    ),
    Kind(objects.Node, "v1", "Node", "nodes", ("no",), has_status=True),
    Kind(objects.Secret, "v1", "Secret", "secrets", namespaced=True),
    Kind(objects.ConfigMap, "v1", "ConfigMap", "configmaps", ("cm",), namespaced=True),
    Kind(objects.ServiceAccount, "v1", "ServiceAccount", "serviceaccounts", ("sa",), namespaced=True),
    Kind(objects.Event, "v1", "Event", "events", ("ev",), namespaced=True),
    Kind(objects.StorageClass, _STORAGE, "StorageClass", "storageclasses", ("sc",)),
    Kind(objects.VolumeAttributesClass, _STORAGE, "VolumeAttributesClass", "volumeattributesclasses", ("vac",)),
    Kind(objects.VolumeAttachment, _STORAGE, "VolumeAttachment", "volumeattachments", ("va",), has_status=True),
    Kind(objects.CSIDriver, _STORAGE, "CSIDriver", "csidrivers"),
    Kind(objects.CSINode, _STORAGE, "CSINode", "csinodes"),
    Kind(objects.CSIStorageCapacity, _STORAGE, "CSIStorageCapacity", "csistoragecapacities", namespaced=True),
    Kind(
        objects.VolumeSnapshot,
        _SNAPSHOT,
        "VolumeSnapshot",
        "volumesnapshots",
        ("vs",),
        namespaced=True,
        has_status=True,
    ),
    Kind(
        objects.VolumeSnapshotClass,
        _SNAPSHOT,
        "VolumeSnapshotClass",
        "volumesnapshotclasses",
        ("vsclass", "vsclasses"),
    ),
    Kind(
        objects.VolumeSnapshotContent,
        _SNAPSHOT,
        "VolumeSnapshotContent",
        "volumesnapshotcontents",
        ("vsc", "vscs"),
        has_status=True,
    ),
    Kind(objects.ClusterTrustBundle, objects.CERTIFICATES_V1BETA1, "ClusterTrustBundle", "clustertrustbundles"),
    Kind(
        objects.PodCertificateRequest,
        objects.CERTIFICATES_V1BETA1,
        "PodCertificateRequest",
        "podcertificaterequests",
        namespaced=True,
        has_status=True,
    ),
    Kind(objects.Lease, objects.COORDINATION_V1, "Lease", "leases", namespaced=True),
    Kind(
        objects.TokenRequest,
        "authentication.k8s.io/v1",
        "TokenRequest",
        "tokenrequests",
        namespaced=True,
        has_status=True,
        stored=False,
    ),
)

_BY_STRUCT: dict[type[KubeObject], Kind[KubeObject]] = {kind.struct: kind for kind in KINDS}
_BY_NAME: dict[str, Kind[KubeObject]] = {kind.kind: kind for kind in KINDS}
_BY_SPELLING: dict[str, Kind[KubeObject]] = {spelling: kind for kind in KINDS for spelling in kind.spellings}


def kind_of(struct: type[KubeObject]) -> Kind[KubeObject]:
    """The kind that a struct class stands for.

    :raises UnknownKindError: it stands for none.
    """
    known = _BY_STRUCT.get(struct)
    if known is None:
        raise UnknownKindError(f"{struct.__name__} is not a kind of object", subject=struct.__name__, hint=_known())
    return known


def kind_for(api_version: str, kind: str) -> Kind[KubeObject]:
    """The kind that a manifest names.

    :raises UnknownKindError: it is not known, or not in that version.
    """
    known = _BY_NAME.get(kind)
    if known is None:
        raise _unknown(kind, f"{kind} ({api_version})" if api_version else kind)
    if known.api_version != api_version:
        raise UnknownKindError(
            f"{kind} is known in {known.api_version}, not in {api_version or 'no version'}",
            subject=kind,
            hint=f"write apiVersion: {known.api_version}",
        )
    return known


def find_kind(spelling: str) -> Kind[KubeObject]:
    """The kind that a person asks for: kind, singular, plural or short name, in any case.

    :raises UnknownKindError: none is called so; suggests the nearest.
    """
    known = _BY_SPELLING.get(spelling.strip().lower())
    if known is None:
        raise _unknown(spelling, repr(spelling))
    return known


def _unknown(spelling: str, shown: str) -> UnknownKindError:
    import difflib

    typed = spelling.strip().lower()
    near = difflib.get_close_matches(typed, _BY_SPELLING)
    near.sort(key=lambda word: word[0] != typed[0])  # few get the first letter wrong: pvs is nearer to pv than to vs
    suggestion = f"did you mean {_BY_SPELLING[near[0]].kind}? " if near else ""
    return UnknownKindError(f"unknown kind {shown}", subject=spelling, hint=suggestion + _known())


def _known() -> str:
    names = (f"{kind.kind} ({', '.join(kind.short_names)})" if kind.short_names else kind.kind for kind in KINDS)
    return f"known kinds: {', '.join(names)}"
