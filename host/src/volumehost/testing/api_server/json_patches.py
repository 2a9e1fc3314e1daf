"""JSON patches (RFC 6902)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from volumehost.testing.api_server.failures import StatusError, bad_request


def json_patch(target: Any, operations: Sequence[Any]) -> Any:
    """Apply the operations in turn; the target is not changed.

    :raises StatusError: one of them is none (400), or cannot be applied (422).
    """
    result = copy.deepcopy(target)
    for operation in operations:
        if not isinstance(operation, Mapping) or "op" not in operation or "path" not in operation:
            raise bad_request("error decoding patch: an operation must have op and path")
        result = _apply(result, operation)
    return result


def _apply(document: Any, operation: Mapping[str, Any]) -> Any:
    path = _parts(operation["path"])
    match operation["op"]:
        case "add":
            return _add(document, path, _value(operation))
        case "remove":
            return _remove(document, path)
        case "replace":
            _find(document, path)
            return _add(_remove(document, path), path, _value(operation)) if path else _value(operation)
        case "move":
            source = _parts(operation.get("from"))
            value = _find(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(_find(document, _parts(operation.get("from")))))
        case "test":
            if _find(document, path) != _value(operation):
                raise _refused(f"testing value {operation['path']} failed: test failed")
            return document
        case unknown:
            raise bad_request(f"error decoding patch: unexpected kind: {unknown}")


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise bad_request(f"error decoding patch: {operation['op']} lacks a value")
    return operation["value"]


def _parts(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise bad_request(f"error decoding patch: {pointer!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _find(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        else:
            raise _refused(f"the path /{'/'.join(path)} does not exist: missing value")
    return document


def _add(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    holder, last = _find(document, path[:-1]), path[-1]
    if isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, list) and last == "-":
        holder.append(value)
    elif isinstance(holder, list) and last.isdigit() and int(last) <= len(holder):
        holder.insert(int(last), value)
    else:
        raise _refused(f"add operation does not apply: /{'/'.join(path)}: missing value")
    return document


def _remove(document: Any, path: Sequence[str]) -> Any:
    _find(document, path)
    holder, last = _find(document, path[:-1]), path[-1]
    if isinstance(holder, list):
        del holder[int(last)]
    else:
        del holder[last]
    return document


def _refused(why: str) -> StatusError:
    return StatusError(422, f"the server rejected our request due to an error in our request: {why}")
