"""Label and field selectors of lists and watches. Fields can be asked for only where a real server can."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from volumehost.api.selectors import parse_selector
from volumehost.errors import InvalidObjectError
from volumehost.testing.api_server.failures import bad_request
from volumehost.testing.api_server.resources import Resource

Document = Mapping[str, Any]

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
        *("status.phase", "status.podIP", "status.nominatedNodeName"),
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicasets.apps": ("status.replicas",),
    "events": (*(f"involvedObject.{field}" for field in _INVOLVED), "reason", "reportingComponent", "source", "type"),
    "events.events.k8s.io": (
        *(f"regarding.{field}" for field in _INVOLVED),
        *("reason", "reportingController", "type"),
    ),
    "clustertrustbundles.certificates.k8s.io": ("spec.signerName",),
    "podcertificaterequests.certificates.k8s.io": ("spec.signerName", "spec.podName", "spec.nodeName"),
}
_TERM = re.compile(r"(?P<field>[^=!,]+?)(?P<operator>==|=|!=)(?P<value>[^,=]*)")
#: Where the value lies when it is not where the name says.
_ELSEWHERE = {"source": "source.component"}
_KINDS_OF_FALSE = {"spec.unschedulable", "spec.hostNetwork"}

Matcher = Callable[[Document], bool]


def matcher(resource: Resource, labels: str, fields: str) -> Matcher:
    """Whether a stored object is selected.

    :raises StatusError: a selector cannot be read, or a field cannot be asked for (400).
    """
    try:
        selector = parse_selector(labels)
    except InvalidObjectError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    terms = _terms(fields)
    known = ("metadata.name", *(("metadata.namespace",) if resource.namespaced else ()))
    allowed = (*known, *_FIELDS.get(resource.qualified, ()))
    for field, _, _ in terms:
        if field not in allowed:
            raise bad_request(
                f'Unable to find "{resource.api_version}, Resource={resource.plural}" that match label selector '
                f'"{labels}", field selector "{fields}": field label not supported: {field}'
            )

    def matches(document: Document) -> bool:
        return selector.matches(document["metadata"].get("labels") or {}) and all(
            (_value(document, field) == value) == (operator != "!=") for field, operator, value in terms
        )

    return matches


def _terms(fields: str) -> list[tuple[str, str, str]]:
    found = []
    for text in fields.split(",") if fields else ():
        if not text:
            continue
        term = _TERM.fullmatch(text)
        if term is None:
            raise bad_request(f"invalid selector: '{fields}'; can't understand '{text}'")
        found.append((term["field"].strip(), term["operator"], term["value"]))
    return found


def named_by_field(fields: str) -> str:
    """The one name that a field selector asks for, "" when it does not."""
    for text in fields.split(","):
        term = _TERM.fullmatch(text)
        if term is not None and term["field"] == "metadata.name" and term["operator"] != "!=":
            return term["value"]
    return ""


def _value(document: Document, field: str) -> str:
    if field.startswith("regarding."):  # both kinds of events are kept as core/v1
        field = field.replace("regarding.", "involvedObject.", 1)
    value: Any = document
    for part in _ELSEWHERE.get(field, "reportingComponent" if field == "reportingController" else field).split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return "false" if field in _KINDS_OF_FALSE else ""
    return str(value).lower() if isinstance(value, bool) else str(value)
