"""The two faces of an Event: kept as core/v1, read and written as events.k8s.io/v1 too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]

#: Field of events.k8s.io/v1 to that of core/v1.
_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: new for new, core in _NAMES.items()}


def to_core(document: Mapping[str, Any]) -> Document:
    """The event as core/v1 has it."""
    return {_NAMES.get(key, key): value for key, value in document.items()} | {"apiVersion": "v1"}


def from_core(document: Mapping[str, Any]) -> Document:
    """The event as events.k8s.io/v1 has it."""
    return {_BACK.get(key, key): value for key, value in document.items()} | {"apiVersion": "events.k8s.io/v1"}
