"""What a repair would do, in order, and what it leaves alone: records that commands print and the executor runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Action(StrEnum):
    """What a step does. Each can be repeated, and succeeds when it has nothing to do."""

    UNMOUNT = "unmount"
    UNPUBLISH = "unpublish"
    UNMAP = "unmap"
    UNSTAGE = "unstage"
    UNMAP_DEVICE = "unmap-device"
    DETACH = "detach-loop-device"
    REMOVE_SUBPATH = "remove-subpath"
    REMOVE_PAYLOAD = "remove-payload"
    REMOVE_POD = "remove-pod-directory"
    REMOVE_DEVICE = "remove-device-directory"
    REMOVE_FILE = "remove-file"
    END_RECORDS = "end-records"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``subject``: the path, the device, or the uid that it is done to.

    ``plugin``: through which plugin, "" for none; ``driver``: which CSI driver is told that way; ``untold``: a driver
    or plugin that is not told, since it is not there. ``pod_uid`` and ``name`` say which volume; ``place``: where it
    is mounted; ``records``: keys in the journal.
    """

    action: Action
    subject: str
    plugin: str = ""
    driver: str = ""
    untold: str = ""
    pod_uid: str = ""
    name: str = ""
    place: str = ""
    records: tuple[tuple[str, str], ...] = ()

    def describe(self) -> str:
        """The step in one line."""
        told = f" through {self.plugin}" if self.plugin else ""
        told += f" (driver {self.driver})" if self.driver else ""
        told += f"; {self.untold} is not told" if self.untold else ""
        return f"{_WORDS[self.action]} {self._what()}{told}"

    def _what(self) -> str:
        if self.action in (Action.UNPUBLISH, Action.UNMAP):
            return f"volume {self.name} from pod {self.pod_uid}"
        if self.action is Action.END_RECORDS:
            return f"of {self.subject} in the journal"
        return self.subject


_WORDS = {
    Action.UNMOUNT: "unmount",
    Action.UNPUBLISH: "unpublish",
    Action.UNMAP: "unmap",
    Action.UNSTAGE: "unstage",
    Action.UNMAP_DEVICE: "unmap the device",
    Action.DETACH: "detach",
    Action.REMOVE_SUBPATH: "remove the subpath",
    Action.REMOVE_PAYLOAD: "remove the copy of what the API has in",
    Action.REMOVE_POD: "remove the pod's directory",
    Action.REMOVE_DEVICE: "remove the device's directory",
    Action.REMOVE_FILE: "remove",
    Action.END_RECORDS: "end the records",
}


def told_step(
    action: Action,
    subject: str,
    plugins: Collection[str],
    *,
    plugin: str,
    driver: str = "",
    pod_uid: str = "",
    name: str = "",
    place: str = "",
) -> Step:
    """A step through the plugin if that is among ``plugins``; a plain one otherwise, which says who is not told."""
    if plugin in plugins:
        return Step(action, subject, plugin=plugin, driver=driver, pod_uid=pod_uid, name=name, place=place)
    untold = f"the driver {driver}" if driver else f"the plugin {plugin}"
    return Step(action, subject, untold=untold, pod_uid=pod_uid, name=name, place=place)


class Reason(NamedTuple):
    """Why something is left alone, and what a person can do about it."""

    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class Repair:
    """What is done about one thing: its steps in order. When one fails, the later ones are left out."""

    kind: str
    subject: str
    steps: tuple[Step, ...]
    pod_uid: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is left alone: ``reasons`` say why, one line each; ``advice`` what a person can do."""

    kind: str
    subject: str
    reasons: tuple[str, ...]
    advice: str = ""
    pod_uid: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it. What a later repair needs of an earlier one comes after it."""

    repairs: tuple[Repair, ...] = ()
    refusals: tuple[Refusal, ...] = field(default=())

    def steps(self) -> Iterator[tuple[Repair, Step]]:
        """Every step in order."""
        for repair in self.repairs:
            for step in repair.steps:
                yield repair, step


class Outcome(StrEnum):
    """How a step ended. ``skipped``: an earlier one that it needs has failed."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of a step; ``detail``: the error of one that failed, or what should be known of one that is done."""

    step: Step
    outcome: Outcome
    detail: str = ""
    hint: str = ""
