"""Times as the API takes and gives them: whole seconds in most places, exactly six digits of fractions in a few."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from volumehost.testing.api_server.failures import bad_request
from volumehost.testing.api_server.storage import Document

_MICRO = {
    "Lease": (("spec", "acquireTime"), ("spec", "renewTime")),
    "Event": (("eventTime",), ("series", "lastObservedTime")),
}
#: Fields that hold a time in whole seconds, wherever they are.
_WHOLE = frozenset(
    {
        *("creationTimestamp", "deletionTimestamp", "firstTimestamp", "lastTimestamp", "startTime"),
        *("lastTransitionTime", "lastHeartbeatTime", "lastProbeTime", "lastPhaseTransitionTime", "time", "timeAdded"),
    }
)
_FRACTION = re.compile(r"\.\d+(?=Z$|[+-])")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")


def normalise_times(document: Document) -> None:
    """Check and rewrite the times of a document that has just been read.

    :raises StatusError: one of them is not in its form (400).
    """
    _cut_fractions(document)
    for path in _MICRO.get(document["kind"], ()):
        holder: Any = document
        for part in path[:-1]:
            holder = holder.get(part) if isinstance(holder, dict) else None
        text = holder.get(path[-1]) if isinstance(holder, dict) else None
        if text is None:
            continue
        if not isinstance(text, str) or not _MICRO_TIME.fullmatch(text):
            raise bad_request(
                f'{document["kind"]} in version "v1" cannot be handled as a {document["kind"]}: parsing time '
                f'"{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse it'
            )
        moment = dt.datetime.fromisoformat(text).astimezone(dt.UTC)
        holder[path[-1]] = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _cut_fractions(value: Any) -> None:
    if isinstance(value, list):
        for item in value:
            _cut_fractions(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _WHOLE and isinstance(item, str) and "." in item:
                value[key] = _FRACTION.sub("", item)
            elif isinstance(item, (dict, list)):
                _cut_fractions(item)
