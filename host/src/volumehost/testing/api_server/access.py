"""Who may do what: refusals that a test asks for, and roles and bindings where they are enforced."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from volumehost.testing.api_server.cluster import Cluster
from volumehost.testing.api_server.failures import StatusError
from volumehost.testing.api_server.resources import Resource, find
from volumehost.testing.api_server.storage import Document
from volumehost.testing.api_server.users import ANONYMOUS, MASTERS, User

#: What everybody who is known may read, and create.
_OPEN_PATHS = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")
_OPEN_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectreviews")


@dataclass(frozen=True, slots=True)
class Attributes:
    """What somebody wants to do; ``path`` is set, and nothing else but the verb, outside of the API's resources."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def permission(self) -> str:
        """The resource as roles name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True, eq=False)
class Denial:
    """Requests that are refused whatever else holds."""

    user: str
    verb: str
    resource: str
    namespace: str

    def covers(self, user: User, attributes: Attributes) -> bool:
        """Whether a request is one of them."""
        asked = (self.user, self.verb, self.resource, self.namespace)
        found = (user.name, attributes.verb, attributes.permission, attributes.namespace)
        return all(wanted in ("*", there) for wanted, there in zip(asked, found, strict=True))


class Access:
    """The decisions. Safe for threads."""

    def __init__(self, cluster: Cluster, *, rbac: bool) -> None:
        self._cluster = cluster
        self._rbac = rbac
        self._lock = threading.Lock()
        self._denials: list[Denial] = []

    def deny(self, denial: Denial) -> None:
        """Refuse such requests from now on."""
        with self._lock:
            self._denials.append(denial)

    def permit(self, denial: Denial) -> None:
        """Refuse them no longer."""
        with self._lock:
            self._denials.remove(denial)

    def allows(self, user: User, attributes: Attributes) -> bool:
        """Whether somebody may do something."""
        with self._lock:
            denials = list(self._denials)
        if any(denial.covers(user, attributes) for denial in denials):
            return False
        if user == ANONYMOUS:
            return attributes.path.startswith(("/version", "/healthz", "/livez", "/readyz"))
        if not self._rbac or MASTERS in user.groups:
            return True
        if attributes.path.startswith(_OPEN_PATHS) or attributes.resource in _OPEN_REVIEWS:
            return True
        return any(_rule_allows(rule, attributes) for rule in self._rules(user, attributes.namespace))

    def check(self, user: User, attributes: Attributes, resource: Resource | None) -> None:
        """Refuse what is not allowed.

        :raises StatusError: it is not (403).
        """
        if self.allows(user, attributes):
            return
        if resource is None:
            raise StatusError(403, f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"')
        where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        named = f' "{attributes.name}"' if attributes.name else ""
        raise StatusError(
            403,
            f'{resource.qualified}{named} is forbidden: User "{user.name}" cannot {attributes.verb} resource '
            f'"{attributes.permission}" in API group "{attributes.group}" {where}',
            details=({"name": attributes.name} if attributes.name else {})
            | ({"group": attributes.group} if attributes.group else {})
            | {"kind": attributes.resource},
        )

    def _rules(self, user: User, namespace: str) -> Iterator[Mapping[str, Any]]:
        storage = self._cluster.storage
        bound = [stored.document for _key, stored in storage.all(find("clusterrolebindings"))]
        if namespace:
            bound += [stored.document for key, stored in storage.all(find("rolebindings")) if key[0] == namespace]
        for binding in bound:
            if any(_is_subject(subject, user, binding) for subject in binding.get("subjects") or ()):
                yield from self._role(binding)

    def _role(self, binding: Document) -> list[Mapping[str, Any]]:
        reference = binding.get("roleRef", {})
        if reference.get("kind") == "ClusterRole":
            stored = self._cluster.storage.get(find("clusterroles"), ("", reference["name"]))
        else:
            namespace = binding["metadata"].get("namespace", "")
            stored = self._cluster.storage.get(find("roles"), (namespace, reference.get("name", "")))
        return list(stored.document.get("rules") or ()) if stored is not None else []

    def review(self, user: User, review: Document) -> Document:
        """Answer an access review: whether the user may do what its spec says."""
        spec = review.get("spec") or {}
        wanted = spec.get("resourceAttributes")
        if wanted is not None:
            names = ("verb", "group", "resource", "subresource", "namespace", "name")
            attributes = Attributes(**{name: str(wanted.get(name, "")) for name in names})
        else:
            wanted = spec.get("nonResourceAttributes") or {}
            attributes = Attributes(str(wanted.get("verb", "")), path=str(wanted.get("path", "")))
        return review | {"status": {"allowed": self.allows(user, attributes)}}


def _rule_allows(rule: Mapping[str, Any], attributes: Attributes) -> bool:
    if not _names(rule.get("verbs"), attributes.verb):
        return False
    if attributes.path:
        paths = rule.get("nonResourceURLs") or ()
        return any(
            path == attributes.path or (path.endswith("*") and attributes.path.startswith(path[:-1])) for path in paths
        )
    resources = rule.get("resources") or ()
    if not _names(rule.get("apiGroups"), attributes.group):
        return False
    wildcard = f"*/{attributes.subresource}" if attributes.subresource else attributes.permission
    if not (_names(resources, attributes.permission) or wildcard in resources):
        return False
    names = rule.get("resourceNames") or ()
    return not names or attributes.name in names


def _names(listed: Any, wanted: str) -> bool:
    return bool(listed) and ("*" in listed or wanted in listed)


def _is_subject(subject: Mapping[str, Any], user: User, binding: Document) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(name == user.name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
            return user.name == f"system:serviceaccount:{namespace}:{name}"
        case _:
            return False
