"""Messages and texts without their secrets, for logs, errors and events (CSI-WIRE-10, BR-74).

What is secret is known in three ways: the protocol marks fields with ``csi_secret``; keys of contexts and parameters
tell it, the service account tokens above all; and values that a request brought are known when a text repeats them.
"""

from __future__ import annotations

import base64
import functools
import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

STRIPPED = "***stripped***"
#: The key of a volume context under which Kubernetes sends the pod's service account tokens, as JSON.
TOKEN_KEY = "csi.storage.k8s.io/serviceAccount.tokens"  # noqa: S105 - the name of a key

_WORDS = r"pass(?:word|wd|phrase|code)?|secret|token|credentials?|(?:api|access|account|private|secret|ssh)[-_.]?key"
_SENSITIVE_KEY = re.compile(rf"(?:^|[^a-z])(?:{_WORDS})|(?:password|secret|token)s?$", re.IGNORECASE)
# Parameters that say where a secret lies, not what it is.
_REFERENCE = re.compile(r"(?:secret|token|credentials?)[-_.]?(?:ref)?[-_.]?(?:name|namespace)$", re.IGNORECASE)
_ASSIGNMENT = re.compile(rf"\b((?:[\w.-]*[_.-])?(?:{_WORDS})s?\s*=\s*)(\"[^\"]*\"|'[^']*'|[^,;\s\"']+)", re.IGNORECASE)
_USER_INFO = re.compile(r"(://)[^/@\s:]*:[^/@\s]+@")
# A shorter value is cut out only where it stands alone: "a" as a password must not blacken every word.
_WHOLE_WORDS_BELOW = 4
# Parts of a secret that are at least this long are looked for as well: lines of a key file, tokens inside of JSON.
_WORTH_HIDING = 8


def is_sensitive(key: str) -> bool:
    """Whether the value under this key of a context or of parameters must not be shown."""
    return key == TOKEN_KEY or (bool(_SENSITIVE_KEY.search(key)) and not _REFERENCE.search(key))


def redacted(message: Message) -> str:
    """The message on one line, with every secret replaced; ``{}`` when it is empty."""
    return _shown_message(message)


def strip(text: str, secrets: Iterable[str] = ()) -> str:
    """A free text, such as a driver's error message, without these secret values and without ``password=…``.

    A value is found as it is and as it looks quoted in JSON, in a URL or in base64; each line of a longer one too.
    """
    forms = sorted({form for value in secrets for form in _forms(value)}, key=len, reverse=True)
    for form in forms:
        if len(form) < _WHOLE_WORDS_BELOW:
            text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", STRIPPED, text)
        else:
            text = text.replace(form, STRIPPED)
    return _without_assignments(text)


def secret_values(message: Message) -> list[str]:
    """The secret values that a message brings: pass them to :func:`strip` with any text that may repeat them."""
    return list(_secret_values(message))


def _shown_message(message: Message) -> str:
    secret = _secret_fields(message.DESCRIPTOR.full_name)
    parts = []
    for field, value in message.ListFields():
        shown = STRIPPED if field.name in secret else _shown_field(field, value)
        parts.append(f"{field.name}={shown}")
    return "{" + " ".join(parts) + "}"


def _shown_field(field: FieldDescriptor, value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = sorted(value.items())
        return (
            "{"
            + ", ".join(f"{_quoted(k)}: {STRIPPED if is_sensitive(k) else _shown(field, v)}" for k, v in pairs)
            + "}"
        )
    if _is_repeated(value):
        return "[" + ", ".join(_shown(field, item) for item in value) + "]"
    return _shown(field, value)


def _shown(field: FieldDescriptor, value: Any) -> str:
    if isinstance(value, Message):
        return _shown_message(value)
    if isinstance(value, str):
        return _quoted(_without_assignments(value))
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(named.name if named is not None else value)
    return str(value)


def _is_repeated(value: Any) -> bool:
    return not isinstance(value, str | bytes | Message) and hasattr(value, "__len__")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _without_assignments(text: str) -> str:
    return _USER_INFO.sub(rf"\1{STRIPPED}@", _ASSIGNMENT.sub(rf"\1{STRIPPED}", text))


def _secret_values(message: Message) -> Iterator[str]:
    secret = _secret_fields(message.DESCRIPTOR.full_name)
    for field, value in message.ListFields():
        if isinstance(value, Mapping):
            yield from (v for k, v in value.items() if isinstance(v, str) and (field.name in secret or is_sensitive(k)))
        elif isinstance(value, Message):
            yield from _secret_values(value)
        elif _is_repeated(value):
            for item in value:
                if isinstance(item, Message):
                    yield from _secret_values(item)
                elif isinstance(item, str):
                    yield from (found[2].strip("\"'") for found in _ASSIGNMENT.finditer(item))


def _forms(value: str) -> Iterator[str]:
    """How a value may look in a text."""
    for part in _parts(value):
        yield part
        yield urllib.parse.quote(part, safe="")
        yield json.dumps(part)[1:-1]
        yield json.dumps(part, ensure_ascii=False)[1:-1]
        if len(part) >= _WHOLE_WORDS_BELOW:
            yield base64.b64encode(part.encode("utf-8", "surrogatepass")).decode()


def _parts(value: str) -> Iterator[str]:
    if not value.strip():
        return
    yield value
    yield value.strip()
    yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _WORTH_HIDING)
    if value.lstrip()[:1] in ("{", "["):
        try:
            inside = json.loads(value)
        except ValueError:
            return
        yield from (leaf for leaf in _leaves(inside) if len(leaf) >= _WORTH_HIDING)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)


def _secret_fields(full_name: str) -> frozenset[str]:
    """Names of the fields of a message that the protocol marks as secret."""
    return _marked_fields().get(full_name, frozenset())


@functools.cache
def _marked_fields() -> Mapping[str, frozenset[str]]:
    """Every message with marked fields, read from the descriptor with classes that know the mark."""
    from volumehost_csi_kit import _pool, csi

    _pool.message_class("google.protobuf.FieldOptions")
    file: Any = _pool.message_class("google.protobuf.FileDescriptorProto").FromString(csi.DESCRIPTOR.serialized_pb)
    marked = {}
    for message in file.message_type:  # the protocol marks no field of a nested message
        secret = frozenset(field.name for field in message.field if field.options.Extensions[csi.csi_secret])
        if secret:
            marked[f"{file.package}.{message.name}"] = secret
    return marked
