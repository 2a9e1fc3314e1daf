"""The expansion controller: a claim that asks for more than it has gets it, as far as the control plane is concerned.

What it does stands in the claim's status before it is done, so that it goes on after a crash (EXPC, EXPCTL). The
node's part begins at ``NodeResizePending`` and is the node's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from volumehost.control.binding.volume_use import users_in_words
from volumehost.control.expanding.expand_decision import (
    CONTROLLER_IN_PROGRESS,
    CONTROLLER_INFEASIBLE,
    NODE_INFEASIBLE,
    NODE_PENDING,
    PRE_RESIZE,
    decide,
    size_of,
)
from volumehost.control.expanding.expand_refusal import expansion_refusal
from volumehost.control.expanding.expand_status import (
    FINAL_ERROR,
    UNCERTAIN,
    ClaimStatus,
    claim_condition,
    resize_status,
)
from volumehost.control.expanding.expand_volume import DriverGrower, Grower, PluginGrower
from volumehost.control.machinery.controller import ControlContext, Key
from volumehost.control.machinery.counting import CountedOperation
from volumehost.control.messages import message_of
from volumehost.control.provisioning.classes import class_of_claim
from volumehost.control.translation import translated
from volumehost.control.writes import get_or_none, update
from volumehost.errors import (
    ConflictError,
    FailedPreconditionError,
    ObjectNotFoundError,
    OperationNotSupportedError,
    PluginLookupError,
    StoreError,
    TransientOperationError,
    VolumeHostError,
    error_chain,
    is_infeasible_error,
    is_operation_finished_error,
)
from volumehost.sdk.quantity import Quantity
from volumehost.spec import Spec

if TYPE_CHECKING:
    from volumehost.api.objects import KubeObject, PersistentVolume, PersistentVolumeClaim, StorageClass

#: How long an expansion that cannot work is left alone, unless something else is asked for, in seconds.
INFEASIBLE_SECONDS = 600.0
#: How often it is looked whether a volume that can be grown only while nobody uses it is free, in seconds.
IN_USE_SECONDS = 5.0


class ExpandController:
    """Controller of claims; see :class:`volumehost.control.machinery.controller.Controller`."""

    name = "expander"
    kind: type[KubeObject]

    def __init__(self, context: ControlContext, *, clock: Callable[[], float] = time.monotonic) -> None:
        from volumehost.api.objects import PersistentVolumeClaim

        self.kind = PersistentVolumeClaim
        self._context = context
        self._api = context.api
        self._clock = clock
        self._counted = CountedOperation(context.metrics, "expand_volume")
        #: What was found to be infeasible, and until when it is left alone: claim uid to (what, when).
        self._slow: dict[str, tuple[tuple[object, ...], float]] = {}
        #: Claims, by uid, whose driver said that it cannot grow a volume that is in use.
        self._refused_in_use: set[str] = set()

    def watches(self) -> Mapping[type[KubeObject], Callable[[Any], Iterable[Key]]]:
        """Claims, their volumes, and the classes that may allow what they did not."""
        from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass

        return {
            PersistentVolumeClaim: lambda claim: [Key.of(claim)],
            PersistentVolume: _claim_of,
            StorageClass: self._growing_claims_of,
        }

    def _growing_claims_of(self, storage_class: StorageClass) -> Iterable[Key]:
        from volumehost.api.objects import PersistentVolumeClaim

        return [
            Key.of(claim)
            for claim in self._api.list(PersistentVolumeClaim).items
            if class_of_claim(claim) == storage_class.metadata.name and _wants_more(claim)
        ]

    def reconcile(self, key: Key) -> float | None:
        """Bring the claim's volume to the size that the claim asks for."""
        from volumehost.api.objects import PersistentVolume, PersistentVolumeClaim

        claim = get_or_none(self._api, PersistentVolumeClaim, key.name, key.namespace)
        if claim is None or claim.status.phase != "Bound" or not claim.spec.volume_name:
            return None
        volume = get_or_none(self._api, PersistentVolume, claim.spec.volume_name)
        if volume is None or not (_wants_more(claim) or PRE_RESIZE in volume.metadata.annotations):
            return None
        reference = volume.spec.claim_ref
        if reference is None or (reference.namespace, reference.uid) != (key.namespace, claim.metadata.uid):
            raise FailedPreconditionError(
                f"PersistentVolume {volume.metadata.name} is not bound to it",
                action=f"expanding claim {key.namespace}/{key.name}",
                subject=key.name,
            )
        try:
            return self._expand(claim, volume)
        finally:
            self._context.progress(claim, "")

    def _expand(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> float | None:
        decision = decide(claim, volume)
        seen = translated(self._context.plugins, volume)
        if decision.forget_former and not self._context.is_of_others(seen):
            update(self._api, volume, _forget_former_size)
        if decision.target is None:
            return None
        grower = self._grower(claim, seen)
        if grower is None:
            return None
        decision = decide(claim, volume, by_node_alone=grower.by_node_alone)
        target = decision.target
        if target is None:
            return None
        if decision.is_new:
            refusal = expansion_refusal(self._api, claim)
            if refusal is not None:
                self._tell_once(claim, refusal, message_of(refusal))
                return None
        left = self._left_alone(claim, target)
        if left > 0:
            return left
        if grower.offline_only or claim.metadata.uid in self._refused_in_use:
            users = users_in_words(self._api, claim, volume)
            if users:
                return self._postpone(claim, users)
        return self._grow(grower, claim, volume, target)

    # --- who grows it -----------------------------------------------------------------------------------------------

    def _grower(self, claim: PersistentVolumeClaim, seen: PersistentVolume) -> Grower | None:
        """Who can grow the volume; None when that is somebody outside of this program (EXPCTL-04).

        :param seen: the volume as whoever took over its kind sees it.
        """
        source = seen.spec.csi
        if self._context.is_of_others(seen):
            self._waits_for_others(claim, "Normal")
            return None
        if source is not None:
            try:
                return DriverGrower(self._api, self._context.driver(source.driver))
            except VolumeHostError as error:
                self._context.event(claim, "Warning", "VolumeResizeFailed", message_of(error))
                raise
        spec = Spec.from_persistent_volume(seen, read_only=False)
        try:
            plugin = self._context.plugins.find_expandable_plugin_by_spec(spec)
        except PluginLookupError:
            self._waits_for_others(claim, "Warning")
            return None
        if plugin is None:
            self._waits_for_others(claim, "Normal")
            return None
        return PluginGrower(plugin, self._context.gate)

    def _waits_for_others(self, claim: PersistentVolumeClaim, event_type: str) -> None:
        self._context.event(
            claim, event_type, "ExternalExpanding", "waiting for an external controller to expand this PVC"
        )

    # --- doing it ---------------------------------------------------------------------------------------------------

    def _grow(
        self, grower: Grower, claim: PersistentVolumeClaim, volume: PersistentVolume, target: Quantity
    ) -> float | None:
        """EXPC-04: mark, expand, set the volume's capacity, mark again."""
        name = volume.metadata.name
        status = ClaimStatus(self._api, self._context.wall_clock())
        by_node = resize_status(claim) == NODE_INFEASIBLE
        claim = status.in_progress(claim, target, CONTROLLER_IN_PROGRESS)
        self._context.event(claim, "Normal", "Resizing", f"resizing volume {name} to {target}")
        if grower.call:
            self._context.progress(claim, f"expanding volume {name} to {target} ({grower.call})")
        former = size_of(volume.spec.capacity.get("storage"))
        self._refused_in_use.discard(claim.metadata.uid)
        try:
            seen = translated(self._context.plugins, volume)
            with self._counted.attempt(claim.metadata.uid, grower.plugin, migrated=seen is not volume):
                grown = grower.grow(seen, target.value(), former.value())
        except (ConflictError, StoreError):
            raise
        except VolumeHostError as error:
            return self._failed(status, claim, volume, target, error)
        size = max(former, Quantity.of(grown.size))
        self._slow.pop(claim.metadata.uid, None)
        self._set_capacity(volume, size, claim.status.capacity.get("storage", "") if grown.needs_node else "")
        if grown.needs_node:
            status.waits_for_node(claim, size, NODE_PENDING)
            if by_node:
                # A node found this size infeasible before: it is offered again, but not over and over.
                self._leave_alone(claim, target)
            message = "Require file system resize of volume on node"
            self._context.event(claim, "Normal", "FileSystemResizeRequired", message)
        else:
            status.finished(claim, size)
            self._context.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")
            self._forget_former_size_if_granted(volume)
        return None

    def _set_capacity(self, volume: PersistentVolume, size: Quantity, former: str) -> None:
        """The volume's new size, and for as long as the claim does not have it, the size from before (EXPC-05)."""

        def change(fresh: PersistentVolume) -> None:
            if size_of(fresh.spec.capacity.get("storage")) < size:
                fresh.spec.capacity = {**fresh.spec.capacity, "storage": str(size)}
            if former and PRE_RESIZE not in fresh.metadata.annotations:
                fresh.metadata.annotations = {**fresh.metadata.annotations, PRE_RESIZE: former}

        update(self._api, volume, change)

    def _forget_former_size_if_granted(self, volume: PersistentVolume) -> None:
        if PRE_RESIZE in volume.metadata.annotations:
            update(self._api, volume, _forget_former_size)

    # --- when it does not work --------------------------------------------------------------------------------------

    def _failed(
        self,
        status: ClaimStatus,
        claim: PersistentVolumeClaim,
        volume: PersistentVolume,
        target: Quantity,
        error: VolumeHostError,
    ) -> float | None:
        """EXPC-01, by the kind of the error."""
        self._context.event(claim, "Warning", "VolumeResizeFailed", message_of(error))
        if any(isinstance(link, TransientOperationError) for link in error_chain(error)):
            raise error  # certainly nothing was begun
        if not is_operation_finished_error(error):
            status.failed(claim, error, UNCERTAIN)
            raise error
        if is_infeasible_error(error) or any(
            isinstance(link, OperationNotSupportedError) for link in error_chain(error)
        ):
            status.failed(claim, error, FINAL_ERROR, state=CONTROLLER_INFEASIBLE)
            self._leave_alone(claim, target)
            return INFEASIBLE_SECONDS
        if any(isinstance(link, FailedPreconditionError) for link in error_chain(error)):
            users = users_in_words(self._api, claim, volume)
            if users:
                # The driver grows volumes only while nobody uses them: no use in asking before they are gone.
                self._refused_in_use.add(claim.metadata.uid)
                return self._postpone(claim, users, error)
        status.failed(claim, error, FINAL_ERROR)
        raise error

    def _postpone(
        self, claim: PersistentVolumeClaim, users: list[str], refusal: VolumeHostError | None = None
    ) -> float:
        reason = f"the driver expands a volume only while it is not in use, and it is used by {', '.join(users)}"
        error = FailedPreconditionError(
            reason if refusal is None else f"{reason}: {message_of(refusal)}",
            action=f"expanding claim {claim.metadata.namespace}/{claim.metadata.name}",
            subject=claim.metadata.name,
            hint="it is expanded as soon as they have ended",
        )
        self._tell_once(claim, error, reason)
        self._context.progress(claim, f"waiting for the end of {', '.join(users)}")
        return IN_USE_SECONDS

    def _tell_once(self, claim: PersistentVolumeClaim, error: VolumeHostError, reason: str) -> None:
        """An event and a condition, once for each reason."""
        condition = claim_condition(claim, "ControllerResizeError")
        if condition is not None and reason in condition.message:
            return
        self._context.event(claim, "Warning", "VolumeResizeFailed", message_of(error))
        try:
            ClaimStatus(self._api, self._context.wall_clock()).failed(claim, error, FINAL_ERROR)
        except ObjectNotFoundError:
            return

    def _leave_alone(self, claim: PersistentVolumeClaim, target: Quantity) -> None:
        now = self._clock()
        self._slow = {uid: entry for uid, entry in self._slow.items() if entry[1] > now}
        self._slow[claim.metadata.uid] = (self._wish(claim, target), now + INFEASIBLE_SECONDS)

    def _left_alone(self, claim: PersistentVolumeClaim, target: Quantity) -> float:
        """Seconds until a size that turned out to be infeasible is tried again; 0 for now."""
        wish, until = self._slow.get(claim.metadata.uid, ((), 0.0))
        if wish != self._wish(claim, target) or resize_status(claim) not in {CONTROLLER_INFEASIBLE, NODE_INFEASIBLE}:
            return 0.0
        return max(0.0, until - self._clock())

    @staticmethod
    def _wish(claim: PersistentVolumeClaim, target: Quantity) -> tuple[object, ...]:
        return target, claim.spec.resources.requests.get("storage", "")


def _wants_more(claim: PersistentVolumeClaim) -> bool:
    """Whether it asks for more than it has got; a claim that tells of nothing that it has got is not finished yet."""
    granted = size_of(claim.status.capacity.get("storage"))
    return bool(granted) and size_of(claim.spec.resources.requests.get("storage")) > granted


def _claim_of(volume: PersistentVolume) -> Iterable[Key]:
    reference = volume.spec.claim_ref
    return [Key(reference.name, reference.namespace)] if reference is not None else []


def _forget_former_size(volume: PersistentVolume) -> None:
    volume.metadata.annotations = {
        key: value for key, value in volume.metadata.annotations.items() if key != PRE_RESIZE
    }
