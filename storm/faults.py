"""What can go wrong with one call of a driver, and which calls a volume's life has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from volumehost_csi.failures import UNCERTAIN_CODES
from volumehost_csi_kit.fake import Rule

CODES: Final = (
    *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)

SETS_UP: Final = ("CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume")
GROWS: Final = ("ControllerExpandVolume", "NodeExpandVolume")
TAKES_DOWN: Final = ("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume")
CALLS: Final = (*SETS_UP, *GROWS, *TAKES_DOWN)

#: Which call undoes which.
OPPOSITE: Final = {
    "CreateVolume": "DeleteVolume",
    "ControllerPublishVolume": "ControllerUnpublishVolume",
    "NodeStageVolume": "NodeUnstageVolume",
    "NodePublishVolume": "NodeUnpublishVolume",
}

#: Deadline of every call in driver storms, in seconds.
RPC_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Fault:
    """One way to go wrong. ``kind`` sums it up. ``worked``: the driver has done the work all the same, or may have;
    ``told``: with this code, for all that the host can know.
    """

    kind: str
    name: str
    rule: Rule
    worked: bool = False
    told: str = ""

    @property
    def dies(self) -> bool:
        """Whether the driver's process ends with it."""
        return self.rule.die

    def of(self, call: str, volume_id: str, times: int | None) -> Rule:
        """The rule for one volume alone."""
        return replace(self.rule, call=call, volume_id=volume_id, times=times)

    def is_uncertain(self, call: str) -> bool:
        """Whether the host cannot know if the work was done."""
        if call == "CreateVolume" and self.told == "RESOURCE_EXHAUSTED":
            return False  # there is no room for it
        return self.told in UNCERTAIN_CODES


def faults_of(call: str) -> list[Fault]:
    """All of them."""
    found = [Fault("fails", f"{code} before", Rule(code=code), told=code) for code in CODES]
    lies = [code for code in CODES if code in UNCERTAIN_CODES]
    if call == "CreateVolume":
        lies.remove("RESOURCE_EXHAUSTED")  # that there is no room for it says that it was not made
    found += [
        Fault("fails, done", f"{code} after", Rule(code=code, when="after"), worked=True, told=code) for code in lies
    ]
    deadline = "DEADLINE_EXCEEDED"
    found += [
        Fault("hangs", "hangs before", Rule(hang=True, code="INTERNAL"), told=deadline),
        Fault("hangs, done", "hangs after", Rule(hang=True, code="INTERNAL", when="after"), worked=True, told=deadline),
        Fault("late", "late", Rule(delay=1.3 * RPC_SECONDS), worked=True, told=deadline),
        Fault("dies", "dies before", Rule(die=True), told="UNAVAILABLE"),
        Fault("dies, done", "dies after", Rule(die=True, when="after"), worked=True, told="UNAVAILABLE"),
    ]
    return found
