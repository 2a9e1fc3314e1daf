"""PATCH: which patch a content type means, and its application to a stored object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from volumehost.api.merging import merge_patch
from volumehost.testing.api_server.cluster import document_view
from volumehost.testing.api_server.event_versions import to_core
from volumehost.testing.api_server.failures import StatusError, bad_request
from volumehost.testing.api_server.incoming import as_object, read_data
from volumehost.testing.api_server.json_patches import json_patch
from volumehost.testing.api_server.messages import HttpRequest
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.storage import Document, Stored
from volumehost.testing.api_server.strategic_patches import strategic_patch

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


def read_patch(request: HttpRequest, resource: Resource) -> Callable[[Document], Document]:
    """What the patch of a request makes of a stored object.

    :raises StatusError: it is none that the resource takes.
    """
    accepted = (JSON_PATCH, MERGE) if resource.custom else (JSON_PATCH, MERGE, STRATEGIC)
    if request.content_type not in accepted:
        known = ", ".join((*accepted, APPLY))
        raise StatusError(
            415, f"the body of the request was in an unknown format - accepted media types include: {known}"
        )
    data = read_data(request)
    if request.content_type == JSON_PATCH:
        if not isinstance(data, list):
            raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
        return lambda stored: _patched(resource, stored, lambda shown: json_patch(shown, data))
    if not isinstance(data, Mapping):
        raise bad_request("json: cannot unmarshal array into Go value of type map[string]interface {}")
    if request.content_type == STRATEGIC:
        return lambda stored: _patched(resource, stored, lambda shown: strategic_patch(shown, data))
    return lambda stored: _patched(resource, stored, lambda shown: merge_patch(shown, data))


def _patched(resource: Resource, stored: Document, apply: Callable[[Document], Any]) -> Document:
    """Through the eyes of the resource, whichever way its objects are kept."""
    result = as_object(apply(document_view(resource, Stored(stored, 0))), resource)
    return to_core(result) if resource.qualified == "events.events.k8s.io" else result
