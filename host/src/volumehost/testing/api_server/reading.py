"""Get and list: from the newest state, from any, or from a certain version; in pages that belong together."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from volumehost.testing.api_server.cluster import Cluster, item_view, parse_revision, view
from volumehost.testing.api_server.failures import StatusError, bad_request, expired, not_found
from volumehost.testing.api_server.messages import Answer, answer
from volumehost.testing.api_server.resources import Resource
from volumehost.testing.api_server.routing import Route
from volumehost.testing.api_server.selecting import matcher
from volumehost.testing.api_server.storage import Key, Stored, TooOldError

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def get(cluster: Cluster, route: Route, query: dict[str, str]) -> Answer:
    """One object.

    :raises StatusError: there is none, or the version asked for does not come about.
    """
    resource = _known(route)
    wanted = query.get("resourceVersion", "")
    if wanted:
        await_revision(cluster, parse_revision(wanted))
    key = (route.namespace if resource.namespaced else "", route.name)
    if wanted == "0" and cluster.lag is not None:
        stored = dict(cluster.cached(resource)[1]).get(key)
        if stored is None:
            raise not_found(resource, route.name)
        return answer(view(resource, stored))
    return answer(view(resource, cluster.existing(resource, key)))


def list_objects(cluster: Cluster, route: Route, query: dict[str, str]) -> Answer:
    """A list, or a page of one.

    :raises StatusError: what is asked for cannot be given.
    """
    resource = _known(route)
    matches = matcher(resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    check_options(query)
    limit = _number(query, "limit")
    token = query.get("continue", "")
    start: Key | None = None
    revision, found = _snapshot(cluster, resource, query, limit)
    if token:
        revision, start, found = _continued(cluster, resource, token)
    if query.get("resourceVersion") == "0":
        limit = 0  # the watch cache knows no pages
    items = [
        (key, stored)
        for key, stored in found
        if (not route.namespace or key[0] == route.namespace)
        and (start is None or key > start)
        and matches(stored.document)
    ]
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if limit and len(items) > limit:
        if not (query.get("labelSelector") or query.get("fieldSelector")):
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
        metadata["continue"] = _token(revision, items[-1][0])
    elif not limit and not token:
        # What is listed at once comes in any order from a server's cache.
        items = cluster.shuffled(items)
    return Answer(200, _list_body(resource, metadata, [stored for _key, stored in items]))


def _list_body(resource: Resource, metadata: dict[str, Any], items: list[Stored]) -> bytes:
    head = msgspec.json.encode(
        {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    )
    return head[:-1] + b',"items":[' + b",".join(item_view(resource, stored) for stored in items) + b"]}"


def check_options(query: dict[str, str]) -> None:
    """Refuse combinations of parameters that mean nothing.

    :raises StatusError: they are one (400 and 422, as a server does).
    """
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    problem = ""
    if match and not version:
        problem = (
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    elif match and query.get("continue"):
        problem = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"
    elif match not in ("", "Exact", "NotOlderThan"):
        problem = f'resourceVersionMatch: Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif match == "Exact" and version == "0":
        problem = 'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if problem:
        raise options_invalid(problem)
    if query.get("continue") and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def options_invalid(problem: str) -> StatusError:
    """Parameters that contradict each other."""
    field, _colon, text = problem.partition(": ")
    cause = {"reason": "FieldValueForbidden", "message": text, "field": field}
    return StatusError(
        422,
        f'ListOptions.meta.k8s.io "" is invalid: {problem}',
        details={"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]},
    )


def _snapshot(
    cluster: Cluster, resource: Resource, query: dict[str, str], limit: int
) -> tuple[int, list[tuple[Key, Stored]]]:
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    storage = cluster.storage
    if version not in ("", "0"):
        wanted = parse_revision(version)
        await_revision(cluster, wanted)
        if match == "Exact" or (limit and not match):
            try:
                return wanted, storage.at(wanted, resource)
            except TooOldError:
                raise expired(f"The provided resource version is too old: {wanted}") from None
    if version:
        return cluster.cached(resource)
    with storage.lock:
        return storage.revision, storage.all(resource)


def _continued(cluster: Cluster, resource: Resource, token: str) -> tuple[int, Key, list[tuple[Key, Stored]]]:
    try:
        padded = token + "=" * (-len(token) % 4)
        said = msgspec.json.decode(base64.urlsafe_b64decode(padded.encode()))
        revision, start = int(said["rv"]), (str(said["start"][0]), str(said["start"][1]))
    except (ValueError, KeyError, IndexError, TypeError, msgspec.MsgspecError):
        raise bad_request("continue key is not valid: illegal base64 data or encoding") from None
    storage = cluster.storage
    if revision < 0:  # the rest, as it is now
        with storage.lock:
            return storage.revision, start, storage.all(resource)
    try:
        return revision, start, storage.at(revision, resource)
    except TooOldError:
        raise expired(_EXPIRED, token=_token(-1, start)) from None


def _token(revision: int, last: Key) -> str:
    said = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": list(last)})
    return base64.urlsafe_b64encode(said).decode().rstrip("=")


def await_revision(cluster: Cluster, wanted: int) -> None:
    """Wait a little for a version that is not there yet.

    :raises StatusError: it does not come (504).
    """
    storage = cluster.storage
    if storage.wait(lambda: cluster.reached >= wanted or cluster.stopping.is_set(), cluster.patience):
        return
    failure = StatusError(
        504,
        f"Timeout: Too large resource version: {wanted}, current: {cluster.reached}",
        details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
        retry_after=1,
    )
    raise failure


def _number(query: dict[str, str], name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    if not text.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def _known(route: Route) -> Resource:
    if route.resource is None:
        raise AssertionError("only routes to resources come here")
    return route.resource
