"""What would be done to mount a pod, without doing it: for ``volumehost plan``."""

from __future__ import annotations

from typing import Any

import msgspec


class PlannedStep(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that would be done. ``operation`` and ``step`` are those of the operation that would do it.

    ``by`` is the plugin or driver that would, ``details`` what it would be told.
    """

    phase: str
    text: str
    operation: str = ""
    step: str = ""
    by: str = ""
    details: dict[str, str] = {}


class VolumePlan(msgspec.Struct, frozen=True, rename="camel"):
    """What would be done for one volume. ``state``: ``mounted`` (nothing), ``to-do``, ``blocked``, ``unused``.

    ``problems`` says what keeps it from working, as things are.
    """

    volume: str
    state: str
    plugin: str = ""
    distribution: str = ""
    version: str = ""
    source: str = ""
    steps: tuple[PlannedStep, ...] = ()
    problems: tuple[str, ...] = ()


class PodPlan(msgspec.Struct, frozen=True, rename="camel"):
    """What would be done for a pod; ``action`` is ``mount`` or ``unmount``. ``works``: nothing is in the way."""

    namespace: str
    name: str
    action: str
    works: bool
    volumes: tuple[VolumePlan, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, names in camel case: the documented shape."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found
