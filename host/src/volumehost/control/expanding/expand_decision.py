"""What an expansion does next, from what the claim and its volume say: a pure function of them (EXPC-01 to -03).

The claim's status is the memory: ``allocatedResources`` is the size that is being worked on and
``allocatedResourceStatuses`` how far that is. So an expansion goes on after a crash, and a size that turned out not to
be possible can be taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.control.expanding.expand_status import FINAL_ERROR, allocated_size, claim_condition, resize_status
from volumehost.errors import QuantityError
from volumehost.sdk.quantity import Quantity, parse_quantity

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

CONTROLLER_IN_PROGRESS = "ControllerResizeInProgress"
CONTROLLER_INFEASIBLE = "ControllerResizeInfeasible"
NODE_PENDING = "NodeResizePending"
NODE_IN_PROGRESS = "NodeResizeInProgress"
NODE_INFEASIBLE = "NodeResizeInfeasible"

#: Marks a volume that was expanded and whose claim does not have that size yet; the value is the former size.
PRE_RESIZE = "volume.alpha.kubernetes.io/pre-resize-capacity"


@dataclass(frozen=True, slots=True)
class Decision:
    """``target`` is the size to expand to; None when the control plane has nothing to do, but the node perhaps has.

    ``is_new``: nobody has begun to work on that size yet. ``forget_former``: the claim has what the volume has, so
    that the mark on the volume can go (EXPCTL-05).
    """

    target: Quantity | None = None
    is_new: bool = False
    forget_former: bool = False


def decide(claim: PersistentVolumeClaim, volume: PersistentVolume, *, by_node_alone: bool = False) -> Decision:
    """The next step for a claim that is bound to the volume.

    :param by_node_alone: the driver grows volumes on nodes only, so that a size that a node refused binds nobody.
    """
    requested = size_of(claim.spec.resources.requests.get("storage"))
    granted = size_of(claim.status.capacity.get("storage"))
    available = size_of(volume.spec.capacity.get("storage"))
    allocated = allocated_size(claim)
    status = resize_status(claim)
    forget = PRE_RESIZE in volume.metadata.annotations and granted >= available
    if not granted or requested <= granted:
        return Decision(forget_former=forget)
    if available < requested:
        target = _of_a_small_volume(claim, status, requested, allocated)
        if status in {NODE_PENDING, NODE_IN_PROGRESS} and available >= target:
            # What the node is at must end before anything larger begins.
            return Decision(forget_former=forget)
    else:
        if status in {NODE_PENDING, NODE_IN_PROGRESS}:
            return Decision(forget_former=forget)
        target = requested
        if allocated is not None and not (status == NODE_INFEASIBLE and by_node_alone):
            # A size that is left from an expansion that ended long ago counts only where it is the larger one.
            target = allocated if status else max(allocated, requested)
    is_new = allocated is None or status in {"", CONTROLLER_INFEASIBLE} or allocated != target
    return Decision(target, is_new=is_new and available < target, forget_former=forget)


def _of_a_small_volume(
    claim: PersistentVolumeClaim, status: str, requested: Quantity, allocated: Quantity | None
) -> Quantity:
    """EXPC-02: what was begun is ended first, unless it is known to have ended with an error."""
    if allocated is None or status not in {CONTROLLER_IN_PROGRESS, NODE_PENDING, NODE_IN_PROGRESS, NODE_INFEASIBLE}:
        return requested
    if status == CONTROLLER_IN_PROGRESS and had_final_error(claim):
        return requested
    return allocated


def had_final_error(claim: PersistentVolumeClaim) -> bool:
    """Whether the last attempt of the control plane ended for sure, so that nothing of it is under way."""
    condition = claim_condition(claim, "ControllerResizeError")
    return condition is not None and condition.status == "True" and condition.reason == FINAL_ERROR


def size_of(text: str | None) -> Quantity:
    """A size of an object; nothing is what cannot be read."""
    try:
        return parse_quantity(text) if text else Quantity.of(0)
    except QuantityError:
        return Quantity.of(0)
