"""What an expansion writes into the status of a claim (EXPC-05, EXPC-06)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from volumehost.control.messages import message_of, timestamp
from volumehost.control.writes import update, update_status
from volumehost.errors import QuantityError
from volumehost.sdk.quantity import Quantity, parse_quantity

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Condition, PersistentVolumeClaim

#: Conditions of an expansion; all others are left alone.
RESIZE_CONDITIONS = frozenset({"Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError"})
#: Reasons of the condition ControllerResizeError: the call ended for sure; it may still be going on; it runs again.
FINAL_ERROR, UNCERTAIN, RETRYING = "Failed", "Uncertain", "Retrying"
#: On a claim: the node need not do anything about its expansion (BR-44).
NODE_NOT_REQUIRED = "volume.kubernetes.io/node-expansion-not-required"

_STORAGE = "storage"
_PENDING_MESSAGE = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


def resize_status(claim: PersistentVolumeClaim) -> str:
    """How far the expansion is; "" when there is none."""
    return claim.status.allocated_resource_statuses.get(_STORAGE, "")


def allocated_size(claim: PersistentVolumeClaim) -> Quantity | None:
    """The size that is, or was last, worked on; None when there is none."""
    text = claim.status.allocated_resources.get(_STORAGE)
    try:
        return parse_quantity(text) if text else None
    except QuantityError:
        return None


def claim_condition(claim: PersistentVolumeClaim, kind: str) -> Condition | None:
    """The condition of that type."""
    return next((each for each in claim.status.conditions if each.type == kind), None)


class ClaimStatus:
    """Writes the states; every write rests on the claim as it was decided by.

    :raises ConflictError: the claim changed since it was read: decide anew.
    """

    def __init__(self, api: ApiClient, now: float) -> None:
        self._api = api
        self._now = timestamp(now)

    def in_progress(self, claim: PersistentVolumeClaim, target: Quantity, state: str) -> PersistentVolumeClaim:
        """A size is being worked on; an error of an earlier attempt at the same size stays to be seen."""
        if NODE_NOT_REQUIRED in claim.metadata.annotations:
            claim = update(self._api, claim, _drop_annotation)
        same = allocated_size(claim) == target and resize_status(claim) == state
        error = claim_condition(claim, "ControllerResizeError")
        if same and error is None and claim_condition(claim, "Resizing") is not None:
            return claim
        status = claim.status
        conditions = [self._condition("Resizing")]
        if same and error is not None:
            # From here on it is not known any more how the last attempt ended.
            conditions.append(self._condition("ControllerResizeError", error.message, RETRYING))
        self._set(claim, conditions)
        status.allocated_resources = {**status.allocated_resources, _STORAGE: str(target)}
        status.allocated_resource_statuses = {**status.allocated_resource_statuses, _STORAGE: state}
        return self._api.replace_status(claim)

    def failed(
        self, claim: PersistentVolumeClaim, error: BaseException, reason: str, *, state: str = ""
    ) -> PersistentVolumeClaim:
        """An attempt failed; ``state`` "" leaves that as it is. Written even when somebody else wrote meanwhile."""

        def change(fresh: PersistentVolumeClaim) -> None:
            text = f"failed to expand the volume: {message_of(error)}"
            kept = [each for each in fresh.status.conditions if each.type == "Resizing"]
            self._set(fresh, [*kept, self._condition("ControllerResizeError", text, reason)])
            if state:
                fresh.status.allocated_resource_statuses[_STORAGE] = state

        return update_status(self._api, claim, change)

    def waits_for_node(self, claim: PersistentVolumeClaim, size: Quantity, state: str) -> None:
        """The volume has its size; a node has to grow what is on it (EXPC-04)."""
        status = claim.status
        conditions = [self._condition("Resizing"), self._condition("FileSystemResizePending", _PENDING_MESSAGE)]
        self._set(claim, conditions)
        status.allocated_resources = {**status.allocated_resources, _STORAGE: str(size)}
        status.allocated_resource_statuses = {**status.allocated_resource_statuses, _STORAGE: state}
        self._api.replace_status(claim)

    def finished(self, claim: PersistentVolumeClaim, size: Quantity) -> None:
        """The claim has its size, and no node has to do anything (BR-44)."""
        if NODE_NOT_REQUIRED not in claim.metadata.annotations:
            claim = update(self._api, claim, _add_annotation)
        status = claim.status
        self._set(claim, [])
        status.capacity = {**status.capacity, _STORAGE: str(size)}
        status.allocated_resources = {**status.allocated_resources, _STORAGE: str(size)}
        rest = {name: state for name, state in status.allocated_resource_statuses.items() if name != _STORAGE}
        status.allocated_resource_statuses = rest
        self._api.replace_status(claim)

    def _set(self, claim: PersistentVolumeClaim, wanted: Iterable[Condition]) -> None:
        """These are the conditions of the expansion now; a transition keeps its time while its status stays."""
        new = {each.type: each for each in wanted}
        kept = []
        for old in claim.status.conditions:
            condition = new.pop(old.type, None)
            if condition is not None:
                if condition.status == old.status:
                    condition.last_transition_time = old.last_transition_time
                kept.append(condition)
            elif old.type not in RESIZE_CONDITIONS:
                kept.append(old)
        claim.status.conditions = [*kept, *new.values()]

    def _condition(self, kind: str, message: str = "", reason: str = "") -> Condition:
        from volumehost.api.objects import Condition

        return Condition(type=kind, status="True", reason=reason, message=message, last_transition_time=self._now)


def _add_annotation(claim: PersistentVolumeClaim) -> None:
    claim.metadata.annotations = {**claim.metadata.annotations, NODE_NOT_REQUIRED: "true"}


def _drop_annotation(claim: PersistentVolumeClaim) -> None:
    claim.metadata.annotations = {
        key: value for key, value in claim.metadata.annotations.items() if key != NODE_NOT_REQUIRED
    }
