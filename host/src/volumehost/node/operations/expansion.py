"""Growing a volume on the node after the control plane has grown it: EXPN-03 to -07, -20, -21, -30 to -40, BR-44."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volumehost.control.expanding.expand_decision import NODE_IN_PROGRESS, NODE_INFEASIBLE, NODE_PENDING
from volumehost.control.expanding.expand_status import NODE_NOT_REQUIRED, RESIZE_CONDITIONS
from volumehost.control.messages import message_of
from volumehost.control.writes import update_status
from volumehost.errors import (
    FailedPreconditionError,
    OperationError,
    OperationNotSupportedError,
    error_chain,
    is_infeasible_error,
    is_operation_finished_error,
)
from volumehost.node.state.states import ResizeHold
from volumehost.sdk.quantity import parse_quantity
from volumehost.volumes import NodeResizeOptions

if TYPE_CHECKING:
    from volumehost.api.objects import PersistentVolumeClaim
    from volumehost.node.operations.common import Services
    from volumehost.node.state.desired import VolumeUse

_STORAGE = "storage"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the volume is on this node; see :class:`volumehost.volumes.NodeResizeOptions`."""

    device_path: str
    mount_path: str
    stage_path: str


class NodeExpansion:
    """Grows one volume for one pod that uses it."""

    def __init__(self, services: Services, use: VolumeUse) -> None:
        self._services = services
        self._use = use

    def during_set_up(self, places: Places) -> None:
        """Grow it before the pod uses it; that it is not allowed now is no error (EXPN-20, -21)."""
        use = self._use
        claim = self._claim()
        old = claim_size(claim)
        if use.size <= old:
            return  # it was done meanwhile
        if use.spec.read_only:
            message = f'volume "{use.inner_name}" cannot be grown where it is used read-only'
            self._events(claim, "Warning", "FileSystemResizeFailed", message)  # EXPN-05
        elif self._expand(claim, places, use.size, old):
            self._services.actual.mark_resized(use.volume, use.size)

    def online(self, places: Places) -> None:
        """Grow it while the pod uses it (EXPN-01 to -07).

        :raises OperationError: it failed, to be tried again.
        """
        use, actual = self._use, self._services.actual
        volume = actual.get_volume(use.volume)
        old = volume.size if volume is not None else 0
        if not old or not use.size:
            raise OperationError("current or new size of the volume is not set", subject=use.volume)
        if use.size <= old:
            return
        if not self._expand(self._claim(), places, use.size, old):
            actual.hold_resize(use.volume, ResizeHold.CLAIM)
        elif not actual.mark_resized(use.volume, use.size):
            raise OperationError("unable to mark volume as resized", subject=use.volume)

    # --- the two ways ---------------------------------------------------------------------------------------------

    def _expand(self, claim: PersistentVolumeClaim, places: Places, new: int, old: int) -> bool:
        """Whether it is done; False when it must not be done now."""
        status = claim.status
        if status.allocated_resource_statuses.get(_STORAGE) or _STORAGE in status.allocated_resources:
            return self._with_recovery(claim, places, old)
        return self._without_recovery(claim, places, new, old)

    def _with_recovery(self, claim: PersistentVolumeClaim, places: Places, old: int) -> bool:
        """EXPN-30 to -36: the claim tells how far it is, so that a crash of anybody loses nothing."""
        target = _bytes(claim.status.allocated_resources.get(_STORAGE)) or self._use.size
        state = claim.status.allocated_resource_statuses.get(_STORAGE, "")
        updated = claim_size(claim) >= target and not state
        shared = "ReadWriteMany" in claim.spec.access_modes
        on_each_node = shared and NODE_NOT_REQUIRED not in claim.metadata.annotations
        if not (updated and on_each_node) and state not in (NODE_PENDING, NODE_IN_PROGRESS):
            return updated
        if not updated and state != NODE_IN_PROGRESS:
            claim = self._update(claim, lambda fresh: _set_state(fresh, NODE_IN_PROGRESS))
        try:
            self._call(places, target, old)
        except BaseException as error:
            if updated and _is(error, OperationNotSupportedError):
                return True
            if self._is_in_use(error):
                # No failure (EXPN-35), but whoever waits for the size is told why it does not come yet.
                message = message_of(error)
                self._update(claim, lambda fresh: _add_error(fresh, message, self._now()))
                return False
            self._record_failure(claim, error, target)
            raise
        self._succeeded(claim, target)
        if not updated:
            self._update(claim, lambda fresh: _finish(fresh, target))
        return True

    def _without_recovery(self, claim: PersistentVolumeClaim, places: Places, new: int, old: int) -> bool:
        """EXPN-40; a claim that has its full size needs nothing of the node (BR-44)."""
        if claim_size(claim) >= new:
            return True
        try:
            self._call(places, new, old)
        except BaseException as error:
            if _is(error, OperationNotSupportedError) or self._is_in_use(error):
                return True
            raise
        self._succeeded(claim, new)
        self._update(claim, lambda fresh: _finish(fresh, new))
        return True

    def _call(self, places: Places, new: int, old: int) -> None:
        self._use.plugin.node_expand(
            NodeResizeOptions(
                volume_spec=self._use.spec,
                device_path=places.device_path,
                device_mount_path=places.mount_path,
                device_stage_path=places.stage_path,
                new_size=new,
                old_size=old,
            )
        )

    # --- outcomes -------------------------------------------------------------------------------------------------

    def _is_in_use(self, error: BaseException) -> bool:
        """The driver does not grow what is in use: it is not asked again before the volume was unmounted (EXPN-35)."""
        in_use = _is(error, FailedPreconditionError)
        if in_use:
            self._services.actual.hold_resize(self._use.volume, ResizeHold.IN_USE)
        return in_use

    def _record_failure(self, claim: PersistentVolumeClaim, error: BaseException, target: int) -> None:
        if not is_operation_finished_error(error):
            return
        volume = self._services.actual.get_volume(self._use.volume)
        # Another size is wanted since: the control plane may begin anew with that one (EXPN-32).
        given_up = volume is not None and volume.resize_failed and _bytes(_request(claim)) != target
        infeasible = is_infeasible_error(error) or given_up
        self._services.actual.hold_resize(self._use.volume, ResizeHold.NONE, failed=True)
        now = self._now()

        def change(fresh: PersistentVolumeClaim) -> None:
            if infeasible:
                _set_state(fresh, NODE_INFEASIBLE)
            _add_error(fresh, message_of(error), now)

        self._update(claim, change)

    def _now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._services.wall_clock()))

    def _succeeded(self, claim: PersistentVolumeClaim, size: int) -> None:
        message = f'MountVolume.NodeExpandVolume succeeded for volume "{self._use.inner_name}": {size} bytes'
        self._events(claim, "Normal", "FileSystemResizeSuccessful", message)

    def _events(self, claim: PersistentVolumeClaim, event_type: str, reason: str, message: str) -> None:
        recorder = self._services.recorder()
        if recorder is not None:
            recorder.event(self._use.pod, event_type, reason, message)
            recorder.event(claim, event_type, reason, message)

    # --- the claim ------------------------------------------------------------------------------------------------

    def _claim(self) -> PersistentVolumeClaim:
        """The claim as it is now (EXPN-04)."""
        from volumehost.api.objects import PersistentVolumeClaim

        volume = self._use.spec.persistent_volume
        reference = volume.spec.claim_ref if volume is not None else None
        api = self._services.host.get_kube_client()
        if reference is None or api is None:
            raise OperationError("the volume has no claim that could be read", subject=self._use.volume)
        return api.get(PersistentVolumeClaim, reference.name, reference.namespace)

    def _update(
        self, claim: PersistentVolumeClaim, change: Callable[[PersistentVolumeClaim], None]
    ) -> PersistentVolumeClaim:
        """Change the claim's status; what somebody else writes meanwhile is never overwritten (EXPC-06)."""
        api = self._services.host.get_kube_client()
        if api is None:
            raise OperationError("there is no API to record the expansion in", subject=self._use.volume)
        return update_status(api, claim, change)


def claim_size(claim: PersistentVolumeClaim) -> int:
    """What the claim has got, in bytes, 0 when its status does not say."""
    return _bytes(claim.status.capacity.get(_STORAGE))


def _request(claim: PersistentVolumeClaim) -> str | None:
    return claim.spec.resources.requests.get(_STORAGE)


def _bytes(quantity: str | None) -> int:
    return parse_quantity(quantity).value() if quantity else 0


def _is(error: BaseException, kind: type[BaseException]) -> bool:
    return any(isinstance(link, kind) for link in error_chain(error))


def _set_state(claim: PersistentVolumeClaim, state: str) -> None:
    claim.status.allocated_resource_statuses = {**claim.status.allocated_resource_statuses, _STORAGE: state}


def _finish(claim: PersistentVolumeClaim, size: int) -> None:
    """The claim has the size; nothing of the expansion is left in its status (EXPN-36)."""
    from volumehost.sdk.quantity import Quantity

    status = claim.status
    if _bytes(status.capacity.get(_STORAGE)) < size:
        status.capacity = {**status.capacity, _STORAGE: str(Quantity.of(size))}
    others = status.allocated_resource_statuses.items()
    status.allocated_resource_statuses = {name: state for name, state in others if name != _STORAGE}
    status.conditions = [condition for condition in status.conditions if condition.type not in RESIZE_CONDITIONS]


def _add_error(claim: PersistentVolumeClaim, message: str, now: str) -> None:
    """Condition NodeResizeError in the place of an older one, whose time it keeps (EXPC-05)."""
    from volumehost.api.objects import Condition

    kept = [condition for condition in claim.status.conditions if condition.type != "NodeResizeError"]
    former = next((found for found in claim.status.conditions if found.type == "NodeResizeError"), None)
    since = former.last_transition_time if former is not None and former.status == "True" else now
    failed = Condition(type="NodeResizeError", status="True", last_transition_time=since, message=message)
    claim.status.conditions = [*kept, failed]
