"""What ``plan`` tells: for each volume of a pod what would be done, in order, and what would be in the way."""

from __future__ import annotations

from typing import Any

import msgspec


class PlannedStep(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that would be done. ``phase`` and ``text`` are those of the volume's sequence.

    ``operation`` is the volume manager's operation that would do it, "" for what the controllers or the host do.
    ``details`` is what it would be told.
    """

    phase: str
    text: str
    operation: str = ""
    details: dict[str, str] = {}


class VolumePlan(msgspec.Struct, frozen=True, rename="camel"):
    """What would be done for one volume. ``state``: ``done`` (nothing is left), ``to-do``, ``blocked`` or ``unused``.

    ``problems`` tells what keeps it from working, as things are; ``notes`` what is worth knowing besides.
    """

    volume: str
    state: str
    plugin: str = ""
    distribution: str = ""
    version: str = ""
    source: str = ""
    steps: tuple[PlannedStep, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """As text for people; the first line says which volume, the others are indented."""
        origin = f", {self.distribution} {self.version}".rstrip() if self.distribution else ""
        plugin = f" ({self.plugin}{origin})" if self.plugin else ""
        found = [f"volume {self.volume}{plugin}: {_WORDS.get(self.state, self.state)}"]
        if self.source:
            found.append(f"  from: {self.source}")
        for number, step in enumerate(self.steps, 1):
            found.append(f"  {number}. {step.text}")
            found += [f"       {name}: {value}" for name, value in step.details.items()]
        found += [f"  in the way: {problem}" for problem in self.problems]
        return found + [f"  note: {note}" for note in self.notes]


class PodPlan(msgspec.Struct, frozen=True, rename="camel"):
    """What would be done for a pod; ``action`` is ``mount`` or ``unmount``. ``works``: nothing known is in the way.

    ``problems`` and ``notes`` are about the pod as a whole.
    """

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

    def lines(self) -> list[str]:
        """As text for people."""
        found = [f"plan to {self.action} pod {self.namespace}/{self.name}: {self._summary()}"]
        found += [f"  in the way: {problem}" for problem in self.problems]
        found += [f"  note: {note}" for note in self.notes]
        for volume in self.volumes:
            found += ["", *volume.lines()]
        return found

    def _summary(self) -> str:
        blocked = sum(volume.state == "blocked" for volume in self.volumes)
        if self.problems or blocked:
            total = f"{len(self.volumes)} volume{'' if len(self.volumes) == 1 else 's'}"
            what = f"{blocked} of {total}" if blocked else "it"
            return f"{what} would not work as things are"
        if all(volume.state in {"done", "unused"} for volume in self.volumes):
            return "nothing is left to do"
        return "nothing is in the way"


_WORDS = {"done": "nothing to do", "to-do": "to do", "unused": "unused: no container uses it"}
