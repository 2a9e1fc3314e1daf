"""Waiting for a cluster to do what was asked of it: its controllers are elsewhere, only its objects tell.

``expand``, ``snapshot``, ``apply`` and ``delete`` wait so with ``--kubeconfig``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from volumehost.cli.progress import progress
from volumehost.errors import ObjectNotFoundError, VolumeHostError, WaitTimeoutError
from volumehost.mount.deadline import in_seconds

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import KubeObject
    from volumehost.cli.wish import Wish

#: How long to leave the server alone between two looks, in seconds; the first looks come sooner.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0


def wait_for_cluster(
    api: ApiClient, wishes: Sequence[Wish], timeout: float, *, verbosity: int = 0
) -> list[VolumeHostError]:
    """Look again and again until each wish has come true.

    :returns: a WaitTimeoutError for each that has not in ``timeout`` seconds, with the last trouble that events tell.
    """
    deadline = time.monotonic() + timeout
    left = [wish for wish in wishes if not wish.is_done()]
    pause = _FIRST_PAUSE
    with progress(lambda: [f"waiting for {wish.what}" for wish in left], verbosity=verbosity):
        while left and time.monotonic() < deadline:
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
            left[:] = [wish for wish in left if not wish.is_done()]
    return [_late(api, wish, timeout) for wish in left]


def to_be_gone(api: ApiClient, struct: type[KubeObject], before: KubeObject, label: str) -> Wish:
    """The wish that the object, and not another one under its name, is there no more."""
    from volumehost.cli.wish import Wish

    def now() -> list[KubeObject]:
        metadata = before.metadata
        try:
            found: KubeObject = api.get(struct, metadata.name, metadata.namespace)
        except ObjectNotFoundError:
            return []
        return [found] if found.metadata.uid == metadata.uid else []

    return Wish(f"{label} to be deleted", lambda: not now(), now)


def _late(api: ApiClient, wish: Wish, timeout: float) -> WaitTimeoutError:
    return WaitTimeoutError(
        f"not so after {in_seconds(timeout)}",
        details=[line for obj in wish.objects() for line in _lines(api, obj)],
        action=f"waiting for {wish.what}",
        hint="the cluster goes on with it; 'volumehost describe' shows the object and its events",
    )


def _lines(api: ApiClient, obj: Any) -> list[str]:
    from volumehost.node.explaining.events import last_trouble

    lines = []
    if obj.metadata.deletion_timestamp is not None and obj.metadata.finalizers:
        lines.append(f"it is marked, kept by {', '.join(obj.metadata.finalizers)}")
    if error := getattr(getattr(obj, "status", None), "error", None):
        lines.append(str(error.message))
    try:
        event = last_trouble(api, obj)
    except VolumeHostError:  # whoever may not read events is told the rest
        event = None
    return lines + ([f"{event.reason}: {event.message}"] if event is not None else [])
