"""Strategic merge patches: as JSON merge patches, but lists whose items have a key are merged item by item."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from volumehost.testing.api_server.failures import bad_request

#: Lists that are merged, by the name of their field, and what tells their items apart.
_KEYS: dict[str, str] = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "drivers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "resourceClaims": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
#: Lists of plain values that are sets.
_SETS = frozenset({"finalizers", "podCIDRs"})
_DIRECTIVE, _RETAIN, _ORDER, _DELETE = "$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/"


def merge_key(field: str) -> str:
    """What tells the items of a list apart, by the name of its field; "" when nothing does."""
    return _KEYS.get(field, "")


def strategic_patch(target: Any, patch: Any) -> Any:
    """Apply the patch; neither argument is changed.

    :raises StatusError: a directive or an item makes no sense.
    """
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: copy.deepcopy(value) for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    result = dict(target) if isinstance(target, Mapping) else {}
    if _RETAIN in patch:
        retained = _list(patch[_RETAIN], _RETAIN)
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key not in (_DIRECTIVE, _RETAIN) and not key.startswith(_ORDER):
            _merge_field(result, key, value)
    for key, order in patch.items():
        field = key.removeprefix(_ORDER)
        if field != key and field in result:
            result[field] = _ordered(_list(result[field], field), _list(order, key), _KEYS.get(field))
    return result


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"expecting list for {name}, but got {type(value).__name__}")
    return value


def _merge_field(result: dict[str, Any], key: str, value: Any) -> None:
    if key.startswith(_DELETE):
        field = key.removeprefix(_DELETE)
        gone = _list(value, key)
        result[field] = [item for item in _list(result.get(field, []), field) if item not in gone]
    elif value is None:
        result.pop(key, None)
    elif isinstance(value, list):
        result[key] = _merge_list(result.get(key), value, key)
    else:
        result[key] = strategic_patch(result.get(key), value)


def _merge_list(stored: Any, new: list[Any], field: str) -> list[Any]:
    there = list(stored) if isinstance(stored, list) else []
    if field in _KEYS and not all(isinstance(item, Mapping) for item in there):
        raise bad_request(f"expecting a list of objects for {field}")
    if any(isinstance(item, Mapping) and item == {_DIRECTIVE: "replace"} for item in new):
        return [copy.deepcopy(item) for item in new if item != {_DIRECTIVE: "replace"}]
    if field in _SETS:
        return there + [item for item in new if item not in there]
    key = _KEYS.get(field)
    if key is None:
        return copy.deepcopy(new)
    for item in new:
        if not isinstance(item, Mapping) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        place = next((index for index, old in enumerate(there) if old.get(key) == item[key]), None)
        if item.get(_DIRECTIVE) == "delete":
            there = [old for old in there if old.get(key) != item[key]]
        elif place is None:
            there.append(strategic_patch({}, {k: v for k, v in item.items() if k != _RETAIN}))
        else:
            there[place] = strategic_patch(there[place], item)
    return there


def _ordered(items: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """The items in the order that the patch says; those that it does not name keep their places behind."""
    wanted = [entry.get(key) if key and isinstance(entry, Mapping) else entry for entry in order]

    def rank(item: Any) -> int:
        value = item.get(key) if key and isinstance(item, Mapping) else item
        return wanted.index(value) if value in wanted else len(wanted)

    return sorted(items, key=rank)
