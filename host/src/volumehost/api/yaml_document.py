"""What the readers of manifests have in common: a document with its lines, and the error of a text that is none.

Apart from the reader of YAML, so that a host whose manifests are all JSON does not load PyYAML: 1.3 MiB.
"""

from __future__ import annotations

from typing import Any

import msgspec


class YamlError(ValueError):
    """The text cannot be read; ``line`` counts from 1, 0 when unknown."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class YamlDocument(msgspec.Struct):
    """One document. ``lines`` maps field paths (``$.spec.volumes[0]``) to lines; both count from 1."""

    value: Any
    number: int
    line: int
    lines: dict[str, int]
