"""What events say about an object: the last word of trouble, for explanations when nobody is there to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Event, KubeObject

#: Reasons of events that tell what an object waits for, though nothing is wrong.
_WAITING = frozenset({"WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning", "FailedBinding"})


def last_trouble(api: ApiClient, obj: KubeObject) -> Event | None:
    """The newest event about the object that is a warning, or says what it waits for; None when there is none."""
    from volumehost.api.objects import Event

    found = [
        event
        for event in api.list(Event, obj.metadata.namespace or None).items
        if _is_about(event, obj) and (event.type == "Warning" or event.reason in _WAITING)
    ]
    return max(found, key=_moment, default=None)


def _is_about(event: Event, obj: KubeObject) -> bool:
    involved = event.involved_object
    if involved.uid and obj.metadata.uid:
        return involved.uid == obj.metadata.uid
    return (involved.kind, involved.name, involved.namespace) == (obj.kind, obj.metadata.name, obj.metadata.namespace)


def _moment(event: Event) -> tuple[str, int]:
    """Later is larger; of two in one second the one that was written last."""
    version = event.metadata.resource_version
    return event.last_timestamp or event.metadata.creation_timestamp or "", int(version) if version.isdigit() else 0
