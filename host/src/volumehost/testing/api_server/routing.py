"""From a method and a path to what is asked for: resource, namespace, name, subresource, verb."""

from __future__ import annotations

from dataclasses import dataclass

from volumehost.testing.api_server.failures import StatusError, no_such_path, not_allowed
from volumehost.testing.api_server.messages import HttpRequest
from volumehost.testing.api_server.resources import SUBRESOURCES, Resource, resources
from volumehost.testing.api_server.selecting import named_by_field

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Route:
    """What a request is for; ``resource`` is None outside of the API's resources."""

    verb: str
    resource: Resource | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def route(request: HttpRequest) -> Route:
    """Where a request goes.

    :raises StatusError: there is no such path, or it does not take the method.
    """
    parts = [part for part in request.path.split("/") if part]
    api_version, rest = _split(parts)
    if not rest:
        return Route(request.method.lower())
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (api_version, rest[2]) in resources():
        namespace, rest = rest[1], rest[2:]
    resource = resources().get((api_version, rest[0]))
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if name and resource.namespaced and not namespace:
        raise no_such_path()
    if resource.plural == "namespaces":
        namespace = name  # as Kubernetes' own authorisation sees it
    verb = _verb(request, resource, name, subresource)
    if not name and verb in ("list", "watch"):
        name = named_by_field(request.query.get("fieldSelector", ""))
    return Route(verb, resource, namespace, name, subresource)


def _split(parts: list[str]) -> tuple[str, list[str]]:
    """The apiVersion and what follows it; nothing follows outside of the API's resources."""
    if len(parts) > 2 and parts[0] == "api":
        return parts[1], parts[2:]
    if len(parts) > 3 and parts[0] == "apis":
        return f"{parts[1]}/{parts[2]}", parts[3:]
    return "", []


def _verb(request: HttpRequest, resource: Resource, name: str, subresource: str) -> str:
    verb = _VERBS.get(request.method, "")
    if not verb:
        raise not_allowed()
    if subresource:
        _check_subresource(resource, subresource, verb)
        return verb
    if not name:
        if verb == "get" and is_true(request.query.get("watch", "")):
            return "watch"
        if verb in ("update", "patch"):
            raise not_allowed()
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    elif verb == "create":
        raise not_allowed()
    if verb not in resource.verbs:
        raise not_allowed()
    return verb


def _check_subresource(resource: Resource, subresource: str, verb: str) -> None:
    if subresource == "status" and resource.known.has_status:
        allowed: tuple[str, ...] = ("get", "update", "patch")
    elif subresource in SUBRESOURCES.get(resource.plural, {}):
        allowed = ("update",) if subresource == "finalize" else ("create",)
    else:
        raise no_such_path()
    if verb not in allowed:
        raise not_allowed()


def is_true(text: str) -> bool:
    """A boolean parameter, as Go reads it.

    :raises StatusError: it is none.
    """
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("", "0", "f", "F", "false", "FALSE", "False"):
        return False
    raise StatusError(400, f'strconv.ParseBool: parsing "{text}": invalid syntax')
