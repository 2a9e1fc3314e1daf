"""What ``explain`` tells of a pod: the records and their text; made by ``explain``, carried over the agent's socket."""

from __future__ import annotations

from typing import Any, Self

import msgspec

_MARKS = {"done": "done   ", "here": "here   ", "to-come": "to come"}


class Point(msgspec.Struct, frozen=True, rename="camel"):
    """One phase of what a volume goes through. ``state``: ``done``, ``here``, ``to-come``.

    ``text`` says what is done in it, to what, and by whom.
    """

    name: str
    state: str
    text: str


class VolumeExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """One volume of a pod. Times are in seconds.

    The fields up to ``retry_in`` are those of :class:`~volumehost.node.status.records.VolumeStatus`. ``direction`` is
    ``mount`` or ``unmount``; ``sequence`` what the volume goes through in that direction, in order. ``waits_for`` and
    ``advice`` are sentences, ``error`` the last error in full, a line each: what failed, then what that came from.
    ``hangs`` tells where a running operation is stuck. ``selinux``: what is made of the SELinux options of the
    containers that mount it.
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
    selinux: str = ""

    def headline(self) -> str:
        """What it is and where it stands, in one line: plugin, operation, step, age, attempts, next retry (BR-83)."""
        from volumehost.node.status.records import VolumeStatus

        return VolumeStatus(
            volume=self.volume,
            state=self.state,
            plugin=self.plugin,
            distribution=self.distribution,
            version=self.version,
            operation=self.operation,
            step=self.step if self.age is not None else "",
            failed_step="" if self.age is not None else self.step,
            age=self.age,
            attempts=self.attempts,
            retry_in=self.retry_in,
        ).explain()

    def lines(self) -> list[str]:
        """The explanation as text for people; the first line says which volume, the others are indented."""
        found = [self.headline()]
        if self.source:
            found.append(f"  from: {self.source}")
        if self.path:
            found.append(f"  at: {self.path}")
        if self.selinux:
            found.append(f"  SELinux: {self.selinux}")
        found += [f"  {_MARKS.get(point.state, point.state)}  {point.text}" for point in self.sequence]
        found += _block("waits for", self.waits_for)
        found += _block("it is now", self.hangs)
        found += _block("last error", self.error, apart=True)
        return found + _block("what to do", self.advice)


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
        """The whole as text for people: the summary, the pod, each volume that is not ready."""
        found = [f"pod {self.label}: {self.summary}"]
        found += _block("waits for", self.waits_for)
        found += _block("what to do", self.advice)
        told = [volume for volume in self.volumes if volume.sequence or volume.error]
        for volume in told:
            found += ["", *volume.lines()]
        rest = [f"{each.volume} ({each.state})" for each in self.volumes if each not in told]
        if rest and len(rest) < len(self.volumes):
            found += ["", f"the others: {', '.join(rest)}"]
        return found

    @property
    def label(self) -> str:
        """``default/web``; the uid of a pod whose name nobody knows."""
        return f"{self.namespace}/{self.name}" if self.name else self.uid

    def details(self) -> list[str]:
        """For the errors of waits: the explanation of each volume that is not ready, as text of several lines."""
        return ["\n".join(volume.lines()) for volume in self.volumes if volume.sequence]


def _block(title: str, lines: tuple[str, ...], *, apart: bool = False) -> list[str]:
    """One line, or a title with the lines below it."""
    if not lines:
        return []
    if len(lines) == 1 and not apart:
        return [f"  {title}: {lines[0]}"]
    return [f"  {title}:", *(f"    {line}" for line in lines)]
