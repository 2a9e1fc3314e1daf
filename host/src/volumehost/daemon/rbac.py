"""What a daemon may do in a cluster, as RBAC objects: made of the table that stands beside the daemon's calls.

``volumehost rbac`` prints them, and the manifests in ``deploy/`` hold them. A test holds each table against the calls
that are made: nothing is missing, nothing superfluous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_API: Final = "rbac.authorization.k8s.io"
_VERSION: Final = f"{_API}/v1"

#: What a watch of a resource needs.
WATCH: Final = ("list", "watch")
#: Of what is written as well: reads by name, when what the watch has told is overtaken by the time of a write.
WATCH_AND_GET: Final = ("get", *WATCH)


@dataclass(frozen=True, slots=True)
class Permission:
    """What may be done with one resource, and what for.

    ``group`` is the API group, "" for the core. ``resource`` may have a subresource (``nodes/status``). ``names``:
    only objects of these names, where there are any. ``own_namespace``: only in the namespace of the daemon itself.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    what_for: str
    names: tuple[str, ...] = ()
    own_namespace: bool = False


def rbac_objects(
    name: str, namespace: str, service_account: str, permissions: Sequence[Permission]
) -> list[dict[str, Any]]:
    """ServiceAccount, roles and bindings that give the account these permissions, and no other.

    :param name: of the roles and bindings.
    :param namespace: where the daemon runs.
    """
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": service_account, "namespace": namespace, "labels": labels(name)},
    }
    everywhere = [each for each in permissions if not each.own_namespace]
    here = [each for each in permissions if each.own_namespace]
    objects = [account]
    if everywhere:
        objects += _granted("ClusterRole", name, "", everywhere, (service_account, namespace))
    if here:
        objects += _granted("Role", name, namespace, here, (service_account, namespace))
    return objects


def labels(name: str) -> dict[str, str]:
    """The labels of everything that belongs to a daemon."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "volumehost"}


def _granted(
    kind: str, name: str, namespace: str, permissions: Sequence[Permission], account: tuple[str, str]
) -> list[dict[str, Any]]:
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels(name)}
    subject = {"kind": "ServiceAccount", "name": account[0], "namespace": account[1]}
    return [
        {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "rules": _rules(permissions)},
        {
            "apiVersion": _VERSION,
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _API, "kind": kind, "name": name},
            "subjects": [subject],
        },
    ]


def _rules(permissions: Sequence[Permission]) -> list[dict[str, Any]]:
    """One rule for what has group, verbs and names in common, in the order of the table."""
    found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for each in permissions:
        found.setdefault((each.group, each.verbs, each.names), []).append(each.resource)
    return [
        {
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(verbs),
        }
        for (group, verbs, names), resources in found.items()
    ]
