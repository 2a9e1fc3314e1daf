"""What a VolumeSnapshotClass says: which one is the default, which secrets it names, what goes to the driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from volumehost.api.validation.names import dns_label, dns_subdomain
from volumehost.control.snapshots.snapshot_names import DEFAULT_CLASS
from volumehost.control.writes import get_or_none
from volumehost.errors import FailedPreconditionError, SpecError

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import SecretReference, VolumeSnapshot, VolumeSnapshotClass

_RESERVED = "csi.storage.k8s.io/"
#: Parameters that are for the controller and not for the driver; those of groups may stand in a shared class.
_OWN = frozenset(
    f"{_RESERVED}{purpose}-secret-{what}"
    for purpose in ("snapshotter", "snapshotter-list", "group-snapshotter", "group-snapshotter-get")
    for what in ("name", "namespace")
)
_TOKEN = re.compile(r"\$\{([^}]*)\}|\$(\w+)")


def class_of(api: ApiClient, name: str | None) -> VolumeSnapshotClass | None:
    """The class of that name; None for no name.

    :raises FailedPreconditionError: there is no such class.
    """
    from volumehost.api.objects import VolumeSnapshotClass

    if not name:
        return None
    found = get_or_none(api, VolumeSnapshotClass, name)
    if found is None:
        raise FailedPreconditionError(
            f"there is no VolumeSnapshotClass {name}", action=f"reading snapshot class {name}", subject=name
        )
    return found


def default_snapshot_class(api: ApiClient, driver: str) -> VolumeSnapshotClass:
    """The one class of the driver that is marked as the default.

    :raises FailedPreconditionError: none is, or more than one.
    """
    from volumehost.api.objects import VolumeSnapshotClass

    of_driver = [each for each in api.list(VolumeSnapshotClass).items if each.driver == driver]
    marked = [each for each in of_driver if each.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    if len(marked) == 1:
        return marked[0]
    action = f"choosing a VolumeSnapshotClass of driver {driver}"
    if marked:
        names = ", ".join(each.metadata.name for each in marked)
        raise FailedPreconditionError(
            f"{len(marked)} classes are marked as the default: {names}", action=action, hint="name one of them"
        )
    names = ", ".join(each.metadata.name for each in of_driver)
    hint = f"name one of {names}" if names else "create a VolumeSnapshotClass of that driver"
    raise FailedPreconditionError("no class is marked as the default", action=action, hint=hint)


def driver_parameters(snapshot_class: VolumeSnapshotClass | None) -> dict[str, str]:
    """What goes to the driver.

    :raises SpecError: a parameter has the reserved prefix and is not known.
    """
    parameters = snapshot_class.parameters if snapshot_class is not None else {}
    unknown = sorted(key for key in parameters if key.startswith(_RESERVED) and key not in _OWN)
    if unknown:
        raise SpecError(f"unknown parameter {', '.join(unknown)}: the prefix {_RESERVED} is reserved")
    return {key: text for key, text in parameters.items() if key not in _OWN}


def snapshotter_secret(
    snapshot_class: VolumeSnapshotClass, content_name: str, snapshot: VolumeSnapshot
) -> SecretReference | None:
    """The secret for making and deleting a snapshot, None where the class names none.

    :raises SpecError: only half a name is given, or it is no name.
    """
    metadata = snapshot.metadata
    namespaces = {"volumesnapshotcontent.name": content_name, "volumesnapshot.namespace": metadata.namespace}
    # A user chooses the name of a snapshot, so it must not decide in which namespace a secret is looked for.
    return _secret(
        snapshot_class.parameters, "snapshotter", namespaces | {"volumesnapshot.name": metadata.name}, namespaces
    )


def list_secret(snapshot_class: VolumeSnapshotClass | None, content_name: str) -> SecretReference | None:
    """The secret for asking about snapshots, None where the class names none.

    :raises SpecError: only half a name is given, or it is no name.
    """
    if snapshot_class is None:
        return None
    names = {"volumesnapshotcontent.name": content_name}
    return _secret(snapshot_class.parameters, "snapshotter-list", names, names)


def _secret(
    parameters: Mapping[str, str], purpose: str, names: Mapping[str, str], namespaces: Mapping[str, str]
) -> SecretReference | None:
    from volumehost.api.objects import SecretReference

    name = parameters.get(f"{_RESERVED}{purpose}-secret-name")
    namespace = parameters.get(f"{_RESERVED}{purpose}-secret-namespace")
    if name is None and namespace is None:
        return None
    if not name or not namespace:
        raise SpecError(f"the {purpose} secret needs both a name and a namespace")
    reference = SecretReference(name=_resolved(name, names), namespace=_resolved(namespace, namespaces))
    for text, shown, problem in (
        (reference.namespace, namespace, dns_label(reference.namespace)),
        (reference.name, name, dns_subdomain(reference.name)),
    ):
        if problem:
            resolved = "" if text == shown else f", which stands for {text!r},"
            raise SpecError(f"{shown!r}{resolved} is no name of a secret or namespace: {problem}")
    return reference


def _resolved(template: str, names: Mapping[str, str]) -> str:
    unknown = sorted({token for match in _TOKEN.finditer(template) if (token := match[1] or match[2]) not in names})
    if unknown:
        raise SpecError(f"{template!r} holds {', '.join(unknown)}, which stands for nothing here")
    return _TOKEN.sub(lambda match: names[match[1] or match[2]], template)
