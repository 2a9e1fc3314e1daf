"""Bodies of requests, read and checked as far as they can be without knowing what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from volumehost.api.convert import decode_wire
from volumehost.api.decoding import decode
from volumehost.api.objects import ApiStruct, KubeObject
from volumehost.api.schema import shape_of
from volumehost.errors import InvalidObjectError
from volumehost.testing.api_server.event_versions import to_core
from volumehost.testing.api_server.failures import StatusError, bad_request
from volumehost.testing.api_server.messages import HttpRequest
from volumehost.testing.api_server.resources import Resource, find
from volumehost.testing.api_server.storage import Document
from volumehost.testing.api_server.times import normalise_times

#: What a server takes in one request, in bytes.
MAX_BODY = 3 * 1024 * 1024
_OBJECT_TYPES = ("", "application/json", "application/yaml")


def read_data(request: HttpRequest) -> Any:
    """The body as data.

    :raises StatusError: it is too large, of a type that is not known, or neither JSON nor YAML.
    """
    if len(request.body) > MAX_BODY:
        raise StatusError(413, f"Request entity too large: limit is {MAX_BODY}")
    try:
        if "yaml" in request.content_type:
            return msgspec.yaml.decode(request.body)
        return msgspec.json.decode(request.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type Status): {error}") from None


def read_object(request: HttpRequest, resource: Resource) -> Document:
    """The body as an object of the resource, nulls gone, quantities and times in their usual form.

    :raises StatusError: it is none.
    """
    if request.content_type not in _OBJECT_TYPES:
        raise StatusError(
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, "
            "application/yaml",
        )
    return as_object(read_data(request), resource, strict=request.query.get("fieldValidation") == "Strict")


def as_object(data: Any, resource: Resource, *, strict: bool = False) -> Document:
    """Data as an object of the resource.

    :param strict: refuse fields that the kind does not have, where its fields are known.
    :raises StatusError: it is none.
    """
    if not isinstance(data, Mapping):
        raise bad_request(f"couldn't get version/kind; json parse error: not an object of kind {resource.kind}")
    if resource.custom and not (data.get("kind") and data.get("apiVersion")):
        raise bad_request("Object 'Kind' is missing in the body of the request")
    found = (data.get("apiVersion") or resource.api_version, data.get("kind") or resource.kind)
    if found != (resource.api_version, resource.kind):
        raise bad_request(
            f'{found[1]} in version "{found[0]}" cannot be handled as a {resource.kind}: the API version in the data '
            f"({found[0]}) does not match the expected API version ({resource.api_version})"
        )
    document = dict(data) | {"apiVersion": found[0], "kind": found[1]}
    if resource.qualified == "events.events.k8s.io":
        document = to_core(document)
        resource = find("events")
    struct = resource.known.struct
    if struct is KubeObject:
        strict = False
        document = {key: value for key, value in document.items() if key not in _TYPE}
    try:
        result = decode_wire(struct, document)
    except InvalidObjectError as error:
        problems = "; ".join(f"{path}: {text}" for path, text in error.problems)
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {problems}'
        ) from None
    if strict and result.unknown:
        told = ", ".join(f'unknown field "{path.removeprefix("$.")}"' for path, _hint in result.unknown)
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: strict decoding '
            f"error: {told}"
        )
    decoded: Document = {"apiVersion": resource.api_version, "kind": resource.kind} | {
        key: value for key, value in result.value.items() if key not in _TYPE
    }
    decoded.setdefault("metadata", {})
    normalise_times(decoded)
    return decoded


def as_struct(data: Any, struct: type[ApiStruct]) -> Document:
    """Data that must have the shape of a type that is no object of a resource, nulls gone.

    :raises StatusError: it has not.
    """
    if not isinstance(data, Mapping):
        raise bad_request(f"the body of the request is no {struct.__name__}")
    found = decode(data, shape_of(struct))
    if found.problems:
        told = "; ".join(f"{path}: {text}" for path, text in found.problems)
        raise bad_request(f"the body of the request is no {struct.__name__}: {told}")
    if found.value.get("kind", struct.__name__) != struct.__name__:
        raise bad_request(f"the body of the request is no {struct.__name__} but a {found.value['kind']}")
    return found.value


_TYPE = ("apiVersion", "kind")
