"""YAML in: documents as plain data, with the line of every field, from text that nobody trusts.

Refused: duplicate keys, tags that make Python objects, references to themselves, text that unfolds to far more than it
is, deep nesting. Works on the parser's events, so that no input can exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import yaml

from volumehost.api.decoding import child
from volumehost.api.yaml_document import YamlDocument, YamlError
from volumehost.api.yaml_scalars import ScalarError, resolve_plain, resolve_tagged

_MAX_DEPTH = 100
#: Values of all documents of one text together, aliases unfolded.
_MAX_VALUES = 200_000
_MERGE_KEY = "<<"
_COLLECTION_TAGS = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!", None}

# The parser in C where PyYAML was built with it: the same events, ten times as fast.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Node(msgspec.Struct):
    """A value being put together. ``size`` counts values, unfolded; ``items`` are children with their lines."""

    line: int
    anchor: str | None
    is_map: bool
    value: Any
    size: int = 1
    key: str | None = None
    key_is_merge: bool = False
    has_key: bool = False
    merged: list[dict[str, Any]] = msgspec.field(default_factory=list)
    children: list[tuple[str | int, _Lines]] = msgspec.field(default_factory=list)


class _Lines(msgspec.Struct):
    """Lines of a value and of what is in it."""

    line: int
    children: list[tuple[str | int, _Lines]] = msgspec.field(default_factory=list)


def read_yaml(text: str, *, loader: Any = _LOADER) -> Iterator[YamlDocument]:
    """The documents of a text that are not empty.

    :param loader: PyYAML's parser, in C or in Python; only its events are used.
    :raises YamlError: the text is not YAML, or holds what no manifest needs.
    """
    composer = _Composer()
    number = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.DocumentStartEvent):
                number += 1
                composer.start_document()
            elif isinstance(event, yaml.DocumentEndEvent):
                value, lines = composer.finished()
                if value is not None:
                    yield YamlDocument(value, number, lines.line, _flatten(lines))
            else:
                composer.feed(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context or "it cannot be parsed"
        if mark and _is_indented_by_a_tab(text, mark.line):
            reason += ": the line is indented by a tab, use spaces"
        raise YamlError(reason, mark.line + 1 if mark else 0) from None
    except yaml.YAMLError as error:
        raise YamlError(str(error).splitlines()[0], 0) from None


def _is_indented_by_a_tab(text: str, number: int) -> bool:
    line = next(islice(text.splitlines(), number, None), "")
    return "\t" in line[: len(line) - len(line.lstrip())]


class _Composer:
    """Puts values together from events, with a stack of its own."""

    def __init__(self) -> None:
        self._stack: list[_Node] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._done: tuple[Any, _Lines] = (None, _Lines(0))
        self._total = 0

    def start_document(self) -> None:
        self._stack = []
        self._anchors = {}
        self._done = (None, _Lines(0))

    def finished(self) -> tuple[Any, _Lines]:
        return self._done

    def feed(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                self._alias(event.anchor or "", line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._start(event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()
            case _:
                pass

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        plain = event.implicit[0]
        try:
            if plain:
                value = resolve_plain(event.value)
            elif event.tag is None:
                value = event.value
            else:
                value = resolve_tagged(event.value, event.tag)
        except ScalarError as error:
            raise YamlError(str(error), line) from None
        if self._wants_key():
            if event.anchor:
                self._anchors[event.anchor] = (value, 1)
            self._take_key(event.value, value, line, is_merge=plain and event.value == _MERGE_KEY)
            return
        self._count(1, line)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._place(value, 1, _Lines(line))

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self._anchors:
            raise YamlError(f"the alias *{anchor} has no anchor before it", line)
        target = self._anchors[anchor]
        if target is None:
            raise YamlError(f"the alias *{anchor} is inside of what it stands for", line)
        value, size = target
        if self._wants_key():
            if isinstance(value, (dict, list)):
                raise YamlError("a key must be text", line)
            self._take_key(value if isinstance(value, str) else str(value), value, line, is_merge=False)
            return
        self._count(size, line)
        self._place(value, size, _Lines(line))

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, line: int) -> None:
        if self._wants_key():
            raise YamlError("a key must be text", line)
        if event.tag not in _COLLECTION_TAGS:
            raise YamlError(f"the tag {event.tag} is not allowed: only plain data is", line)
        if len(self._stack) >= _MAX_DEPTH:
            raise YamlError(f"nested deeper than {_MAX_DEPTH} levels", line)
        self._count(1, line)
        is_map = isinstance(event, yaml.MappingStartEvent)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Node(line, event.anchor, is_map, {} if is_map else []))

    def _end(self) -> None:
        node = self._stack.pop()
        for merged in node.merged:
            for key, value in merged.items():
                node.value.setdefault(key, value)
        if node.anchor:
            self._anchors[node.anchor] = (node.value, node.size)
        self._place(node.value, node.size, _Lines(node.line, node.children))

    def _wants_key(self) -> bool:
        return bool(self._stack) and self._stack[-1].is_map and not self._stack[-1].has_key

    def _take_key(self, text: str, value: Any, line: int, *, is_merge: bool) -> None:
        node = self._stack[-1]
        if not isinstance(value, str) and (isinstance(value, (bool, float)) or value is None or str(value) != text):
            shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
            raise YamlError(f"the key {text or 'without text'} is read as {shown}: put it in quotes", line)
        if not is_merge and text in node.value:
            raise YamlError(f"the key {text} occurs twice", line)
        node.key, node.has_key, node.key_is_merge = text, True, is_merge

    def _place(self, value: Any, size: int, lines: _Lines) -> None:
        if not self._stack:
            self._done = (value, lines)
            return
        node = self._stack[-1]
        node.size += size
        if not node.is_map:
            node.children.append((len(node.value), lines))
            node.value.append(value)
            return
        node.has_key = False
        if node.key_is_merge:
            node.merged += _merged_maps(value, lines.line)
        elif node.key is not None:
            node.value[node.key] = value
            node.children.append((node.key, lines))

    def _count(self, size: int, line: int) -> None:
        self._total += size
        if self._total > _MAX_VALUES:
            raise YamlError(f"holds more than {_MAX_VALUES} values once its aliases are unfolded", line)


def _merged_maps(value: Any, line: int) -> list[dict[str, Any]]:
    maps = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in maps):
        raise YamlError("<< merges mappings only", line)
    return maps


def _flatten(lines: _Lines) -> dict[str, int]:
    found: dict[str, int] = {}
    pending = [("$", lines)]
    while pending:
        path, here = pending.pop()
        found[path] = here.line
        for key, below in here.children:
            pending.append((f"{path}[{key}]" if isinstance(key, int) else child(path, key), below))
    return found
