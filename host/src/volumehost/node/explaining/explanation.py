"""What ``explain`` tells of a pod: the records and their text; made by ``explain``, carried over the agent's socket."""

from __future__ import annotations

from typing import Any, Self

import msgspec


class Point(msgspec.Struct, frozen=True, rename="camel"):
    """One phase of what a volume goes through. ``state``: ``done``, ``here``, ``to-come``.

    ``text`` says what is done in it, to what, and by whom.
    """

    name: str
    state: str
    text: str


class VolumeExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """One volume of a pod. Times are in seconds.

    The fields up to ``retry_in`` are those of :class:`~volumehost.node.status.VolumeStatus`. ``direction`` is
    ``mount`` or ``unmount``; ``sequence`` what the volume goes through in that direction, in order. ``waits_for`` and
    ``advice`` are sentences, ``error`` the last error in full, a line each: what failed, then what that came from.
    ``hangs`` tells where a running operation is stuck.
    """

    volume: str
    state: str
    ready: bool
    plugin: str = ""
    distribution: str = ""
    version: str = ""
    path: str = ""
    unique_name: str = ""
    operation: str = ""
    step: str = ""
    age: float | None = None
    attempts: int = 0
    retry_in: float | None = None
    source: str = ""
    direction: str = "mount"
    sequence: tuple[Point, ...] = ()
    waits_for: tuple[str, ...] = ()
    hangs: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


class PodExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """A pod and why its volumes are not ready. ``summary`` is one sentence.

    ``waits_for`` and ``advice`` are about the pod as a whole. ``live``: told by the manager at work on the root
    directory, and not from its records; ``notes`` say what should be known before the rest is believed.
    """

    namespace: str
    name: str
    uid: str
    state: str
    ready: bool
    summary: str
    live: bool
    volumes: tuple[VolumeExplanation, ...] = ()
    waits_for: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, names in camel case: the documented shape."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """The reverse of :meth:`to_dict`; fields that are not known are passed over.

        :raises msgspec.ValidationError: it is no explanation.
        """
        return msgspec.convert(data, cls, strict=False)

    def lines(self) -> list[str]:
        """The whole as text for people."""
        return [self.summary]
