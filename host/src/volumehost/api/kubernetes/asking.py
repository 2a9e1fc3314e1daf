"""What is asked of the API server: verb, kind and object, as URL paths and in words. Used by every part of the room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from volumehost.api.defaults import DEFAULT_NAMESPACE
from volumehost.api.kinds import Kind, kind_of
from volumehost.api.objects import KubeObject
from volumehost.api.selectors import parse_selector
from volumehost.errors import InvalidObjectError, NotAvailableOnHostError, ObjectNotFoundError

_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: ``verb`` is Kubernetes' (``update``, not ``replace``); no namespace means all of them."""

    verb: str
    kind: Kind[Any]
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def method(self) -> str:
        """The HTTP method."""
        return _METHODS[self.verb]

    @property
    def path(self) -> str:
        """The path of the URL.

        :raises ObjectNotFoundError: name or namespace are none that an object can have.
        """
        kind = self.kind
        parts = [f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"]
        if kind.namespaced and self.namespace:
            parts += ["namespaces", self._segment(self.namespace)]
        parts.append(kind.plural)
        if self.name:
            parts.append(self._segment(self.name))
        if self.subresource:
            parts.append(self.subresource)
        return "/".join(parts)

    @property
    def subject(self) -> str:
        """What it is about: ``pod default/web``, ``pods in kube-system``, ``pods``."""
        if self.name:
            return self.kind.describe(self.name, self.namespace)
        return f"{self.kind.plural} in {self.namespace}" if self.namespace else self.kind.plural

    @property
    def resource(self) -> str:
        """As in RBAC: ``pods/status``, ``csinodes.storage.k8s.io``."""
        plural = f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural
        return f"{plural}.{self.kind.group}" if self.kind.group else plural

    @property
    def action(self) -> str:
        """In words, for messages."""
        of = f"the {self.subresource} of " if self.subresource else ""
        return f"{self.verb} {of}{self.subject}"

    def _segment(self, text: str) -> str:
        # Whatever is no name of an object must not become part of a path.
        if "/" in text or "%" in text or text in {".", ".."}:
            raise ObjectNotFoundError(f"there is no {self.subject}: no name has that form", subject=self.subject)
        return quote(text, safe="")


def stored_kind(struct: type[KubeObject]) -> Kind[Any]:
    """The kind, unless it is one that is asked for and forgotten.

    :raises NotAvailableOnHostError: it is such a one.
    """
    kind = kind_of(struct)
    if not kind.stored:
        raise NotAvailableOnHostError(
            f"no {kind.kind} is kept by an API server", subject=kind.kind, hint="call request_token for a token"
        )
    return kind


def one(verb: str, struct: type[KubeObject], name: str, namespace: str, subresource: str = "") -> Asked:
    """A call about one object; "" as the namespace of a kind that has some means ``default``.

    :raises InvalidObjectError: there is no name.
    """
    kind = stored_kind(struct)
    if not name:
        raise InvalidObjectError(subject=kind.kind, problems=[("metadata.name", "Required value")])
    return Asked(verb, kind, (namespace or DEFAULT_NAMESPACE) if kind.namespaced else "", name, subresource)


def many(verb: str, struct: type[KubeObject], namespace: str | None) -> Asked:
    """A call about all objects of a kind, in one namespace or all."""
    kind = stored_kind(struct)
    return Asked(verb, kind, (namespace or "") if kind.namespaced else "")


def selector_query(labels: Mapping[str, str] | str | None, fields: str = "") -> dict[str, str]:
    """Selectors as parameters.

    :raises InvalidObjectError: the labels are no selector.
    """
    parse_selector(labels)
    text = ",".join(f"{key}={value}" for key, value in labels.items()) if isinstance(labels, Mapping) else labels
    query = {"labelSelector": text} if text and text.strip() else {}
    return query | ({"fieldSelector": fields} if fields else {})
