"""What clients ask before they ask for objects: versions, groups, resources, health."""

from __future__ import annotations

from typing import Any

from volumehost.testing.api_server.failures import no_such_path
from volumehost.testing.api_server.messages import Answer, answer
from volumehost.testing.api_server.resources import SUBRESOURCES, Resource, resources

_VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-04-22T00:00:00Z",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def discover(path: str) -> Answer:
    """The answer to a GET outside of the API's resources.

    :raises StatusError: there is nothing there.
    """
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["version"]:
            return answer(_VERSION)
        case ["readyz" | "livez" | "healthz", *_]:
            return Answer(200, b"ok", "text/plain; charset=utf-8")
        case ["api"]:
            return answer({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        case ["apis"]:
            groups = [_group(group) for group in _groups()]
            return answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        case ["apis", group] if group in _groups():
            return answer({"kind": "APIGroup", "apiVersion": "v1", **_group(group)})
        case ["openapi", "v3"]:
            versions = sorted({resource.api_version for resource in resources().values()})
            paths = {_root(version): {"serverRelativeURL": f"/openapi/v3/{_root(version)}"} for version in versions}
            return answer({"paths": paths})
        case ["openapi", "v3", *root]:
            return _operations("/".join(root))
        case ["api", version] | ["apis", _, version]:
            api_version = version if len(parts) == 2 else f"{parts[1]}/{version}"
            return _resource_list(api_version)
        case _:
            raise no_such_path()


def _groups() -> list[str]:
    return sorted({resource.group for resource in resources().values()} - {""})


def _group(group: str) -> dict[str, Any]:
    versions = sorted({resource.version for resource in resources().values() if resource.group == group})
    shown = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": shown, "preferredVersion": shown[0]}


def _resource_list(api_version: str) -> Answer:
    found = [resource for resource in resources().values() if resource.api_version == api_version]
    if not found:
        raise no_such_path()
    listed = [entry for resource in found for entry in _entries(resource)]
    return answer({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed})


def _entries(resource: Resource) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.known.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.known.short_names:
        entry["shortNames"] = list(resource.known.short_names)
    found = [entry]
    if resource.known.has_status:
        found.append(_below(resource, "status", resource.kind, ["get", "patch", "update"]))
    for name, kind in SUBRESOURCES.get(resource.plural, {}).items():
        if resource.group:
            continue
        version, _slash, what = kind.rpartition("/")
        verbs = ["update"] if name == "finalize" else ["create"]
        below = _below(resource, name, what, verbs)
        if version != resource.api_version:
            below |= {"group": version.rpartition("/")[0], "version": version.rpartition("/")[2]}
        found.append(below)
    return found


def _below(resource: Resource, name: str, kind: str, verbs: list[str]) -> dict[str, Any]:
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": verbs,
    }


def _root(api_version: str) -> str:
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def _operations(root: str) -> Answer:
    """As much of OpenAPI as clients need to see which parameters a patch takes; no schemas."""
    found = [resource for resource in resources().values() if _root(resource.api_version) == root]
    if not found:
        raise no_such_path()
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    paths = {
        _item_path(root, resource): {
            "patch": {
                "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-group-version-kind": {
                    "group": resource.group,
                    "version": resource.version,
                    "kind": resource.kind,
                },
            }
        }
        for resource in found
    }
    return answer(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": _VERSION["gitVersion"]},
            "paths": paths,
            "components": {"schemas": {}},
        }
    )


def _item_path(root: str, resource: Resource) -> str:
    where = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"/{root}{where}/{resource.plural}/{{name}}"
