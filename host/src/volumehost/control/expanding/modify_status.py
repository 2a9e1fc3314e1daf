"""What a change of the volume's attributes writes into the status of a claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volumehost.control.messages import message_of, timestamp
from volumehost.control.writes import update_status
from volumehost.errors import StorageDriverError, error_chain, is_operation_finished_error

if TYPE_CHECKING:
    from volumehost.api.client import ApiClient
    from volumehost.api.objects import Condition, PersistentVolumeClaim

PENDING, IN_PROGRESS, INFEASIBLE = "Pending", "InProgress", "Infeasible"

_MODIFYING, _ERROR = "ModifyingVolume", "ModifyVolumeError"


def target_of(claim: PersistentVolumeClaim) -> str:
    """The class that the volume was, or is being, changed to; "" when there is none."""
    status = claim.status.modify_volume_status
    return status.target_volume_attributes_class_name if status is not None else ""


def state_of(claim: PersistentVolumeClaim) -> str:
    """``Pending``, ``InProgress``, ``Infeasible``, or "" when nothing is changed."""
    status = claim.status.modify_volume_status
    return status.status if status is not None else ""


def may_be_under_way(claim: PersistentVolumeClaim) -> bool:
    """Whether a call of the driver may still be at work: none that was begun is known to have ended for sure.

    An error that is final stands in the claim; before the next call it is taken away.
    """
    error = next((each for each in claim.status.conditions if each.type == _ERROR), None)
    return state_of(claim) == IN_PROGRESS and (error is None or error.status != "True")


class ModifyStatus:
    """Writes the states.

    :raises ConflictError: the claim changed since it was read: decide anew.
    """

    def __init__(self, api: ApiClient, now: float) -> None:
        self._api = api
        self._now = timestamp(now)

    def pending(self, claim: PersistentVolumeClaim, target: str) -> PersistentVolumeClaim:
        """The class that is wanted cannot be used yet."""
        if (state_of(claim), target_of(claim)) == (PENDING, target):
            return claim
        self._set_state(claim, PENDING, target)
        return self._api.replace_status(claim)

    def in_progress(self, claim: PersistentVolumeClaim, target: str) -> PersistentVolumeClaim:
        """The driver is about to be called; how the last call ended says nothing any more."""
        self._set_state(claim, IN_PROGRESS, target)
        text = f'Modifying volume to "{target}" is in progress.'
        self._set_conditions(claim, self._condition(_MODIFYING, text))
        return self._api.replace_status(claim)

    def failed(self, claim: PersistentVolumeClaim, error: BaseException, state: str) -> None:
        """A call failed; ``state`` is what it leads to."""
        finished = is_operation_finished_error(error)
        target = target_of(claim)

        def change(fresh: PersistentVolumeClaim) -> None:
            words = "failed. Waiting for retry." if finished else "is still in progress."
            modifying = self._condition(_MODIFYING, f'Modifying volume to "{target}" {words}')
            code = next((link.code for link in error_chain(error) if isinstance(link, StorageDriverError)), "")
            # Only what ended for sure counts as an error that is True.
            failure = self._condition(_ERROR, message_of(error), code, status="True" if finished else "Unknown")
            self._set_state(fresh, state, target)
            self._set_conditions(fresh, modifying, failure)

        update_status(self._api, claim, change)

    def completed(self, claim: PersistentVolumeClaim) -> None:
        """The volume has the attributes of the target."""
        target = target_of(claim)

        def change(fresh: PersistentVolumeClaim) -> None:
            fresh.status.modify_volume_status = None
            fresh.status.current_volume_attributes_class_name = target
            self._set_conditions(fresh)

        update_status(self._api, claim, change)

    def rolled_back(self, claim: PersistentVolumeClaim) -> bool:
        """Nobody wants the change any more; whether that was news."""
        if not any(each.type == _MODIFYING for each in claim.status.conditions):
            return False
        claim.status.conditions = [each for each in claim.status.conditions if each.type != _MODIFYING]
        self._api.replace_status(claim)
        return True

    @staticmethod
    def _set_state(claim: PersistentVolumeClaim, state: str, target: str) -> None:
        from volumehost.api.objects import ModifyVolumeStatus

        status = ModifyVolumeStatus(status=state, target_volume_attributes_class_name=target)
        claim.status.modify_volume_status = status

    @staticmethod
    def _set_conditions(claim: PersistentVolumeClaim, *wanted: Condition) -> None:
        """These are the conditions of the change now; a transition keeps its time while its status stays."""
        old = {each.type: each for each in claim.status.conditions}
        for condition in wanted:
            before = old.get(condition.type)
            if before is not None and (before.status, before.reason) == (condition.status, condition.reason):
                condition.last_transition_time = before.last_transition_time
        others = [each for each in claim.status.conditions if each.type not in {_MODIFYING, _ERROR}]
        claim.status.conditions = [*others, *wanted]

    def _condition(self, kind: str, message: str, reason: str = "", *, status: str = "True") -> Condition:
        from volumehost.api.objects import Condition

        return Condition(
            type=kind,
            status=status,
            reason=reason,
            message=message,
            last_probe_time=self._now,
            last_transition_time=self._now,
        )
