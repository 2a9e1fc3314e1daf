"""Event: something that happened to an object, for people to read."""

from __future__ import annotations

from msgspec import field

from volumehost.api.objects.base import ApiStruct, always
from volumehost.api.objects.meta import KubeObject, ObjectReference


class EventSource(ApiStruct):
    """Who reported it."""

    component: str = ""
    host: str = ""


class EventSeries(ApiStruct):
    """How often it happened since."""

    count: int = 0
    last_observed_time: str | None = None


class Event(KubeObject):
    """One event: ``type`` is ``Normal`` or ``Warning``, ``reason`` a word in camel case."""

    api_version: str = always("v1")
    kind: str = always("Event")
    involved_object: ObjectReference = field(default_factory=ObjectReference)
    reason: str = ""
    message: str = ""
    source: EventSource = field(default_factory=EventSource)
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    count: int = 0
    type: str = ""
    event_time: str | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
